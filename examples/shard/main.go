// Shard spreads keys over several ensembles or tables, for more locks than one of them carries.
//
//	go run ./examples/shard                                                    three stores in one process
//	go run ./examples/shard -servers 'a1:2181,a2:2181,a3:2181;b1:2181,b2:2181,b3:2181'
//	                                                                           two ensembles of ZooKeeper
//	go run ./examples/shard -endpoint http://127.0.0.1:8000 -table 'locks-1;locks-2'
//	                                                                           two tables; AWS without -endpoint
//
// All programs that share a lock must agree on the list of shards: two lists may put one key in two places, where
// two programs hold it at the same time.
package main

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/examples/internal/engine"
)

func main() {
	keys := flag.Int("keys", 60, "how many locks to acquire")
	engine.MainEach(3, func(ctx context.Context, shards []*engine.Engine) error {
		return run(ctx, os.Stdout, shards, *keys)
	})
}

// run acquires locks, each on the shard of its key, and says where they are.
func run(ctx context.Context, out io.Writer, shards []*engine.Engine, keys int) (err error) {
	locks := &sharded{clients: make(map[string]*holdfast.Client)}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		err = errors.Join(err, locks.close(ctx))
	}()
	for i, e := range shards {
		client, err := e.NewClient(ctx, fmt.Sprintf("program-%d", os.Getpid()))
		if err != nil {
			return fmt.Errorf("%s: %w", e.Where, err)
		}
		// A name outlives addresses: a key stays where it is when an ensemble moves.
		locks.add(fmt.Sprintf("shard-%d", i+1), client.Client)
	}

	held := make(map[string]int)
	moved := 0
	more := append(locks.names[:len(locks.names):len(locks.names)], "another")
	for i := range keys {
		key := fmt.Sprintf("examples/shard/order-%d", i+1)
		if _, err := locks.of(key).Acquire(ctx, key); err != nil {
			return err
		}
		held[place(key, locks.names)]++
		if place(key, more) == "another" {
			moved++
		}
	}
	for i, name := range locks.names {
		fmt.Fprintf(out, "%s holds %d of %d locks: %s\n", name, held[name], keys, shards[i].Where)
	}
	fmt.Fprintf(out, "one more shard would get %d of the keys; all others would stay\n", moved)
	return nil
}

// sharded has a client for each shard. A program uses it like a client, except that each call goes to the client of
// its key. AcquireAny needs all of its keys on one shard.
type sharded struct {
	names   []string
	clients map[string]*holdfast.Client
}

func (s *sharded) add(name string, client *holdfast.Client) {
	s.names = append(s.names, name)
	s.clients[name] = client
}

// of returns the client of a key.
func (s *sharded) of(key string) *holdfast.Client { return s.clients[place(key, s.names)] }

func (s *sharded) close(ctx context.Context) error {
	var errs []error
	for _, client := range s.clients {
		errs = append(errs, client.Close(ctx))
	}
	return errors.Join(errs...)
}

// place returns the name of a key's shard, by rendezvous hashing: each shard has a random weight for each key, and
// the heaviest is chosen. Their order does not matter, and a shard that is added only takes keys, about as many from
// each of the others. The hash must be the same in all programs, so hash/maphash will not do.
func place(key string, shards []string) string {
	var chosen string
	var most uint64
	for _, name := range shards {
		hash := sha256.Sum256([]byte(name + "\x00" + key))
		if weight := binary.BigEndian.Uint64(hash[:]); chosen == "" || weight > most {
			chosen, most = name, weight
		}
	}
	return chosen
}
