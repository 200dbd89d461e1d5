package memlock_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/memlock"
)

// A program that takes a [holdfast.Client] can be tested without a server: here,
// that its work ends when the client is cut off for longer than its lease. (In a
// testing/synctest bubble this takes no time.)
func ExampleStore_Cut() {
	ctx := context.Background()
	begun := make(chan struct{})
	work := func(ctx context.Context, client *holdfast.Client) error { // what is tested
		return client.Do(ctx, "orders/42", func(ctx context.Context, lock *holdfast.Lock) error {
			fmt.Println("works")
			close(begun)
			<-ctx.Done()
			return context.Cause(ctx)
		})
	}

	store := memlock.NewStore()
	worker, err := memlock.New(&memlock.Options{Store: store, Lease: 100 * time.Millisecond})
	if err != nil {
		log.Fatal(err)
	}
	go func() {
		<-begun
		store.Cut(worker)
	}()
	err = work(ctx, worker.Client)
	fmt.Println("stops, as the lock is lost:", errors.Is(err, holdfast.ErrLost))

	store.Heal(worker)
	fmt.Println("closes:", worker.Close(ctx))
	// Output:
	// works
	// stops, as the lock is lost: true
	// closes: <nil>
}

// A session can be ended at once, as an operator or a server's failure would. The
// key goes to the next client, with a greater token.
func ExampleStore_Expire() {
	ctx := context.Background()
	store := memlock.NewStore()
	open := func(owner string) *memlock.Client {
		client, err := memlock.New(&memlock.Options{Store: store, Owner: owner})
		if err != nil {
			log.Fatal(err)
		}
		return client
	}
	alice, bob := open("alice"), open("bob")
	defer alice.Close(ctx)
	defer bob.Close(ctx)
	hers, err := alice.Acquire(ctx, "orders/42")
	if err != nil {
		log.Fatal(err)
	}

	store.Expire(alice)
	his, err := bob.Acquire(ctx, "orders/42")
	if err != nil {
		log.Fatal(err)
	}
	<-hers.Done()
	fmt.Println("alice:", hers.Err())
	fmt.Println("bob has a greater token:", his.Token() > hers.Token())
	// Output:
	// alice: lock "orders/42" (token 1) lost: session expired
	// bob has a greater token: true
}
