package integration_test

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/internal/zkserver"
	"github.com/holdfast-go/holdfast/zklock"
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
	"elections, LeaderSelector":                          {electZklock, electSelector},
	"elections, LeaderLatch":                             {electZklockLatch, electLatch},
	"elections, kazoo":                                   {electZklockKazoo, electKazoo},
}

// interopSession is the session timeout of the peers: short, because each crash and each pause costs one.
const interopSession = 2 * time.Second

// TestInteropFleet is a fleet of programs that share locks on ZooKeeper. A peer that wakes up after its session still
// believes in its lock, and is excused; a holder of ours never is. The term of a leader of ours lasts for as long as the ctx of
// lead says so. Nothing stays behind.
//
// HOLDFAST_INTEROP says for how long at least; HOLDFAST_SEED repeats the random times.
func TestInteropFleet(t *testing.T) {
	start(t)
	duration, seed := setting(t, "HOLDFAST_INTEROP", 5*time.Second, time.ParseDuration), seeded(t)
	addr := server(t).Addr()
	locks, elections := make(map[string]func(*testing.T)), make(map[string]func(*testing.T))
	for i, name := range slices.Sorted(maps.Keys(interopFleets)) {
		tests := locks
		if strings.HasPrefix(name, "elections") {
			tests = elections
		}
		tests[name] = func(t *testing.T) {
			if slices.Contains(interopFleets[name], readKazoo) {
				p := zkPeer(t, addr, readKazoo, "version", interopSession, nil)
				p.finish(t)
				if strings.HasPrefix(p.version, "2.8.") {
					t.Skipf("kazoo %s: before 2.9 its readers and writers can deadlock (kazoo#649); \"make test-versions\" has a newer one", p.version)
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
	together(t, locks)
	together(t, elections) // later: all at once are too much for two cores
}

// An electorate is our elections and another program's that share a path.
type electorate struct {
	names        zklock.Names
	ours, theirs fleetLanguage
	question     string // that shows the candidates, in their order
	mark         string // of the leader in the answer
}

var electorates = map[string]electorate{
	"LeaderSelector": {zklock.CuratorNames, electZklock, electSelector, "leaders", "*"},
	"LeaderLatch":    {zklock.CuratorLatchNames, electZklockLatch, electLatch, "latches", "*"},
	"kazoo":          {zklock.KazooNames, electZklockKazoo, electKazoo, "contenders", ""},
}

// TestInteropLeaders asks each side who leads: the owner name of our candidates is the id
// of Curator's participants and of kazoo's contenders, both ways.
func TestInteropLeaders(t *testing.T) {
	start(t)
	addr := server(t).Addr()
	for name, who := range electorates {
		t.Run(name, func(t *testing.T) {
			conn := plain(t, addr)
			path := persistent(t, conn)
			opts := options()
			opts.Names, opts.Owner = who.names, "ours"
			client := dial(t, addr, opts)
			e, err := client.Election(path, nil)
			must(t, err)
			other := zkPeer(t, addr, who.theirs, "theirs", options().SessionTimeout, nil)
			leads := func(owner string, token uint64) {
				t.Helper()
				info, err := e.Leader(limited(t))
				if err != nil || info.Owner != owner || uint64(info.Token) != token {
					t.Errorf("Leader: %+v, %v; want %s with token %d", info, err, owner, token)
				}
			}

			theirs := other.acquire(path)
			leads("theirs", theirs.Token)
			terms, leave := make(chan *holdfast.Lock, 1), make(chan error)
			over := make(chan error, 1)
			go func() {
				over <- e.Run(limited(t), func(_ context.Context, term *holdfast.Lock) error {
					terms <- term
					return <-leave
				})
			}()
			holds(t, conn, path, 2)
			got := other.ask(who.question, path)
			slices.Sort(got)
			if want := []string{"ours", "theirs" + who.mark}; !slices.Equal(got, want) {
				t.Errorf("they lead: %q, want %q", got, want)
			}
			other.release()
			term := receive(t, "a term", terms)
			leads("ours", uint64(term.Token()))
			if got, want := other.ask(who.question, path), []string{"ours" + who.mark}; !slices.Equal(got, want) {
				t.Errorf("we lead: %q, want %q", got, want)
			}
			leave <- holdfast.ErrWithdrawn
			check(t, receive(t, "the end of Run", over))
			noResidue(t, conn, path)
		})
	}
}

const kazooObjects = `
import sys
from kazoo.client import KazooClient
c = KazooClient(hosts=sys.argv[1], timeout=20)
c.start()
objects = [c.Lock("/kzlock"), c.WriteLock("/kzwrite"), c.Semaphore("/kzsem", max_leases=2)]
for line in sys.stdin:
    said = []
    for x in objects:
        try:
            x.acquire(timeout=30)
            x.release()
        except Exception as e:
            said.append(type(x).__name__ + " " + type(e).__name__)
    print(", ".join(said) or "ok", flush=True)
`

// Objects of kazoo live on after the server has removed all empty containers: with KazooNames parents are none.
func TestKazooObjects_ContainersReaped_LiveOn(t *testing.T) {
	start(t)
	s := zkserver.New(t, reaping())
	opts := options()
	opts.Names = zklock.KazooNames
	kazoo := dial(t, s.Addr(), opts)
	curator := dial(t, s.Addr(), nil)
	cmd := exec.Command(kazooCommand(t)[0], "-c", kazooObjects, s.Addr())
	in, err := cmd.StdinPipe()
	check(t, err)
	out, err := cmd.StdoutPipe()
	check(t, err)
	check(t, cmd.Start())
	defer func() { check(t, cmd.Wait()) }()
	defer in.Close()
	lines := bufio.NewScanner(out)
	conn := plain(t, s.Addr())
	keys := map[string][]holdfast.Option{"/kzlock": nil, "/kzwrite": nil, "/kzsem": {holdfast.WithLimit(2)}}
	for key, opts := range keys {
		lock, err := kazoo.Acquire(limited(t), key, opts...)
		if err != nil {
			t.Fatal(err)
		}
		_, err = conn.Create(key+"/keep", nil, 0, zk.WorldACL(zk.PermAll)) // until kazoo has seen the parent
		check(t, err)
		check(t, lock.Release(limited(t)))
	}
	for round := range 2 {
		fmt.Fprintln(in, "go")
		if !lines.Scan() || strings.TrimSpace(lines.Text()) != "ok" {
			t.Fatalf("round %d: kazoo says %q, %v", round, lines.Text(), lines.Err())
		}
		if round > 0 {
			break
		}
		for key := range keys {
			check(t, conn.Delete(key+"/keep", -1))
		}
		lock, err := curator.Acquire(limited(t), "/last") // is removed after all containers that are empty now
		if err != nil {
			t.Fatal(err)
		}
		check(t, lock.Release(limited(t)))
		eventually(t, "an empty container is removed", func() bool {
			exists, _, err := conn.Exists("/last")
			return err == nil && !exists
		})
	}
}
