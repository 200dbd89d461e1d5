package main

import (
	"context"
	"errors"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/integration/internal/faultproxy"
	"github.com/holdfast-go/holdfast/integration/internal/zkserver"
	"github.com/holdfast-go/holdfast/zklock"
)

// sessionTimeout is the same on both sides.
const sessionTimeout = 10 * time.Second

// root holds our keys, and peerRoot, as deep, go-zookeeper's. Below bareRoot, as deep as a key, are nodes of no lock.
const root, peerRoot, bareRoot = "/bench", "/peer", "/peer/bare"

// linkLatency is what the proxy adds in each direction.
const linkLatency = time.Millisecond

// owner is the data of every lock node, on both sides.
const owner = "bench-host:12345:ABCDEFGHIJ"

// env is the server on which the ZooKeeper rows are measured, reached directly or through a proxy.
type env struct {
	*scale
	server *zkserver.Server
	proxy  *faultproxy.Proxy
	look   *zk.Conn // to look at znodes
}

func newEnv(ctx context.Context, size *scale) (_ *env, err error) {
	e := &env{scale: size}
	defer func() {
		if err != nil {
			e.close()
		}
	}()
	if e.server, err = zkserver.Start(ctx, zkserver.Config{
		FullJIT:           true,
		Heap:              "512m",
		TickTime:          500 * time.Millisecond,
		MaxSessionTimeout: time.Minute,
	}); err != nil {
		return nil, err
	}
	if e.proxy, err = faultproxy.Start(e.server.Addr()); err != nil {
		return nil, err
	}
	e.proxy.SetLatency(linkLatency)
	if e.look, err = dialPlain(ctx, e.server.Addr()); err != nil {
		return nil, err
	}
	for _, path := range []string{root, peerRoot, bareRoot} {
		if _, err := e.look.Create(path, nil, 0, zk.WorldACL(zk.PermAll)); err != nil && !errors.Is(err, zk.ErrNodeExists) {
			return nil, err
		}
	}
	return e, nil
}

func (e *env) close() {
	if e.look != nil {
		e.look.Close()
	}
	if e.proxy != nil {
		_ = e.proxy.Close()
	}
	if e.server != nil {
		e.server.Close()
	}
}

func (e *env) addr(p place) string {
	if p.far {
		return e.proxy.Addr()
	}
	return e.server.Addr()
}

// connect opens a client of ours.
func (e *env) connect(ctx context.Context, addr string) (*zklock.Client, error) {
	return zklock.Dial(ctx, []string{addr}, &zklock.Options{Root: root, Owner: owner, SessionTimeout: sessionTimeout})
}

// dialPlain opens a plain go-zookeeper connection.
func dialPlain(ctx context.Context, addr string) (*zk.Conn, error) {
	conn, events, err := zk.Connect([]string{addr}, sessionTimeout, zk.WithLogger(silent{}), zk.WithLogInfo(false))
	if err != nil {
		return nil, err
	}
	for {
		select {
		case event := <-events:
			if event.State == zk.StateHasSession {
				return conn, nil
			}
		case <-ctx.Done():
			conn.Close()
			return nil, context.Cause(ctx)
		}
	}
}

// silent keeps go-zookeeper off stderr.
type silent struct{}

func (silent) Printf(string, ...any) {}
