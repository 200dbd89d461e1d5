package migrating

import (
	"context"
	"errors"
	"log"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dynamolock"
	"github.com/holdfast-go/holdfast/memlock"
	"github.com/holdfast-go/holdfast/zklock"
)

func sharedLockAfter(ctx context.Context) error {
	client, err := zklock.Dial(ctx, []string{"localhost:2181"}, nil)
	if err != nil {
		return err
	}
	defer client.Close(context.WithoutCancel(ctx))

	lock, err := client.Acquire(ctx, "resource1", holdfast.WithTTL(30*time.Second))
	if err != nil {
		return err
	}
	log.Print("resource locked")
	ctx, cancel := lock.Context(ctx)
	defer cancel()
	if err := work(ctx); err != nil {
		log.Print(err) // it ends when the TTL passes
	}
	return lock.Release(ctx)
}

func sharedLockRetry(ctx context.Context, client *zklock.Client) (*holdfast.Lock, error) {
	return client.Acquire(ctx, "resource1",
		holdfast.WithWait(time.Minute),                                            // for a holder
		holdfast.WithRetry(holdfast.Retry{Attempts: 6, Initial: time.Second / 2})) // when ZooKeeper fails
}

func lockClientAfter(ctx context.Context, ddb *dynamodb.Client) error {
	client, err := dynamolock.New(ctx, ddb, &dynamolock.Options{
		Table:     "my-lock-table-name",
		Keys:      dynamolock.Keys{Partition: dynamolock.KeyAttr{Name: "mylocks"}},
		Lease:     10 * time.Second,
		Heartbeat: 3 * time.Second,
	})
	if err != nil {
		return err
	}
	defer client.Close(context.WithoutCancel(ctx))

	return client.Do(ctx, "my-fail-open-lock", func(ctx context.Context, lock *holdfast.Lock) error {
		log.Printf("acquired fail open lock with fencing token %d", lock.Token())
		return book(ctx, lock.Token())
	})
}

func lockClientClosed(ctx context.Context, ddb *dynamodb.Client) (*dynamolock.Client, error) {
	return dynamolock.New(ctx, ddb, &dynamolock.Options{
		Table: "my-lock-table-name",
		Keys:  dynamolock.Keys{Partition: dynamolock.KeyAttr{Name: "mylocks"}},
		Mode:  dynamolock.FailClosed, // on keys that no FailOpen client uses
	})
}

func cleverAfter(ctx context.Context, client *dynamolock.Client) error {
	lock, err := client.AcquireAny(ctx, []string{"shard-0", "shard-1"},
		holdfast.WithOwner("importer:1f2e"), holdfast.WithReclaim(),
		holdfast.WithTTL(time.Hour), holdfast.WithRandomOrder())
	if errors.Is(err, holdfast.ErrHeld) {
		return nil // all of them are taken
	}
	if err != nil {
		return err
	}
	defer lock.Release(ctx)
	ctx, cancel := lock.Context(ctx)
	defer cancel()
	return work(ctx)
}

func loccoAfter(ctx context.Context, client *holdfast.Client) error {
	retry := holdfast.Retry{Attempts: 10, Initial: 200 * time.Millisecond, Max: 200 * time.Millisecond}
	return client.Do(ctx, "user:123", func(ctx context.Context, lock *holdfast.Lock) error {
		if err := lock.Extend(2 * time.Second); err != nil { // from now
			return err
		}
		return work(ctx)
	}, holdfast.WithTTL(3*time.Second), holdfast.WithWait(2*time.Second), holdfast.WithRetry(retry))
}

func loccoInMemory() (*holdfast.Client, error) {
	client, err := memlock.New(nil)
	if err != nil {
		return nil, err
	}
	return client.Client, nil
}

func curatorAfter(ctx context.Context, client *zklock.Client) error {
	lock, err := client.Acquire(ctx, "/app/locks/orders", holdfast.WithWait(10*time.Second))
	if errors.Is(err, holdfast.ErrHeld) {
		return nil // ten seconds have passed
	}
	if err != nil {
		return err
	}
	defer lock.Release(ctx)
	ctx, cancel := lock.Context(ctx) // it ends when the lock is lost
	defer cancel()
	return work(ctx)
}

func curatorElection(ctx context.Context, client *zklock.Client) error {
	election, err := client.Election("/app/leader", nil)
	if err != nil {
		return err
	}
	return election.Run(ctx, func(ctx context.Context, term *holdfast.Lock) error {
		return work(ctx) // nil: it steps down, and stands again behind the others
	})
}

func kazooAfter(ctx context.Context) error {
	client, err := zklock.Dial(ctx, []string{"127.0.0.1:2181"}, &zklock.Options{
		Names: zklock.KazooNames, // as long as unmodified kazoo clients share the lock
		Owner: "worker-1",
	})
	if err != nil {
		return err
	}
	defer client.Close(context.WithoutCancel(ctx))

	return client.Do(ctx, "/app/locks/orders", func(ctx context.Context, lock *holdfast.Lock) error {
		return work(ctx)
	})
}

func kazooContenders(ctx context.Context, client *zklock.Client) ([]string, error) {
	info, err := client.Inspect(ctx, "/app/locks/orders")
	if err != nil || !info.Held {
		return nil, err
	}
	names := []string{info.Owner}
	for _, waiter := range info.Queue {
		names = append(names, waiter.Owner)
	}
	return names, nil
}

func javaAfter(ctx context.Context, ddb *dynamodb.Client) error {
	client, err := dynamolock.New(ctx, ddb, &dynamolock.Options{
		Table:     "holdfast-locks", // another table: the items differ
		Lease:     10 * time.Second,
		Heartbeat: 3 * time.Second,
	})
	if err != nil {
		return err
	}
	defer client.Close(context.WithoutCancel(ctx))

	// A try cannot know whether a holder is alive, so it waits for longer than a
	// lease, as the Java client does.
	lock, err := client.Acquire(ctx, "Moe", holdfast.WithWait(15*time.Second))
	if errors.Is(err, holdfast.ErrHeld) {
		log.Print("failed to acquire lock")
		return nil
	}
	if err != nil {
		return err
	}
	ctx, cancel := lock.Context(ctx)
	defer cancel()
	return errors.Join(work(ctx), lock.Release(ctx))
}

var _ = []any{
	sharedLockAfter, sharedLockRetry, lockClientAfter, lockClientClosed, cleverAfter, loccoAfter, loccoInMemory,
	curatorAfter, curatorElection, kazooAfter, kazooContenders, javaAfter,
}
