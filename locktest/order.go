package locktest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast"
)

var orderCases = []testCase{
	{"G7_Order", order},
	{"G7_ALostWaiterBlocksNobody", aLostWaiterBlocksNobody},
	{"G7_DeadHead", deadHead},
	{"G7_NobodyStarves", nobodyStarves},
	{fairSharesName, fairShares},
}

// order has waiters served, and then others of which some give up.
func order(e *env) {
	e.serves(5)
	e.serves(5, 0, 2)
}

// serves has n clients wait, of which some give up, and insists that the others are served: in order, if the engine promises that.
func (e *env) serves(n int, quits ...int) {
	a := e.client()
	lock := e.hold(a)
	var mu sync.Mutex
	var served []int
	var waiters []*waiter
	for i := range n {
		w := e.waitKey(e.client(), e.key, func(lock *holdfast.Lock) {
			mu.Lock()
			served = append(served, i)
			mu.Unlock()
			e.lets(lock)
		}, holdfast.WithOwner(fmt.Sprint("owner", i)))
		waiters = append(waiters, w.waits(a, e.key, i+1))
	}
	var stay []int
	var owners []string
	for i, w := range waiters {
		if slices.Contains(quits, i) {
			w.gone(holdfast.ErrHeld)
		} else {
			stay, owners = append(stay, i), append(owners, fmt.Sprint("owner", i))
		}
	}
	if !e.Ordered {
		owners = nil
	}
	got := e.queued(a, e.key, len(stay))
	e.brokenIf(!slices.Equal(got, owners), "Inspect lists the waiters, the next one first, if there is a queue", "%q, want %q", got, owners)
	for info, err := range a.List(e.soon(), e.key) {
		e.brokenIf(err != nil || info.Owner != a.Owner() || len(info.Queue) != len(owners), "List and Inspect agree", "%+v, %v", info, err)
	}
	e.release(lock)
	for _, i := range stay {
		waiters[i].granted(e.patience(), ruleServed)
	}
	if !e.Ordered {
		slices.Sort(served)
	}
	e.brokenIf(!slices.Equal(served, stay), "first come, first served, if there is a queue", "served %v, want %v", served, stay)
	e.leavesNothing(e.key, e.engine.Soon, ruleFree)
}

// compete has n clients that want the key again as soon as they have released it, until ctx ends: then clients is done. Each
// grant is noted under mu, and held for a while.
func (e *env) compete(ctx context.Context, n int, hold func(), note func(client int)) (mu *sync.Mutex, clients *sync.WaitGroup) {
	mu, clients = new(sync.Mutex), new(sync.WaitGroup)
	for i := range n {
		c := e.client()
		clients.Go(func() {
			for {
				lock, err := c.Acquire(ctx, e.key)
				if err != nil {
					if ctx.Err() == nil {
						e.Errorf("%s: Acquire: %v", e.rule, err)
					}
					return
				}
				mu.Lock()
				note(i)
				mu.Unlock()
				hold()
				if !e.lets(lock) {
					return
				}
			}
		})
	}
	return mu, clients
}

// nobodyStarves has clients that want the key again as soon as they have released it.
func nobodyStarves(e *env) {
	// Without a queue, chance chooses the next client. The limit is so long that a client misses it only if it never gets its turn.
	const (
		turns    = 2 // of each, after which others have had theirs
		patience = 8
	)
	had := make([]int, 3)
	last := -1
	grants := 0
	ctx, stop := context.WithCancel(e.ctx)
	defer stop()
	mu, clients := e.compete(ctx, len(had), e.settle, func(i int) {
		if grants++; last != i {
			had[i]++
			last = i
		}
	})
	served := e.eventually(patience*e.patience(), func() bool {
		mu.Lock()
		defer mu.Unlock()
		return slices.Min(had) >= turns
	})
	stop()
	clients.Wait()
	e.brokenIf(!served, "every waiter gets its turn, though others want the key again and again",
		"of %d grants in %v, the clients have had %v in turn, want at least %d each", grants, patience*e.patience(), had, turns)
	e.leavesNothing(e.key, e.engine.Soon, ruleFree)
}

// aLostWaiterBlocksNobody has a waiter lose its session, and another behind it.
func aLostWaiterBlocksNobody(e *env) {
	a, b, c := e.client(), e.client(), e.client()
	for _, m := range e.modes() {
		if m == "r" {
			continue // readers do not wait for readers
		}
		locks := []*holdfast.Lock{e.hold(a, m.option())}
		for range m.limit() - 1 {
			locks = append(locks, e.hold(a, m.option()))
		}
		lost := e.wait(b, m.option()).waits(a, e.key, 1)
		next := e.wait(c, m.option()).waits(a, e.key, 2)
		b.dies()
		e.release(locks...)
		e.release(next.granted(e.handOver(), "a waiter whose session ended blocks no other"))
		if m == "3" {
			e.all3(a)
		}
		lost.stillWaits("a waiter that is cut off goes on waiting")
		b.Heal()
		e.release(lost.granted(e.patience(), "a waiter whose session ended joins the queue again"))
		e.leavesNothing(e.key, e.handOver(), ruleNothing)
	}
}

// deadHead lets the first waiter die, once with a live waiter behind it and once alone.
func deadHead(e *env) {
	e.needs(!e.NeverExpires, "end a lease")
	const rule = "a waiter that died leaves the queue within a lease"
	a := e.client()
	lock := e.hold(a)
	dies := func() (w *waiter, b *Client) {
		b = e.client()
		w = e.wait(b).waits(a, e.key, 1)
		b.Cut()
		return w, b
	}
	dead, b := dies()
	next := e.wait(a).waits(a, e.key, 2)
	time.Sleep(e.handOver())
	e.queued(a, e.key, 1)
	e.release(lock)
	lock = next.granted(e.engine.Soon, rule)
	alone, c := dies()
	time.Sleep(e.handOver())
	e.queued(a, e.key, 0)
	e.release(lock)
	e.release(e.takes(a, e.key, rule))
	e.leavesNothing(e.key, e.engine.Soon, rule)
	for w, c := range map[*waiter]*Client{dead: b, alone: c} {
		w.gone(holdfast.ErrHeld, holdfast.ErrDisconnected)
		c.Heal()
	}
	e.leavesNothing(e.key, e.handOver(), ruleNothing)
}

// fairShares has a name, since it needs more time than others.
const fairSharesName = "G7_FairShares"

// fairFor is for how many leases fairShares watches: hours, for leases as they are in use.
const fairFor = 400

// fairShares has clients that want the key again as soon as they have released it, for hours. It is only for virtual time.
func fairShares(e *env) {
	e.needs(e.engine.Bubble != nil, "let hours pass")
	ctx := e.within(fairFor * e.engine.Lease)
	had := make([]int, 3)
	var holds atomic.Int64
	hold := func() { // not in step with the polls of an engine that has some
		lengths := [...]time.Duration{17, 29, 23, 37}
		time.Sleep(e.engine.Lease * lengths[holds.Add(1)%int64(len(lengths))] / 101)
	}
	_, clients := e.compete(ctx, len(had), hold, func(i int) { had[i]++ })
	clients.Wait()
	e.brokenIf(slices.Min(had)*10 < slices.Max(had)*3,
		"in the long run, clients that want a key equally often have it so: three tenths of the most at least", "%v times", had)
	e.leavesNothing(e.key, e.engine.Soon, ruleFree)
}

var turnCases = sharing([]testCase{
	{"G21_ArrivalOrder", func(e *env) { e.play("w r r w r r w", "w 2 2 2 2 2 2") }},
	{"G21_OneWokenPerPermit", oneWokenPerPermit},
	{"G21_BehindWaitingWriter", behindWaitingWriter},
	{"G21_WriterGivesUp", writerGivesUp},
	{"G21_WriterIsServed", writerIsServed},
	{"G21_DeadWriterKeepsNobodyOut", deadWriterKeepsNobodyOut},
})

const (
	ruleTurns    = "requests are served first come, first served"
	ruleKeepsOut = "a writer that waits keeps new readers and permits out"
)

// oneWokenPerPermit counts, by the places that OnEvent receives, the waiters that look at the queue when a permit comes back. An engine
// may poll as well, so the case also counts the looks while nothing happens.
func oneWokenPerPermit(e *env) {
	e.needs(e.Ordered, "tell places")
	const waiters, rounds = 16, 8
	const few = 3 // whose place has become that of the first, or of one that looks ahead
	a := e.client()
	b, log := e.watched()
	locks := e.share("2", []*Client{a, a})
	var waiting []*waiter
	for i := range waiters {
		waiting = append(waiting, e.wait(b, holdfast.WithLimit(2)).waits(a, e.key, i+1))
	}
	told := func() int { e.settle(); return len(log.of(holdfast.Queued)) }
	woken, idle := 0, 0
	for _, w := range waiting[:rounds] {
		before, quiet := told(), told()
		e.release(locks[0])
		locks = append(locks[1:], w.granted(e.handOver(), ruleNext))
		woken, idle = woken+told()-quiet, idle+quiet-before
	}
	e.brokenIf(woken > rounds*few+2*idle, "a permit that is given back wakes one waiter",
		"for %d permits, %d places were told; while nothing happened, %d", rounds, woken, idle)
	for _, w := range waiting[rounds:] {
		e.release(locks[0])
		locks = append(locks[1:], w.granted(e.handOver(), ruleNext))
	}
	e.release(locks...)
	e.closed(b, log)
}

// behindWaitingWriter has a request of a mode wait behind a writer, which waits for another of the mode.
func behindWaitingWriter(e *env) {
	a, b, c := e.client(), e.client(), e.client()
	for _, m := range sharedModes {
		lock := e.hold(a, m.option())
		writer := e.wait(b).waits(a, e.key, 1)
		e.isHeld(c, e.key, ruleKeepsOut, m.option())
		later := e.wait(c, m.option()).waits(a, e.key, 2)
		e.settle()
		later.stillWaits(ruleKeepsOut)
		e.release(lock)
		e.inTurn(writer, later)
		e.leavesNothing(e.key, e.engine.Soon, ruleNothing)
	}
}

// writerGivesUp has readers, or permits, wait behind a writer that gives up, and behind one that is lost.
func writerGivesUp(e *env) {
	const rule = "requests behind a waiting writer are granted when it has left"
	a, b, c, d := e.client(), e.client(), e.client(), e.client()
	for _, m := range sharedModes {
		lock := e.hold(a, m.option())
		for _, lost := range []bool{false, true} {
			if lost && e.NeverExpires {
				continue
			}
			writer := e.wait(b).waits(a, e.key, 1)
			later := []*waiter{e.wait(c, m.option()).waits(a, e.key, 2), e.wait(d, m.option()).waits(a, e.key, 3)}
			if lost {
				b.dies()
			}
			writer.gone(holdfast.ErrHeld, holdfast.ErrDisconnected)
			for _, w := range later {
				e.isLive(w.granted(e.handOver(), rule), ruleShare)
			}
			for _, w := range later {
				e.release(w.lock)
			}
			e.isLive(lock, ruleOthers)
			b.Heal()
		}
		e.release(lock)
		e.leavesNothing(e.key, e.patience(), ruleNothing)
	}
}

// writerIsServed keeps a key shared without a gap, by three holders in turn.
func writerIsServed(e *env) {
	c, clients := e.client(), e.clients(2)
	for _, m := range []mode{"r", "4"} {
		stop := make(chan struct{})
		var stream sync.WaitGroup
		first := e.hold(clients[0], m.option())
		for i := range 3 {
			stream.Go(func() {
				lock, err := first, error(nil)
				if i > 0 {
					lock, err = clients[i%2].Acquire(e.within(e.patience()), e.key, m.option())
				}
				for err == nil {
					time.Sleep(e.engine.Lease / 100 * time.Duration(i+1))
					if !e.lets(lock) || isClosed(stop) {
						return
					}
					lock, err = clients[i%2].Acquire(e.within(e.patience()), e.key, m.option())
				}
				e.Errorf("%s: Acquire: %v", e.rule, err)
			})
		}
		lock, err := c.Acquire(e.within(e.patience()), e.key)
		close(stop)
		if err == nil {
			e.lets(lock)
		}
		stream.Wait()
		e.noError(err, "a steady stream of readers or permits keeps no writer out")
	}
}

// deadWriterKeepsNobodyOut has a writer die while it waits.
func deadWriterKeepsNobodyOut(e *env) {
	e.needs(!e.NeverExpires, "end a lease")
	a, b, c := e.client(), e.client(), e.client()
	lock := e.hold(a, holdfast.WithShared())
	writer := e.wait(b).waits(a, e.key, 1)
	b.Cut()
	reader := e.wait(c, holdfast.WithShared()).granted(e.handOver(), "a writer that died keeps readers out for a lease at most")
	e.isLive(lock, ruleShare)
	e.isLive(reader, ruleShare)
	writer.gone(holdfast.ErrHeld, holdfast.ErrDisconnected)
	e.release(reader)
	e.release(lock)
}
