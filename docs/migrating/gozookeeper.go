package migrating

import (
	"context"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/zklock"
)

func goZooKeeperBefore(ctx context.Context) error {
	conn, _, err := zk.Connect([]string{"127.0.0.1:2181"}, 10*time.Second)
	if err != nil {
		return err
	}
	defer conn.Close()

	lock := zk.NewLock(conn, "/app/locks/orders", zk.WorldACL(zk.PermAll))
	if err := lock.Lock(); err != nil {
		return err
	}
	defer lock.Unlock()
	return work(ctx)
}

func goZooKeeperAfter(ctx context.Context) error {
	client, err := zklock.Dial(ctx, []string{"127.0.0.1:2181"}, nil)
	if err != nil {
		return err
	}
	defer client.Close(context.WithoutCancel(ctx))

	return client.Do(ctx, "/app/locks/orders", func(ctx context.Context, lock *holdfast.Lock) error {
		return book(ctx, lock.Token())
	})
}

var _ = []any{goZooKeeperBefore, goZooKeeperAfter}
