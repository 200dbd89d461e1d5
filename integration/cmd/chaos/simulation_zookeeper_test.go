package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/integration/internal/faultproxy"
	"github.com/holdfast-go/holdfast/integration/internal/nemesis"
	"github.com/holdfast-go/holdfast/internal/zkfake"
)

// simulatedEnsemble is the stage of a simulation on ZooKeeper: three members of internal/zkfake, and a link for each slot.
type simulatedEnsemble struct {
	ensemble *zkfake.Ensemble
	holds    func(slot int) bool
	links    []*simulatedLink
	slots    zooKeeperSlots // the same
	closed   bool           // to clients without credentials
	healed   atomic.Int64   // when the last fault of servers ended
}

// simulatedMembers is how many members there are.
const simulatedMembers = 3

func startSimulatedZooKeeper(_ context.Context, c casting) (simulatedStage, error) {
	most := 2 * time.Millisecond
	if c.Seed%4 == 3 {
		most *= 10 // more comes between one request and the next
	}
	some := func() time.Duration { return 100*time.Microsecond + rand.N(most) }
	s := &simulatedEnsemble{
		holds:  c.Holds,
		closed: c.Seed%5 == 1,
		ensemble: zkfake.New(zkfake.Config{
			Closed:  c.Seed%5 == 1,
			Members: simulatedMembers, Tick: zooKeeperTick, SyncLimit: 5 + 5*int(c.Seed%2), // see startZooKeeper
			Containers: 10 * zooKeeperLease, Latency: some, Delay: some,
		}),
	}
	for n := range c.Slots {
		link := newSimulatedLink(n, s.ensemble.Link())
		s.links, s.slots = append(s.links, link), append(s.slots, &link.zooKeeperSlot)
	}
	return s, nil
}

func (s *simulatedEnsemble) deck() []nemesis.Kind {
	return []nemesis.Kind{
		nemesis.LostReply, nemesis.LostRequest, nemesis.LateRequest, nemesis.Cut, nemesis.BlackHole, nemesis.OneWayIn,
		nemesis.OneWayOut, nemesis.HalfOpen, nemesis.Stall, nemesis.Throttled, nemesis.HungUpOn, nemesis.EventsLost,
		nemesis.FollowerCutOff, nemesis.FollowerCutOff, nemesis.LeaderCutOff, nemesis.LinkCut, nemesis.LinkTurned,
		nemesis.LeaderKilled, nemesis.LeaderPaused, nemesis.FollowerPaused, nemesis.RollingRestart, nemesis.LimitsChanged,
		nemesis.ClientPaused, nemesis.ClientKilled, nemesis.ClientClosed, nemesis.ClockJump, nemesis.BreakHolder,
		nemesis.WaiterDeleted,
	}
}

func (s *simulatedEnsemble) servers() int { return simulatedMembers }

// credentials are the credentials of some clients.
const credentials = "user:password"

// login has some clients authenticate, some ask for sessions that servers may refuse as too short, some beat seldom, and some
// leave much of their leases to clocks.
func (s *simulatedEnsemble) login(slot int) login {
	l := s.loginOver(strconv.Itoa(slot))
	if slot%2 == 1 {
		l.Credentials = credentials
	}
	if slot%3 == 2 {
		l.Session = zooKeeperLease * 11 / 20
	}
	if slot%4 == 0 {
		l.Heartbeat = cmp.Or(l.Session, zooKeeperLease) / 4 // as seldom as possible
	}
	if slot%5 == 3 {
		l.Margin = zooKeeperLease / 8
	}
	return l
}

func (s *simulatedEnsemble) direct() login { return s.loginOver(operatorLine) }

func (s *simulatedEnsemble) loginOver(endpoint string) login {
	l := login{Engine: "zookeeper", Endpoint: endpoint, Servers: s.ensemble.Addrs(), Lease: zooKeeperLease}
	if s.closed {
		l.Credentials = credentials
	}
	return l
}

func (s *simulatedEnsemble) plug(l login) cable {
	if slot, err := strconv.Atoi(l.Endpoint); err == nil {
		return &linkCable{link: s.links[slot]}
	}
	return &linkCable{link: newSimulatedLink(-1, s.ensemble.Link())}
}

func (s *simulatedEnsemble) keeps(key string, token uint64) bool {
	return s.ensemble.Has(zooKeeperRoot+"/"+key, int64(token))
}

// settled: see "The end of a session" in docs/design/zookeeper.md.
func (s *simulatedEnsemble) settled() bool {
	return s.ensemble.Settled() && time.Now().UnixNano()-s.healed.Load() > int64(zooKeeperLease)
}

func (s *simulatedEnsemble) excess() error {
	var errs []error
	for _, l := range s.links {
		who := fmt.Sprintf("client %d", l.n)
		errs = append(errs, l.connections.excess(who), l.requests.excess(who))
	}
	return errors.Join(errs...)
}

func (s *simulatedEnsemble) stall() time.Duration { return zooKeeperLease }

func (s *simulatedEnsemble) close() { s.ensemble.Close() }

func (s *simulatedEnsemble) strike(ctx context.Context, f nemesis.Fault) (string, func(context.Context) error, error) {
	switch {
	case f.Kind == nemesis.WaiterDeleted:
		return s.deleteWaiter(f.Key), nil, nil
	case !f.Kind.OfServers():
		return s.links[f.Client].strike(f)
	}
	target, end := s.strikeServers(f)
	if end == nil {
		return "", nil, nil // there is no leader now
	}
	return target, func(ctx context.Context) error {
		end()
		err := s.settle(ctx)
		s.healed.Store(time.Now().UnixNano())
		return err
	}, nil
}

// deleteWaiter deletes the znode of the last waiter in a queue, and returns its path. No client loses a lock.
func (s *simulatedEnsemble) deleteWaiter(n int) (target string) {
	var queues []string
	for _, key := range s.ensemble.Children(zooKeeperRoot) {
		queues = append(queues, zooKeeperRoot+"/"+key)
	}
	for i := range queues {
		queue := queues[(n+i)%len(queues)]
		removed := s.ensemble.Remove(queue, func(children []string) string {
			line := slices.DeleteFunc(slices.Clone(children), func(child string) bool { return !isContender(child) })
			slices.SortFunc(line, func(a, b string) int { return cmp.Compare(number(a), number(b)) })
			holders := 1
			if n := len(line); n > 0 && strings.Contains(line[n-1], "-permit-") {
				holders = mostPermits
			}
			if len(line) <= holders || strings.Contains(line[len(line)-1], "-shared-") { // it may hold the key
				return ""
			}
			return line[len(line)-1]
		})
		if removed != "" {
			return queue + "/" + removed
		}
	}
	return ""
}

// number is the one that a sequential znode has at its end.
func number(child string) string { return child[max(0, len(child)-len("0000000000")):] }

func isContender(child string) bool {
	_, err := strconv.ParseUint(number(child), 10, 64)
	return err == nil
}

// settle returns when one member leads and all others follow.
func (s *simulatedEnsemble) settle(ctx context.Context) error {
	for !s.ensemble.Settled() {
		if !sleep(ctx, zooKeeperTick/4) {
			return context.Cause(ctx)
		}
	}
	return nil
}

func (s *simulatedEnsemble) heal(ctx context.Context) error {
	for i := range simulatedMembers {
		s.ensemble.Mend(i)
		s.ensemble.Turn(i, false, false)
		s.ensemble.Proceed(i)
		s.ensemble.Start(i)
	}
	for _, l := range s.links {
		for i, w := range l.wires {
			l.link.Wire(i).Disarm()
			_ = w.heal()
		}
	}
	return s.settle(ctx)
}

// residue looks for children of lock znodes until the sessions of killed processes have ended.
func (s *simulatedEnsemble) residue(ctx context.Context, _ []string) (left []string, err error) {
	for began := time.Now(); ; {
		left = s.nodesBelow()
		if len(left) == 0 || time.Since(began) > 3*zooKeeperLease || !sleep(ctx, zooKeeperTick) {
			return left, context.Cause(ctx)
		}
	}
}

func (s *simulatedEnsemble) nodesBelow() (found []string) {
	for _, key := range s.ensemble.Children(zooKeeperRoot) {
		for _, node := range s.ensemble.Children(zooKeeperRoot + "/" + key) {
			found = append(found, zooKeeperRoot+"/"+key+"/"+node)
		}
	}
	return found
}

// strikeServers begins a fault of the servers. Its end is nil if it has hit nothing.
func (s *simulatedEnsemble) strikeServers(f nemesis.Fault) (target string, end func()) {
	leader := s.ensemble.Leader()
	if leader < 0 {
		return "", nil
	}
	follower := s.slots.follower(leader, f, s.holds)
	e := s.ensemble
	apart := func(member int, strike, undo func()) (target string, end func()) {
		target, ends := s.slots.apart(member, f, strike, func(context.Context) error { undo(); return nil })
		return target, func() { _ = ends(context.Background()) } // it cannot fail
	}
	name := func(i int) string { return fmt.Sprintf("server %d", i) }
	switch f.Kind {
	case nemesis.FollowerCutOff, nemesis.LinkCut: // with three, a link to the leader is all that a follower has
		return apart(follower, func() { e.Part(follower) }, func() { e.Mend(follower) })
	case nemesis.LeaderCutOff:
		return apart(leader, func() { e.Part(leader) }, func() { e.Mend(leader) })
	case nemesis.LeaderKilled:
		e.Kill(leader)
		return name(leader), func() { e.Start(leader) }
	case nemesis.LeaderPaused:
		e.Stall(leader)
		return name(leader), func() { e.Proceed(leader) }
	case nemesis.FollowerPaused:
		e.Stall(follower)
		return name(follower), func() { e.Proceed(follower) }
	case nemesis.LinkTurned:
		held := zooKeeperLease/4 + time.Duration(f.Pick%8)*zooKeeperTick/4 // see ensembleStage.turn
		target, end := apart(follower, func() { e.Turn(follower, true, false) }, func() { e.Turn(follower, false, false) })
		turned := time.AfterFunc(held, func() { e.Turn(follower, false, true) })
		return fmt.Sprintf("server %d to %s, held back for %v", leader, target, held), func() {
			turned.Stop()
			end()
		}
	case nemesis.RollingRestart:
		return "all servers, the leader last", background(func() { s.restartAll(leader, func() {}) })
	case nemesis.LimitsChanged:
		tick := []time.Duration{zooKeeperTick, zooKeeperTick * 3 / 4, zooKeeperTick / 2}[f.Pick%3]
		shortest, longest := 2*tick, zooKeeperLease*time.Duration(6+f.Pick/3%5)/10
		if f.Pick/15%2 == 0 {
			shortest, longest = zooKeeperLease*19/20, zooKeeperLease
		}
		return fmt.Sprintf("all servers, the leader last: tick %v, sessions from %v to %v", tick, shortest, longest),
			background(func() { s.restartAll(leader, func() { e.Limit(tick, shortest, longest) }) })
	}
	return "", nil
}

// background starts a slow step, and returns the function that waits for it.
func background(do func()) (wait func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		do()
	}()
	return func() { <-done }
}

// restartAll restarts the members one after another, each when the others serve. Its last answers may be of creations that it has
// carried out twice. (After a deletion that was carried out twice, Release reports that the lock was gone, and no reply shows the cause.)
func (s *simulatedEnsemble) restartAll(leader int, configure func()) {
	ctx, cancel := context.WithTimeout(context.Background(), strikePatience)
	defer cancel()
	for i := range simulatedMembers {
		member := (leader + 1 + i) % simulatedMembers
		for _, l := range s.links {
			l.link.Wire(member).AppliedTwice(int32(faultproxy.OpCreate))
		}
		sleep(ctx, zooKeeperTick/5)
		s.ensemble.Kill(member)
		sleep(ctx, zooKeeperTick)
		configure()
		s.ensemble.Start(member)
		_ = s.settle(ctx) // heal reports errors
	}
}
