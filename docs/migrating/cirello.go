package migrating

import (
	"context"
	"errors"
	"log"
	"time"

	cirello "cirello.io/dynamolock/v2"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dynamolock"
)

func cirelloBefore(ctx context.Context, ddb *dynamodb.Client) error {
	client, err := cirello.New(ddb, "locks",
		cirello.WithLeaseDuration(20*time.Second),
		cirello.WithHeartbeatPeriod(5*time.Second),
		cirello.WithOwnerName("worker-1"))
	if err != nil {
		return err
	}
	defer client.Close()

	working, stop := context.WithCancel(ctx)
	defer stop()
	lock, err := client.AcquireLockWithContext(ctx, "orders",
		cirello.WithData([]byte("shift 3")),
		cirello.WithAdditionalTimeToWaitForLock(time.Minute),
		cirello.WithSessionMonitor(5*time.Second, stop))
	var held *cirello.LockNotGrantedError
	if errors.As(err, &held) {
		log.Print("somebody has it")
	}
	if err != nil {
		return err
	}
	defer client.ReleaseLock(lock)
	return work(working)
}

func cirelloAfter(ctx context.Context, ddb *dynamodb.Client) error {
	client, err := dynamolock.New(ctx, ddb, &dynamolock.Options{
		Table:     "holdfast-locks", // another table: the items differ
		Lease:     20 * time.Second,
		Heartbeat: 5 * time.Second,
		Owner:     "worker-1",
	})
	if err != nil {
		return err
	}
	defer client.Close(context.WithoutCancel(ctx))

	lock, err := client.Acquire(ctx, "orders",
		holdfast.WithData([]byte("shift 3")),
		holdfast.WithWait(time.Minute))
	var held *holdfast.HeldError
	if errors.As(err, &held) {
		log.Printf("%s has it", held.Holder.Owner)
	}
	if err != nil {
		return err
	}
	defer lock.Release(ctx)
	ctx, cancel := lock.Context(ctx)
	defer cancel()
	return work(ctx)
}

// bothLocks is the first of two steps from one library to another: whoever has
// the new lock has the old one too.
func bothLocks(ctx context.Context, old *cirello.Client, client *dynamolock.Client) error {
	former, err := old.AcquireLockWithContext(ctx, "orders")
	if err != nil {
		return err
	}
	defer old.ReleaseLock(former)
	return client.Do(ctx, "orders", func(ctx context.Context, lock *holdfast.Lock) error {
		return book(ctx, lock.Token())
	})
}

var _ = []any{cirelloBefore, cirelloAfter, bothLocks}
