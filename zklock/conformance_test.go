package zklock_test

import (
	"math/rand/v2"
	"net/url"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/driver/drivertest"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/network"
	"github.com/holdfast-go/holdfast/internal/zkfake"
	"github.com/holdfast-go/holdfast/locktest"
	"github.com/holdfast-go/holdfast/zklock"
)

// virtualSession is the session timeout of clients in virtual time.
const virtualSession = 6 * time.Second

// TestConformance runs the suite in virtual time, with each form of names, on one server and through a follower of three.
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
					Late:       time.Duration(3+member) * time.Second, // see virtual
					Unknown:    []string{"Since", "Lease", "LastHeard"},
					Heartbeats: locktest.PerSession,
				})
			})
		}
	}
}

// virtual is an ensemble in virtual time, and what its clients have in common. The end of a session is rounded up to a tick, which is 2 s,
// and a follower tells its leader up to half a tick late of whom it has heard.
type virtual struct {
	ensemble *zkfake.Ensemble
	servers  []string
	names    zklock.Names
	forgets  bool // connections end while a client is stopped
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
	link, fake := v.ensemble.Link(), &drivertest.Clock{}
	client, err := zklock.Dial(network.With(clock.With(t.Context(), fake), link.Dial), v.servers, &zklock.Options{
		Root: virtualRoot, SessionTimeout: virtualSession, Names: v.names, Owner: o.Owner, OnEvent: o.OnEvent,
	})
	if err != nil {
		t.Fatal(err)
	}
	if v.names == zklock.KazooNames {
		client.Chain()
	}
	session := func() int64 { return client.Conn().SessionID() }
	var lost atomic.Bool
	heal := func() {
		if lost.Swap(false) {
			link.Break()
		}
		link.SetFate(nil)
		link.Heal()
	}
	return &locktest.Client{
		API:  client.Client,
		Cut:  func() { lost.Store(true); link.Cut() },
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
		Pause:  func() { fake.Pause(); lost.Store(v.forgets); link.Cut() },
		Resume: func() { heal(); fake.Resume() },
		Jump:   fake.Jump,
		Stall:  link.Cut,
		Lose:   func(next func() locktest.Fate) { link.SetFate(fates(next)) },
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

// fates are those of requests.
func fates(next func() locktest.Fate) func() zkfake.Fate {
	if next == nil {
		return nil
	}
	return func() zkfake.Fate {
		switch next() {
		case locktest.LostRequest:
			return zkfake.Lost()
		case locktest.LostReply:
			return zkfake.Unanswered(0)
		case locktest.LateRequest:
			return zkfake.Unanswered(virtualSession / 2)
		case locktest.LateReply:
			return zkfake.AnsweredLate(virtualSession / 8)
		}
		return zkfake.Fate{}
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
		left = append(left, v.ensemble.Children(virtualRoot+"/"+lock)...)
	}
	return left
}
