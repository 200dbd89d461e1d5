package main

import (
	"context"

	"github.com/go-zookeeper/zk"
)

func goZookeeper(start func(context.Context, *lifetime) (block, error)) side {
	return side{"go-zookeeper's Lock", start}
}

// goZookeeperClient is go-zookeeper's Lock. It has no context: a waiter gives up when its session ends.
func goZookeeperClient(far bool) connect {
	return func(ctx context.Context, l *lifetime) (*client, error) {
		z, err := l.startZooKeeper(ctx)
		if err != nil {
			return nil, err
		}
		conn, err := dialPlain(ctx, z.addr(far))
		if err != nil {
			return nil, err
		}
		l.atEnd(conn.Close)
		l.usesModule("go-zookeeper", "github.com/go-zookeeper/zk")
		queue := func(key string) string { return otherRoot + "/" + key }
		return &client{queue: queue, acquire: func(_ context.Context, key string) (func() error, error) {
			lock := zk.NewLock(conn, queue(key), zk.WorldACL(zk.PermAll))
			return lock.Unlock, lock.LockWithData([]byte(owner))
		}}, nil
	}
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
