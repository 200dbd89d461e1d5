package integration_test

import (
	"context"
	"errors"
	"path"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/internal/verdict"
	"github.com/holdfast-go/holdfast/integration/internal/zkserver"
	"github.com/holdfast-go/holdfast/locktest/logtest"
	"github.com/holdfast-go/holdfast/zklock"
)

// staleTimeout is the session timeout of these tests: a client doubts a node after twice that.
const staleTimeout = time.Second

// leaves is the log text of a client that leaves a stale server.
const leaves = "the server hides a change that the leader has, and is left for the next"

// ghostName is the node of a contender before all others, with the owner name ghost.
const ghostName = "_c_00000000-0000-4000-8000-000000000000-lock-0000000000"

// staleEnsemble is an ensemble with one server that shows nodes that the others do not have.
type staleEnsemble struct {
	servers  []string
	stale    int
	ensemble *zkserver.Ensemble
	logs     *logtest.Recorder // of the latest client
}

// client makes a client that is connected to the stale server, where the queue of a key begins with a ghost, just before the client doubts
// the ghost.
func (p *staleEnsemble) client(t *testing.T, key string) *zklock.Client {
	t.Helper()
	other := p.servers[(p.stale+1)%len(p.servers)]
	maker := dialServers(t, zklock.Options{PersistentParents: true}, other)
	lock := take(t, maker, key)
	parent := path.Dir(nodeOf(t, maker, lock))
	release(t, lock)
	must(t, errOf(plain(t, p.servers[p.stale]).Sync(parent)))
	must(t, p.ensemble.Plant(p.stale, parent+"/"+ghostName, []byte("ghost")))

	second := proxy(t, other)
	second.RefuseNew() // so that the client chooses the stale server
	p.logs = &logtest.Recorder{}
	client := dialServers(t, zklock.Options{SessionTimeout: staleTimeout, Logger: p.logs.Logger()}, p.servers[p.stale], second.Addr())
	must(t, second.Heal())
	if info, err := client.Inspect(limited(t), key); err != nil || info.Owner != "ghost" {
		verdict.Inconclusive(t, "the holder is %+v, %v; want the ghost", info, err)
	}
	return client
}

// TestStaleServer guards against an endless wait behind a znode that only the client's server still has: ZOOKEEPER-5010.
func TestStaleServer(t *testing.T) {
	start(t)
	e := zkserver.NewEnsemble(t, zkserver.Config{Controlled: true, MaxSessionTimeout: longest})
	_, followers := leaderAndFollowers(t, e)
	p := &staleEnsemble{servers: e.Addrs(), stale: followers[0], ensemble: e}
	for name, call := range map[string]func(t *testing.T, client *zklock.Client, key string) (done bool, err error){
		"Acquire": func(t *testing.T, client *zklock.Client, key string) (bool, error) {
			release(t, take(t, client, key))
			if !p.logs.Has(leaves) {
				verdict.Inconclusive(t, "the client left the server for another reason")
			}
			return true, nil
		},
		"TryAcquire": func(t *testing.T, client *zklock.Client, key string) (bool, error) {
			_, err := client.TryAcquire(limited(t), key)
			return err == nil, err
		},
		"a wait that is shorter than the time to the first doubt": func(t *testing.T, client *zklock.Client, key string) (bool, error) {
			_, err := client.Acquire(limited(t), key, holdfast.WithWait(staleTimeout/2))
			return err == nil, err
		},
		"Break": func(t *testing.T, client *zklock.Client, key string) (bool, error) {
			info, err := client.Inspect(limited(t), key)
			if err == nil && info.Held { // again if the other server lags behind the client, which comes back then
				if err := client.Break(limited(t), info); !errors.Is(err, holdfast.ErrChanged) {
					t.Errorf("Break of the ghost: %v, want ErrChanged", err)
				}
			}
			return err == nil && !info.Held, err
		},
		"Observe": func(t *testing.T, client *zklock.Client, key string) (bool, error) {
			for info, err := range client.Observe(limited(t), key) {
				if err != nil || !info.Held {
					return err == nil, err
				}
			}
			return false, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			key := newKey(t)
			client := p.client(t, key)
			eventually(t, "the client leaves the stale server", func() bool {
				done, err := call(t, client, key)
				if err != nil && !errors.Is(err, holdfast.ErrHeld) && !errors.Is(err, holdfast.ErrDisconnected) &&
					!errors.Is(err, context.DeadlineExceeded) {
					must(t, err)
				}
				return done
			})
		})
	}
}
