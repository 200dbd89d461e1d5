package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/memlock"
)

// shards are parts of the work; each worker takes one.
var shards = []string{"shards/0", "shards/1", "shards/2"}

// takeShard waits for a free shard, and looks every second. The random order keeps
// workers from all trying the same one first.
func takeShard(ctx context.Context, worker *holdfast.Client) (*holdfast.Lock, error) {
	return worker.AcquireAny(ctx, shards,
		holdfast.WithRandomOrder(),
		holdfast.WithRetry(holdfast.Retry{Initial: time.Second, Max: time.Second}))
}

// Each of several workers works on one of several shards. A worker that finds all
// of them taken waits, and takes over when another worker goes away.
func ExampleClient_AcquireAny() {
	ctx := context.Background()
	store := memlock.NewStore() // stands in for a server
	workers := make([]*memlock.Client, 4)
	for i := range workers {
		var err error
		if workers[i], err = memlock.New(&memlock.Options{Store: store, Owner: fmt.Sprint("worker ", i)}); err != nil {
			log.Fatal(err)
		}
		defer workers[i].Close(ctx)
	}

	taken := make(map[string]*holdfast.Lock)
	for _, worker := range workers[:3] {
		lock, err := takeShard(ctx, worker.Client)
		if err != nil {
			log.Fatal(err)
		}
		taken[lock.Key()] = lock
	}
	fmt.Println(len(taken), "workers have a shard each")

	_, err := workers[3].AcquireAny(ctx, shards) // without WithRetry or WithWait it looks once
	fmt.Println("the fourth finds all of them held:", errors.Is(err, holdfast.ErrHeld))

	time.AfterFunc(10*time.Millisecond, func() { store.Expire(workers[0]) }) // as if it had crashed
	lock, err := takeShard(ctx, workers[3].Client)
	if err != nil {
		log.Fatal(err)
	}
	former := taken[lock.Key()]
	fmt.Printf("%s goes on where %s has stopped, with a greater token: %v\n",
		lock.Owner(), former.Owner(), lock.Token() > former.Token())
	// Output:
	// 3 workers have a shard each
	// the fourth finds all of them held: true
	// worker 3 goes on where worker 0 has stopped, with a greater token: true
}
