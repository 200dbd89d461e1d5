package migrating

import (
	"context"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/holdfast-go/holdfast"
)

func consulBefore(ctx context.Context, client *api.Client) error {
	lock, err := client.LockOpts(&api.LockOptions{
		Key:        "locks/orders",
		Value:      []byte("worker-1"),
		SessionTTL: "15s",
		LockDelay:  15 * time.Second,
	})
	if err != nil {
		return err
	}
	lost, err := lock.Lock(ctx.Done())
	if err != nil {
		return err
	}
	if lost == nil { // ctx was done first
		return ctx.Err()
	}
	defer lock.Unlock()

	working, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		select {
		case <-lost:
			stop()
		case <-working.Done():
		}
	}()
	return work(working)
}

func consulAfter(ctx context.Context, client *holdfast.Client) error {
	lock, err := client.Acquire(ctx, "orders", holdfast.WithOwner("worker-1"))
	if err != nil {
		return err
	}
	defer lock.Release(ctx)
	ctx, cancel := lock.Context(ctx)
	defer cancel()
	return work(ctx)
}

var _ = []any{consulBefore, consulAfter}
