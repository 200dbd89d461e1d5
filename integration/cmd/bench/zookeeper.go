package main

import (
	"context"
	"errors"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/internal/faultproxy"
	"github.com/holdfast-go/holdfast/integration/internal/zkserver"
	"github.com/holdfast-go/holdfast/zklock"
)

// sessionTimeout is the same on both sides.
const sessionTimeout = 10 * time.Second

// root holds holdfast's keys, and otherRoot, as deep, those of the other libraries.
const root, otherRoot = "/bench", "/other"

// zookeeper is a server that is reached directly or through a proxy.
type zookeeper struct {
	server *zkserver.Server
	proxy  *faultproxy.Proxy // adds linkLatency
	look   *zk.Conn          // to look at znodes
}

// startZooKeeper starts the server once.
func (b *bench) startZooKeeper(ctx context.Context) (_ *zookeeper, err error) {
	if b.zookeeper != nil {
		return b.zookeeper, nil
	}
	z := &zookeeper{}
	defer func() {
		if err != nil {
			z.close()
		}
	}()
	if z.server, err = zkserver.Start(ctx, zkserver.Config{
		FullJIT: true, Heap: "512m", TickTime: 500 * time.Millisecond, MaxSessionTimeout: time.Minute,
	}); err != nil {
		return nil, err
	}
	if z.proxy, err = faultproxy.Start(z.server.Addr()); err != nil {
		return nil, err
	}
	z.proxy.SetLatency(linkLatency)
	if z.look, err = dialPlain(ctx, z.server.Addr()); err != nil {
		return nil, err
	}
	for _, path := range []string{root, otherRoot} {
		if _, err := z.look.Create(path, nil, 0, zk.WorldACL(zk.PermAll)); err != nil && !errors.Is(err, zk.ErrNodeExists) {
			return nil, err
		}
	}
	version, err := zkserver.Version(ctx, z.server.Addr())
	if err != nil {
		return nil, err
	}
	b.uses("ZooKeeper", version)
	b.zookeeper = z
	return z, nil
}

func (z *zookeeper) close() {
	if z.look != nil {
		z.look.Close()
	}
	if z.proxy != nil {
		_ = z.proxy.Close()
	}
	if z.server != nil {
		z.server.Close()
	}
}

func (z *zookeeper) addr(far bool) string {
	if far {
		return z.proxy.Addr()
	}
	return z.server.Addr()
}

// zookeeperClient is holdfast on ZooKeeper.
func zookeeperClient(far bool, opts ...holdfast.Option) connect {
	return func(ctx context.Context, l *lifetime) (*client, error) {
		z, err := l.startZooKeeper(ctx)
		if err != nil {
			return nil, err
		}
		dialed, err := zklock.Dial(ctx, []string{z.addr(far)}, &zklock.Options{Root: root, Owner: owner, SessionTimeout: sessionTimeout})
		if err != nil {
			return nil, err
		}
		c := holdfastClient(l, dialed.Client, opts...)
		c.queue = func(key string) string { return root + "/" + key }
		return c, nil
	}
}

// settle waits until a znode has a number of children and no client sets a watch.
func (z *zookeeper) settle(ctx context.Context, parent string, children int) error {
	const calm = 3
	for still, last := 0, -1.0; still < calm; still++ {
		select {
		case <-time.After(2 * time.Millisecond):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		_, stat, err := z.look.Exists(parent)
		if err != nil {
			return err
		}
		metrics, err := zkserver.Metrics(ctx, z.server.Addr())
		if err != nil {
			return err
		}
		if watches := metrics["zk_watch_count"]; int(stat.NumChildren) != children || watches != last {
			still, last = -1, watches
		}
	}
	return nil
}
