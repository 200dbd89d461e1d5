package holdfast_test

import (
	"context"
	"fmt"
	"log"
	"sync"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/memlock"
)

// A record of what was done, in the database that the job writes to. It keeps the
// token of the last write and refuses older ones.
type record struct {
	mu   sync.Mutex
	day  string
	last holdfast.Token
}

func (r *record) done(day string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.day >= day
}

func (r *record) write(day string, token holdfast.Token) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if token < r.last {
		return fmt.Errorf("refused: token %d is older than %d", token, r.last)
	}
	r.day, r.last = day, token
	return nil
}

// nightly does the job of a day unless it is done. The lock alone would not be
// enough: a machine whose clock is a minute late starts after the first has
// released it.
func nightly(ctx context.Context, client *holdfast.Client, r *record, day string) error {
	return client.Do(ctx, "nightly", func(ctx context.Context, lock *holdfast.Lock) error {
		if r.done(day) {
			fmt.Println(lock.Owner(), "finds", day, "done")
			return nil
		}
		fmt.Println(lock.Owner(), "does", day)
		return r.write(day, lock.Token())
	})
}

// A job is started on several machines, so that it runs even if one of them is
// down, but only once.
func Example_cronJobOnce() {
	ctx := context.Background()
	store := memlock.NewStore() // stands in for a server
	var r record
	for _, day := range []string{"2026-11-20", "2026-11-21"} {
		for _, machine := range []string{"m1", "m2", "m3"} {
			client, err := memlock.New(&memlock.Options{Store: store, Owner: machine})
			if err != nil {
				log.Fatal(err)
			}
			if err := nightly(ctx, client.Client, &r, day); err != nil {
				log.Fatal(err)
			}
			client.Close(ctx)
		}
	}
	// Output:
	// m1 does 2026-11-20
	// m2 finds 2026-11-20 done
	// m3 finds 2026-11-20 done
	// m1 does 2026-11-21
	// m2 finds 2026-11-21 done
	// m3 finds 2026-11-21 done
}
