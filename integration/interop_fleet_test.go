package integration_test

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// interopFleets are the groups of peers that can share a lock: each respects each other one, as TestInterop shows.
var interopFleets = map[string][]fleetLanguage{
	"CuratorNames, Curator, go-zookeeper":                {peerZklock, peerCurator, peerGo},
	"CuratorNames, kazoo with patterns, go-zookeeper":    {peerZklock, peerKazooExtra, peerGo},
	"CuratorNames, Curator, kazoo renamed, go-zookeeper": {peerZklock, peerCurator, peerRenamed, peerGo},
	"KazooNames, kazoo":                                  {peerZklockKazoo, peerKazoo},
	"both names, go-zookeeper":                           {peerZklock, peerZklockKazoo, peerGo},
	"CuratorNames, readers, Curator":                     {peerZklock, readZklock, peerCurator},
	"CuratorRWNames, readers and writers, Curator":       {peerZklockRW, readZklockRW, writeCurator, readCurator},
	"KazooNames, readers and writers, kazoo":             {peerZklockKazoo, readZklockKazoo, writeKazoo, readKazoo},
}

// interopSession is the session timeout of the peers: short, because each crash and each pause costs one.
const interopSession = 2 * time.Second

// TestInteropFleet is a fleet of programs that share locks on ZooKeeper. A peer that wakes up after its session still
// believes in its lock, and is excused; a holder of ours never is. Nothing stays behind.
//
// HOLDFAST_INTEROP says for how long at least; HOLDFAST_SEED repeats the random times.
func TestInteropFleet(t *testing.T) {
	start(t)
	duration, seed := setting(t, "HOLDFAST_INTEROP", 5*time.Second, time.ParseDuration), seeded(t)
	addr := server(t).Addr()
	tests := make(map[string]func(*testing.T))
	for i, name := range slices.Sorted(maps.Keys(interopFleets)) {
		tests[name] = func(t *testing.T) {
			if slices.Contains(interopFleets[name], readKazoo) {
				p := zkPeer(t, addr, readKazoo, "version", interopSession, nil)
				p.finish(t)
				if strings.HasPrefix(p.version, "2.8.") {
					t.Skipf("kazoo %s: before 2.9 its readers and writers can wait for each other for ever (kazoo#649); \"make test-versions\" has a newer one", p.version)
				}
			}
			conn := plain(t, addr)
			path := persistent(t, conn)
			f := newFleet(t, rand.New(rand.NewPCG(seed, uint64(i))), newWitness(0), interopFleets[name]...)
			f.paths = []string{path}
			f.start = func(kind fleetLanguage, name string, heard func(fleetReport)) *peer {
				return zkPeer(t, addr, kind, name, interopSession, heard)
			}
			observing, rest := context.WithCancel(context.Background())
			defer rest()
			o, observed := observe(observing, t, addr, conn, path)
			f.run(duration)
			rest()
			<-observed
			noResidue(t, conn, path)
			noWatches(t, addr, path)
			for _, robbed := range o.judge(f.witness) {
				t.Error(robbed)
			}
			f.judge()
		}
	}
	together(t, tests)
}
