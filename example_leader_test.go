package holdfast_test

import (
	"context"
	"fmt"
	"log"
	"sync"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/memlock"
)

// One of several processes leads, and tells the others its address. When it steps down by
// returning from its work, the next in the queue leads, and it goes to the end.
func Example_leaderElection() {
	store := memlock.NewStore() // stands in for a server
	terms := make(chan *holdfast.Lock)
	var all sync.WaitGroup
	for _, name := range []string{"ann", "bea"} {
		client, err := memlock.New(&memlock.Options{Store: store, Owner: name})
		if err != nil {
			log.Fatal(err)
		}
		defer client.Close(context.Background())
		election, err := client.Election("leader", &holdfast.ElectionOptions{
			Candidacy: []holdfast.Option{holdfast.WithData([]byte(name + ":8080"))},
		})
		if err != nil {
			log.Fatal(err)
		}
		// A liveness probe calls election.Check, and readers of the address election.Leader.
		all.Go(func() {
			err := election.Run(context.Background(), func(ctx context.Context, term *holdfast.Lock) error {
				select {
				case terms <- term: // the work of a leader
					return holdfast.ErrWithdrawn // one term is enough; nil would stand again
				case <-ctx.Done(): // no longer the leader
					return ctx.Err()
				}
			})
			if err != nil {
				log.Print(err)
			}
		})
	}
	first, second := <-terms, <-terms
	all.Wait()
	fmt.Println(first.Owner() != second.Owner(), second.Token() > first.Token())
	// Output: true true
}
