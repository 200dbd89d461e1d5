package integration_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/integration/internal/verdict"
	"github.com/holdfast-go/holdfast/zklock"
)

// An interopPermits is one of our forms of names and a recipe of another program: what that does when all our permits are
// taken, and what we do when it has its lock, or the only permit.
type interopPermits struct {
	names      zklock.Names
	peer       fleetLanguage
	recipe     string
	waits, us  manners
	semaphores bool // its recipe is told how many permits there are
}

// interopPermitPairs is the measured behaviour, as docs/zookeeper.md lists it.
var interopPermitPairs = []interopPermits{
	{zklock.CuratorNames, peerCurator, "InterProcessSemaphoreV2", waiting, waiting, true},
	{zklock.CuratorNames, peerCurator, "InterProcessMutex", passing, refusing, false},
	{zklock.CuratorNames, peerKazoo, "Semaphore", passing, refusing, true},
	{zklock.KazooNames, peerKazoo, "Semaphore", waiting, waiting, true},
	{zklock.KazooNames, peerKazoo, "Lock", passing, refusing, false},
	{zklock.KazooNames, peerCurator, "InterProcessSemaphoreV2", passing, refusing, true},
}

// TestInteropPermits lets our permits be taken while another program's recipe contends, and the reverse, with real programs on a
// real server. It checks the table of docs/zookeeper.md, and prints the measured one.
func TestInteropPermits(t *testing.T) {
	start(t)
	c := newInteropCell(t, server(t).Addr(), peerCurator, peerKazoo)
	measured := []string{interopPermitsHead}
	for _, pair := range interopPermitPairs {
		t.Run(fmt.Sprintf("%s names, %s %s", pair.names, pair.peer, pair.recipe), func(t *testing.T) {
			client := dial(t, c.addr, &zklock.Options{Names: pair.names})
			got := pair
			got.waits = c.permitsTaken(t, client, pair)
			got.us = c.permitWanted(t, client, pair)
			if got != pair {
				t.Errorf("measured\n%s\nwant\n%s", got.row(), pair.row())
			}
			measured = append(measured, got.row())
		})
	}
	t.Logf("with Curator %s and kazoo %s:\n%s", c.peers[peerCurator].version, c.peers[peerKazoo].version, strings.Join(measured, "\n"))
}

// order has the peer of a pair acquire a key, of as many permits if it is a semaphore.
func (p interopPermits) order(peer *peer, key string, n int) {
	recipe := p.recipe
	if p.semaphores {
		recipe = ofPermits(recipe, n)
	}
	peer.do("acquire", key, recipe)
}

// permitsTaken reports what the other program does when all our permits are taken.
func (c *interopCell) permitsTaken(t *testing.T, client *zklock.Client, pair interopPermits) manners {
	const n = 3
	key, peer := "/"+newKey(t), c.peers[pair.peer].in(t)
	var locks []*holdfast.Lock
	for range n {
		lock, err := client.TryAcquire(limited(t), key, holdfast.WithLimit(n))
		must(t, err)
		locks = append(locks, lock)
	}
	pair.order(peer, key, n)
	// It stands in a queue, or has its lock. A server does not tell who watches children.
	eventually(t, "it has a node", func() bool {
		nodes := append(ephemerals(t, c.conn, key), ephemerals(t, c.conn, key+"-__lock__")...)
		return slices.ContainsFunc(nodes, func(e ephemeral) bool { return e.session != client.Conn().SessionID() })
	})
	did := waiting
	limit := time.Second // if that is too short, it only seems to wait
	if pair.waits == passing {
		limit = patience
	}
	select {
	case r := <-peer.answers:
		if r.What != fleetAcquired {
			verdict.Fatalf(t, "it answers %s %q", r.What, r.Note)
		}
		did = passing
	case <-time.After(limit):
	}
	for _, lock := range locks {
		must(t, lock.Verify(limited(t)))
	}
	must(t, locks[1].Release(limited(t)))
	if did == waiting {
		peer.says(fleetAcquired)
		if _, err := client.TryAcquire(limited(t), key, holdfast.WithLimit(n)); !errors.Is(err, holdfast.ErrHeld) {
			t.Errorf("a permit too many: %v", err)
		}
	}
	peer.release()
	must(t, locks[0].Release(limited(t)))
	must(t, locks[2].Release(limited(t)))
	return did
}

// permitWanted reports what we do when the other program has its lock, or the only permit.
func (c *interopCell) permitWanted(t *testing.T, client *zklock.Client, pair interopPermits) manners {
	key, peer := "/"+newKey(t), c.peers[pair.peer].in(t)
	pair.order(peer, key, 1)
	peer.says(fleetAcquired)
	defer peer.release()
	lock, err := client.TryAcquire(limited(t), key, holdfast.WithLimit(1))
	switch {
	case err == nil:
		must(t, lock.Release(limited(t)))
		return passing
	case errors.Is(err, holdfast.ErrHeld):
		info, err := client.Inspect(limited(t), key)
		if must(t, err); !info.Held || !info.Shared || len(info.Holders) != 1 {
			t.Errorf("Inspect says %+v", info)
		}
		if _, err := client.TryAcquire(limited(t), key); !errors.Is(err, driver.ErrMismatch) {
			t.Errorf("a lock beside its permit: %v", err)
		}
		return waiting
	case errors.Is(err, driver.ErrMismatch):
		return refusing
	}
	t.Fatal(err)
	return ""
}

const interopPermitsHead = "| `Names` | other program | it waits for our permits | our permit waits for it |"

func (p interopPermits) row() string {
	form := map[zklock.Names]string{zklock.CuratorNames: "CuratorNames", zklock.KazooNames: "KazooNames"}[p.names]
	return fmt.Sprintf("| `%s` | %s `%s` | %s | %s |", form, p.peer, p.recipe, p.waits, p.us)
}

// TestInteropPermitsAreDocumented checks docs/zookeeper.md against the expectations of TestInteropPermits.
func TestInteropPermitsAreDocumented(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile(filepath.Join("..", "docs", "zookeeper.md"))
	must(t, err)
	want := []string{interopPermitsHead}
	for _, pair := range interopPermitPairs {
		want = append(want, pair.row())
	}
	for _, row := range want {
		if !strings.Contains(string(doc), row) {
			t.Errorf("docs/zookeeper.md lacks\n%s", row)
		}
	}
}

// interopPermitFleets are the programs that can share a semaphore.
var interopPermitFleets = map[string][]fleetLanguage{
	"CuratorNames, Curator": {permitZklock, permitCurator},
	"KazooNames, kazoo":     {permitZklockKazoo, permitKazoo},
}

// TestInteropPermitFleet is a fleet of programs that share a semaphore, and of which some are killed while they have a permit: never
// are there more of them than permits, and none is lost.
func TestInteropPermitFleet(t *testing.T) {
	start(t)
	duration, seed := setting(t, "HOLDFAST_INTEROP", 5*time.Second, time.ParseDuration), seeded(t)
	addr := server(t).Addr()
	tests := make(map[string]func(*testing.T))
	for i, name := range slices.Sorted(maps.Keys(interopPermitFleets)) {
		tests[name] = func(t *testing.T) {
			path := "/" + newKey(t)
			f := newFleet(t, rand.New(rand.NewPCG(seed, uint64(i))), newWitness(0), interopPermitFleets[name]...)
			f.paths, f.blows = []string{path}, []fleetBlow{fleetKill}
			f.start = func(kind fleetLanguage, name string, heard func(fleetReport)) *peer {
				return zkPeer(t, addr, kind, name, 3*time.Second, heard)
			}
			f.run(duration)
			f.judge()
			names := map[bool]zklock.Names{true: zklock.KazooNames}[strings.HasPrefix(name, "Kazoo")]
			client := dial(t, addr, &zklock.Options{Names: names})
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			for range fleetPermits {
				if _, err := client.Acquire(ctx, path, holdfast.WithLimit(fleetPermits)); err != nil {
					t.Errorf("a permit is lost: %v", err)
				}
			}
			conn := plain(t, addr)
			must(t, client.Close(limited(t)))
			for _, parent := range []string{path + "/leases", path + "/locks", path + "-__lock__"} {
				var left []ephemeral
				if !becomes(func() bool { left = ephemerals(t, conn, parent); return len(left) == 0 }) {
					t.Errorf("%v are left", left)
				}
			}
		}
	}
	together(t, tests)
}
