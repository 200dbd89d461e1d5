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
			var mu sync.Mutex
			inside, last := 0, int64(math.MinInt64)
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
						mu.Lock()
						if inside++; inside > 1 {
							t.Errorf("%d clients hold the lock", inside)
						}
						if guard, err := client.Guard(lock); err == nil {
							seq := guard.Path[strings.LastIndex(guard.Path, "-lock-")+len("-lock-"):]
							last, _ = strconv.ParseInt(seq, 10, 64)
						}
						mu.Unlock()
						mu.Lock()
						inside--
						mu.Unlock()
						check(t, lock.Release(context.Background()))
					}
				})
			}
			wg.Wait()
			if got, want := a.count(), clients*each+1; got != want {
				t.Errorf("%d grants, want %d", got, want)
			}
			switch {
			case name == "at the end" || name == "across the end":
				if last < math.MaxInt32 && last >= 0 {
					t.Errorf("the last sequence is %d: this has not reached the end", last)
				}
			case last < int64(begin):
				t.Errorf("the last sequence is %d: the counter was not set", last)
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

// TestSequenceCounterWithPeers shows what the documentation warns of: once the counter of
// a lock's parent has reached its end, a lock shared with Curator, kazoo or go-zookeeper
// does not exclude. They order contenders by a number that is then the same for all:
// go-zookeeper enters whoever holds the lock, and the others depend on the random order
// of the server's list. Where they hold the lock, our clients still wait.
func TestSequenceCounterWithPeers(t *testing.T) {
	start(t)
	embedded := zkserver.New(t, zkserver.Config{Controlled: true, MaxSessionTimeout: longest})
	c := newInteropCell(t, embedded.Addr(), interopPeers...)
	atTheEnd := func(t *testing.T) {
		c.path, c.witness = persistent(t, c.conn), newWitness(0)
		must(t, embedded.SetCversion(c.path, math.MaxInt32))
	}
	for _, pair := range []struct{ ours, theirs fleetLanguage }{
		{peerZklock, peerCurator},
		{peerZklock, peerGo},
		{peerZklock, peerKazooExtra},
		{peerZklock, peerRenamed},
		{peerZklockKazoo, peerGo},
		{peerZklockKazoo, peerKazoo},
	} {
		t.Run(fmt.Sprintf("%s and %s", pair.ours, pair.theirs), func(t *testing.T) {
			ours, theirs := c.peers[pair.ours].in(t), c.peers[pair.theirs].in(t)
			tries, shown := 0, false
			for ; tries < 64 && !shown; tries++ {
				atTheEnd(t)
				node := nodeWith(t, c.conn, c.path, ours.acquire(c.path).Token)
				if !strings.HasSuffix(node, strconv.Itoa(math.MaxInt32)) {
					t.Fatalf("the node is %s: the counter was not set", node)
				}
				theirs.do("acquire", c.path)
				shown = contends(t, c.addr, c.conn, c.path, node, theirs)
				ours.release() // its last stamp comes after both were granted the lock
				if !shown {
					theirs.says(fleetAcquired)
				}
				theirs.release()
				if violations := c.witness.violations(true); shown != (len(violations) == 1) {
					t.Errorf("granted to both: %v, and the witness saw %q", shown, violations)
				}
			}
			if !shown {
				t.Errorf("%s has waited %d times: the documentation says that it does not", pair.theirs, tries)
			}
			t.Logf("granted to both at try %d", tries)
			if pair.theirs == peerGo && tries > 1 {
				t.Error("go-zookeeper has waited for a node of the same number")
			}

			atTheEnd(t)
			node := nodeWith(t, c.conn, c.path, theirs.acquire(c.path).Token)
			ours.do("acquire", c.path)
			if contends(t, c.addr, c.conn, c.path, node, ours) {
				t.Errorf("%s is granted what %s holds", pair.ours, pair.theirs)
			}
			theirs.release()
			ours.says(fleetAcquired)
			ours.release()
			if violations := c.witness.violations(true); len(violations) > 0 {
				t.Error(violations)
			}
		})
	}
}
