package integration_test

import (
	"context"
	"errors"
	"path"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/internal/faultproxy"
	"github.com/holdfast-go/holdfast/integration/internal/verdict"
	"github.com/holdfast-go/holdfast/integration/internal/zkserver"
	"github.com/holdfast-go/holdfast/internal/logtest"
	"github.com/holdfast-go/holdfast/zklock"
)

// staleTimeout is the session timeout of these tests: a client doubts a node after twice that.
const staleTimeout = time.Second

// leaves is what a client logs when it leaves a stale server.
const leaves = "the server hides a change that the leader has, and is left for the next"

// ghostName is the node of a contender before all others, with the owner name ghost.
const ghostName = "_c_00000000-0000-4000-8000-000000000000-lock-0000000000"

// staleEnsemble is an ensemble with one server that shows nodes that the others do not have.
type staleEnsemble struct {
	ensemble *zkserver.Ensemble
	server   int
	logs     logtest.Recorder // of the clients
}

// haunt puts a ghost at the head of a key's queue, for the stale server.
func (p *staleEnsemble) haunt(t *testing.T, key string) {
	t.Helper()
	servers := p.ensemble.Addrs()
	maker := dialServers(t, zklock.Options{PersistentParents: true}, servers[(p.server+1)%len(servers)])
	lock := take(t, maker, key)
	parent := path.Dir(nodeOf(t, maker, lock))
	release(t, lock)
	must(t, errOf(plain(t, servers[p.server]).Sync(parent)))
	must(t, p.ensemble.Plant(p.server, parent+"/"+ghostName, []byte("ghost")))
}

// client makes a client that is connected to the stale server and sees a ghost just before the age at which it doubts it.
func (p *staleEnsemble) client(t *testing.T, key string) *zklock.Client {
	t.Helper()
	p.haunt(t, key)
	servers := p.ensemble.Addrs()
	other := proxy(t, servers[(p.server+1)%len(servers)])
	client := dialInOrder(t, &p.logs, servers[p.server], other)
	if info, err := client.Inspect(limited(t), key); err != nil || info.Owner != "ghost" {
		verdict.Inconclusive(t, "the holder is %+v, %v; want the ghost", info, err)
	}
	return client
}

// dialInOrder makes a client that is connected to the first of two servers.
func dialInOrder(t *testing.T, logs *logtest.Recorder, first string, second *faultproxy.Proxy) *zklock.Client {
	t.Helper()
	second.RefuseNew()
	client := dialServers(t, zklock.Options{SessionTimeout: staleTimeout, Logger: logs.Logger()}, first, second.Addr())
	must(t, second.Heal())
	return client
}

// TestStaleServer guards against waiting for ever behind a znode that only the client's server still has: ZOOKEEPER-5010.
func TestStaleServer(t *testing.T) {
	start(t)
	e := zkserver.NewEnsemble(t, zkserver.Config{Controlled: true, MaxSessionTimeout: longest})
	_, followers := leaderAndFollowers(t, e)
	p := &staleEnsemble{ensemble: e, server: followers[0]}
	t.Run("Waiter", func(t *testing.T) {
		release(t, take(t, p.client(t, "waiter"), "waiter"))
		if !p.logs.Has(leaves) {
			verdict.Inconclusive(t, "the client left the server for another reason")
		}
	})
	// granted tries to acquire a lock until it succeeds.
	granted := func(t *testing.T, acquire func() (*holdfast.Lock, error)) {
		t.Helper()
		eventually(t, "granted", func() bool {
			lock, err := acquire()
			switch {
			case err == nil:
				release(t, lock)
			case !errors.Is(err, holdfast.ErrHeld) && !errors.Is(err, holdfast.ErrDisconnected) && !errors.Is(err, context.DeadlineExceeded):
				must(t, err)
			}
			return err == nil
		})
	}
	t.Run("Try", func(t *testing.T) {
		client := p.client(t, "try")
		granted(t, func() (*holdfast.Lock, error) { return client.TryAcquire(limited(t), "try") })
	})
	t.Run("ShortWait", func(t *testing.T) { // shorter than that of the first doubt
		client := p.client(t, "short")
		granted(t, func() (*holdfast.Lock, error) {
			return client.Acquire(limited(t), "short", holdfast.WithWait(staleTimeout/2))
		})
	})
	t.Run("Break", func(t *testing.T) {
		client := p.client(t, "break")
		eventually(t, "the ghost is not seen any more", func() bool {
			info, err := client.Inspect(limited(t), "break")
			if err == nil && info.Held { // again if the other server lags behind the client, which comes back then
				if err := client.Break(limited(t), info); !errors.Is(err, holdfast.ErrChanged) {
					t.Errorf("Break of the ghost: %v, want ErrChanged", err)
				}
			}
			return err == nil && !info.Held
		})
	})
	t.Run("Observe", func(t *testing.T) {
		o := observeKey(t, p.client(t, "observed"), "observed")
		o.last(t, 0)
		o.end()
	})
}
