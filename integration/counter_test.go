package integration_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"math"
	"path"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/holdfast-go/holdfast/integration/internal/zkserver"
	"github.com/holdfast-go/holdfast/zklock"
)

// logged is a log that tests can read while clients write it.
type logged struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func (l *logged) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

// TestSequenceCounter tests the cure of hazard Z6: once the counter of a lock's parent
// sticks at its end, all nodes have the same number, or negative ones, and czxids decide
// the order.
func TestSequenceCounter(t *testing.T) {
	start(t)
	server := zkserver.New(t, zkserver.Config{Controlled: true, MaxSessionTimeout: longest})
	const clients, each = 8, 12
	for name, begin := range map[string]int32{
		"at the end":      math.MaxInt32,
		"across the end":  math.MaxInt32 - 20,
		"before warnings": math.MaxInt32 - 1<<27 - 1000,
		"at the warning":  math.MaxInt32 - 1<<27,
	} {
		t.Run(name, func(t *testing.T) {
			key := newKey(t)
			var log logged
			opts := zklock.Options{SessionTimeout: options().SessionTimeout, PersistentParents: true, Logger: log.logger()}
			first := dialServers(t, opts, server.Addr())
			lock := take(t, first, key)
			parent := path.Dir(nodeOf(t, first, lock))
			release(t, lock)
			must(t, server.SetCversion(parent, begin))
			a := &audit{}
			a.granted(t, lock)
			var wg sync.WaitGroup
			var last atomic.Int64
			for range clients {
				client := dialServers(t, opts, server.Addr())
				wg.Go(func() {
					for range each {
						lock, err := client.Acquire(limited(t), key)
						if err != nil {
							t.Error(err)
							return
						}
						a.granted(t, lock)
						if guard, err := client.Guard(lock); err == nil {
							sequence, _ := strconv.ParseInt(guard.Path[strings.LastIndex(guard.Path, "-lock-")+len("-lock-"):], 10, 64)
							last.Store(sequence)
						}
						check(t, lock.Release(context.Background()))
					}
				})
			}
			wg.Wait()
			if got, want := a.count(), clients*each+1; got != want {
				t.Errorf("%d grants, want %d", got, want)
			}
			atTheEnd := last.Load() < 0 || last.Load() == math.MaxInt32
			if last.Load() < int64(begin) && !atTheEnd || strings.HasSuffix(name, "the end") != atTheEnd {
				t.Errorf("the last sequence is %d after %d", last.Load(), begin)
			}
			warned := strings.Count(log.String(), "sequence counter")
			if name == "before warnings" {
				if warned != 0 {
					t.Errorf("warned too early:\n%s", log.String())
				}
			} else if warned == 0 || warned > clients+1 || !strings.Contains(log.String(), "path="+parent) {
				t.Errorf("%d warnings that name %s, want one for each client that saw it:\n%s", warned, parent, log.String())
			}
			noResidue(t, plain(t, server.Addr()), parent)
		})
	}
}

// TestSequenceCounterWithPeers shows what the documentation warns of: once the counter of a lock's parent has reached its end, a
// lock shared with Curator, kazoo or go-zookeeper does not exclude. They order contenders by a number that is then the same for all:
// go-zookeeper is granted the key beside any holder, and the others depend on the random order of the server's list. Our clients
// still wait for them.
func TestSequenceCounterWithPeers(t *testing.T) {
	start(t)
	embedded := zkserver.New(t, zkserver.Config{Controlled: true, MaxSessionTimeout: longest})
	c := newInteropCell(t, embedded.Addr(), interopPeers...)
	// meet returns what a contender does at the end of the counter.
	meet := func(t *testing.T, holder, contender fleetLanguage) manners {
		key, h, o := persistent(t, c.conn), c.peers[holder].in(t), c.peers[contender].in(t)
		must(t, embedded.SetCversion(key, math.MaxInt32))
		h.acquire(key)
		held := ephemerals(t, c.conn, key)
		if len(held) != 1 || !strings.HasSuffix(held[0].path, strconv.Itoa(math.MaxInt32)) {
			t.Fatalf("the nodes are %v: the counter was not set", held)
		}
		o.do("acquire", key)
		did := c.does(t, key, held, o)
		h.release()
		if did == waiting {
			o.says(fleetAcquired)
		}
		o.release()
		return did
	}
	for _, pair := range [][2]fleetLanguage{
		{peerZklock, peerCurator}, {peerZklock, peerGo}, {peerZklock, peerKazooExtra}, {peerZklock, peerRenamed},
		{peerZklockKazoo, peerGo}, {peerZklockKazoo, peerKazoo},
	} {
		t.Run(fmt.Sprintf("%s and %s", pair[0], pair[1]), func(t *testing.T) {
			tries := 1
			for tries < 64 && meet(t, pair[0], pair[1]) != passing {
				tries++
			}
			t.Logf("granted to both at try %d", tries)
			if tries == 64 || pair[1] == peerGo && tries > 1 {
				t.Errorf("%s has waited %d times: the documentation says that it does not", pair[1], tries)
			}
			if meet(t, pair[1], pair[0]) != waiting {
				t.Errorf("%s is granted what %s holds", pair[0], pair[1])
			}
		})
	}
}
