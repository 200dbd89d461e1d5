package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"sync"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/memlock"
)

// campaign leads whenever it is this candidate's turn, until ctx ends. The ctx of
// lead ends when the lock does: what lead does must not go on after that.
//
// On DynamoDB, which keeps no queue, a leader that steps down should pause for
// longer than Options.Poll before it stands again.
func campaign(ctx context.Context, candidate *holdfast.Client, lead func(context.Context, *holdfast.Lock) error) error {
	for {
		err := candidate.Do(ctx, "leader", lead)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, holdfast.ErrLost), errors.Is(err, holdfast.ErrTTLExpired):
			log.Print(err) // somebody else leads; stand again
		case err != nil:
			return err
		}
	}
}

// One of several processes leads. When it steps down, by returning from its work,
// the next in the queue leads, and it goes to the end.
func Example_leaderElection() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	store := memlock.NewStore() // in the place of a server
	terms := make(chan *holdfast.Lock)

	var all sync.WaitGroup
	for _, name := range []string{"ann", "bea"} {
		client, err := memlock.New(&memlock.Options{Store: store, Owner: name})
		if err != nil {
			log.Fatal(err)
		}
		defer client.Close(context.Background())
		all.Go(func() {
			_ = campaign(ctx, client.Client, func(ctx context.Context, lock *holdfast.Lock) error {
				select {
				case terms <- lock: // the work of a leader
				case <-ctx.Done(): // not the leader any more
				}
				return nil // steps down
			})
		})
	}

	led := make(map[string]bool)
	rising, last := true, holdfast.Token(0)
	for len(led) < 2 {
		lock := <-terms
		led[lock.Owner()] = true
		rising, last = rising && lock.Token() > last, lock.Token()
	}
	stop()
	all.Wait()
	fmt.Println(led, "with rising tokens:", rising)
	// Output: map[ann:true bea:true] with rising tokens: true
}
