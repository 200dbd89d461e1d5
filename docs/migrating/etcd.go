package migrating

import (
	"context"

	"github.com/go-zookeeper/zk"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"github.com/holdfast-go/holdfast/zklock"
)

func etcdBefore(ctx context.Context, client *clientv3.Client, order string) error {
	session, err := concurrency.NewSession(client, concurrency.WithTTL(10))
	if err != nil {
		return err
	}
	defer session.Close()

	mutex := concurrency.NewMutex(session, "/locks/orders")
	if err := mutex.Lock(ctx); err != nil {
		return err
	}
	defer mutex.Unlock(context.WithoutCancel(ctx))
	_, err = client.Txn(ctx).If(mutex.IsOwner()).Then(clientv3.OpPut("/orders/42", order)).Commit()
	return err
}

func etcdAfter(ctx context.Context, client *zklock.Client, order string) error {
	lock, err := client.Acquire(ctx, "orders")
	if err != nil {
		return err
	}
	defer lock.Release(ctx) // sent even if ctx is done

	guard, err := client.Guard(lock)
	if err != nil {
		return err
	}
	_, err = client.Conn().Multi(guard, &zk.SetDataRequest{Path: "/orders/42", Data: []byte(order), Version: -1})
	return err
}

var _ = []any{etcdBefore, etcdAfter}
