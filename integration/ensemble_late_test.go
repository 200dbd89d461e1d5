package integration_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/internal/verdict"
	"github.com/holdfast-go/holdfast/integration/internal/zkserver"
	"github.com/holdfast-go/holdfast/zklock"
)

// TestLatePackets tests the cure of hazard Z16: what a request proves must not depend on
// the delay of packets between servers.
//
// Packets from the leader to a follower are late by more than the window of the trust
// rule. Meanwhile the application reads, which the follower answers alone, and makes a
// write. Then the reply to the write and the leader's pings arrive together. At that
// moment the way back is cut, and with it the session tables that the pings ask for. The
// leader has not heard of those reads.
func TestLatePackets(t *testing.T) {
	t.Parallel()
	for name, quarter := range map[string]bool{"default": false, "quarter": true} {
		t.Run(name, func(t *testing.T) {
			start(t)
			rounds := setting(t, "HOLDFAST_LATE_ROUNDS", 3, strconv.Atoi) // for each heartbeat period
			const tick = 200 * time.Millisecond
			e := zkserver.NewEnsemble(t, zkserver.Config{TickTime: tick, SyncLimit: 10})
			compared := 0
			for round := range rounds {
				if t.Run(fmt.Sprint(round), func(t *testing.T) {
					timeout := 4 * tick
					if round%3 == 1 {
						timeout = 10 * tick
					}
					compared += lateRound(t, e, timeout, quarter, round)
				}) {
					continue
				}
				break
			}
			if compared < rounds {
				verdict.Inconclusive(t, "only %d holders in %d rounds held their locks when the packets came", compared, rounds)
			}
			t.Logf("%d rounds, %d holders", rounds, compared)
		})
	}
}

// lateRound returns how many holders there were when the packets came.
func lateRound(t *testing.T, e *zkserver.Ensemble, timeout time.Duration, quarter bool, round int) (compared int) {
	leader, followers := leaderAndFollowers(t, e)
	behind, other := followers[round%2], followers[1-round%2]
	majority := dialServers(t, zklock.Options{SessionTimeout: 2 * timeout}, e.Servers()[leader].Addr(), e.Servers()[other].Addr())
	opts := zklock.Options{SessionTimeout: timeout}
	// A client whose heartbeat gets no reply for a quarter of the timeout goes to another
	// server.
	hold := timeout/6 + timeout/4
	if quarter {
		opts.Heartbeat = timeout / 4
		hold = timeout/4 + timeout/4
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var holders []*captive
	var grants, rest sync.WaitGroup
	for i := range 6 {
		c := &captive{name: fmt.Sprintf("%d of %v", i, timeout)}
		c.client = dialServers(t, opts, e.Servers()[behind].Addr())
		c.lock = take(t, c.client, fmt.Sprintf("late-%v-%d-%d", quarter, round, i))
		c.path = nodeOf(t, c.client, c.lock)
		holders = append(holders, c)
		rest.Go(func() {
			for c.lock.Err() == nil {
				if _, _, err := c.client.Conn().Exists(c.path); err != nil {
					return // go-zookeeper reconnects, and has data races then
				}
				time.Sleep(time.Millisecond)
			}
		})
		rest.Go(func() { <-c.lock.Done() })
		grants.Go(func() {
			lock, err := majority.Acquire(ctx, c.lock.Key())
			if err != nil {
				t.Errorf("%s: nobody else got the lock: %v", c.name, err)
				return
			}
			c.next.mark()
			if c.lock.Err() == nil {
				t.Errorf("%s: believes in its lock when the next holder has it", c.name)
			}
			if err := lock.Release(ctx); err != nil && !errors.Is(err, holdfast.ErrLost) {
				t.Errorf("%s: the next holder: %v", c.name, err)
			}
		})
		time.Sleep(timeout / 29) // out of step with each other
	}
	time.Sleep(timeout + rand.N(timeout/4))

	e.HoldBack(leader, behind)
	hold -= rand.N(hold / 5)
	time.Sleep(hold - timeout/50)
	verifying, enough := context.WithCancel(ctx)
	defer enough()
	for _, c := range holders {
		rest.Go(func() { _ = c.lock.Verify(verifying) })
	}
	time.Sleep(timeout / 50)
	live := make([]*holdfast.Lock, 0, len(holders))
	for _, c := range holders {
		if c.lock.Err() == nil {
			live = append(live, c.lock)
		}
	}
	e.Turn(leader, behind)
	grants.Wait()
	enough()
	must(t, e.HealAll())
	rest.Wait()
	for _, c := range holders {
		if late := c.lock.Deadline().Sub(c.next.get()); late > 0 {
			t.Errorf("%s: Done closed %v after the next holder had the lock: G1 and G2 broken", c.name, late)
		}
	}
	return len(live)
}
