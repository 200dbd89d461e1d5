package zklock_test

import (
	"math/rand/v2"
	"net/url"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/network"
	"github.com/holdfast-go/holdfast/internal/zkfake"
	"github.com/holdfast-go/holdfast/locktest"
	"github.com/holdfast-go/holdfast/zklock"
)

// virtualSession is the session timeout of clients in virtual time.
const virtualSession = 6 * time.Second

// TestConformance runs the suite in virtual time, with each form of names, on one server and through a follower of three.
// After a cut the network goes on with the one, and has forgotten the connections to the other.
func TestConformance(t *testing.T) {
	for name, names := range map[string]zklock.Names{
		"curator": zklock.CuratorNames, "curator-rw": zklock.CuratorRWNames, "curator-latch": zklock.CuratorLatchNames, "kazoo": zklock.KazooNames,
	} {
		for place, member := range map[string]int{"alone": 0, "follower": 1} {
			t.Run(name+"/"+place, func(t *testing.T) {
				t.Parallel()
				locktest.Run(t, locktest.Engine{
					Start: func(t testing.TB) locktest.Harness {
						v := newVirtual(t, zkfake.Config{Members: 1 + 2*member}, []int{member}, names)
						v.forgets = member > 0
						return v
					},
					Bubble:     synctest.Test,
					Lease:      virtualSession,
					Soon:       time.Second,
					Late:       3 * time.Second, // the session's end is rounded up to a tick
					Ordered:    true,
					Shares:     names != zklock.CuratorLatchNames,
					Heartbeats: locktest.PerSession,
				})
			})
		}
	}
}

// virtual is an ensemble in virtual time, and what its clients have in common.
type virtual struct {
	ensemble *zkfake.Ensemble
	servers  []string
	names    zklock.Names
	forgets  bool // connections end with a cut, and what was sent meanwhile is lost; else that is delivered
}

// newVirtual starts an ensemble whose clients connect to some of its members. Messages take a millisecond or so.
func newVirtual(t testing.TB, config zkfake.Config, members []int, names zklock.Names) *virtual {
	t.Helper()
	some := func() time.Duration { return 100*time.Microsecond + rand.N(2*time.Millisecond) }
	config.Latency, config.Delay = some, some
	v := &virtual{ensemble: zkfake.New(config), names: names}
	t.Cleanup(v.ensemble.Close)
	for _, i := range members {
		v.servers = append(v.servers, v.ensemble.Addrs()[i])
	}
	return v
}

// NewClient implements [locktest.Harness].
func (v *virtual) NewClient(t testing.TB, o locktest.ClientOptions) *locktest.Client {
	t.Helper()
	link, fake := v.ensemble.Link(), &clock.Fake{}
	client, err := zklock.Dial(network.With(clock.With(t.Context(), fake), link.Dial), v.servers, &zklock.Options{
		Root: virtualRoot, SessionTimeout: virtualSession, Names: v.names, Owner: o.Owner, Hooks: o.Hooks,
	})
	if err != nil {
		t.Fatal(err)
	}
	session := func() int64 { return client.Conn().SessionID() }
	heal := func() {
		if v.forgets {
			link.Break()
		}
		link.Heal()
	}
	return &locktest.Client{
		API:  client.Client,
		Cut:  link.Cut,
		Heal: heal,
		// The client must not hear of its own deletions: in a live session that would be no expiry.
		Expire: func() {
			cut := link.IsCut()
			link.Cut()
			v.ensemble.Expire(session())
			link.Break()
			if !cut {
				link.Heal()
			}
		},
		// A stopped process runs no timers, reads nothing and writes nothing.
		Pause:  func() { fake.Pause(); link.Cut() },
		Resume: func() { heal(); fake.Resume() },
		Jump:   fake.Jump,
		Lose: func(n int, how locktest.Loss) func() bool {
			late := time.Duration(0)
			if how == locktest.LateRequest {
				late = virtualSession / 2
			}
			link.LoseNth(n, how != locktest.LostRequest, late)
			return link.Met
		},
		Watches: func() {
			t.Helper()
			for range 1000 {
				if v.ensemble.Watched(session()) {
					return
				}
				time.Sleep(time.Millisecond)
			}
			t.Error("the own znodes are not watched")
		},
	}
}

const virtualRoot = "/virtual"

// Residue implements [locktest.Harness].
func (v *virtual) Residue(_ testing.TB, key string) []string {
	var left []string
	for _, lock := range v.ensemble.Children(virtualRoot) {
		if name, err := url.PathUnescape(lock); err != nil || name != key {
			continue
		}
		path := virtualRoot + "/" + lock
		for _, parent := range []string{path, path + "/locks", path + "/leases", path + "-__lock__"} { // of locks, and of semaphores
			left = append(left, v.ensemble.Children(parent)...)
		}
	}
	return slices.DeleteFunc(left, func(node string) bool { return node == "locks" || node == "leases" })
}
