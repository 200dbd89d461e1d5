package locktest

import (
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
)

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

// oneWokenPerPermit counts, by the places that OnEvent receives, who looks at the queue when a permit comes back.
func oneWokenPerPermit(e *env) {
	e.needs(e.engine.Ordered, "tell places")
	const waiters = 8
	const few = 3 // whose place has become that of the first, or of one that looks ahead
	a := e.client()
	b, log := e.watched()
	locks := e.share("2", []*Client{a, a})
	var waiting []*waiter
	for i := range waiters {
		waiting = append(waiting, e.wait(b, holdfast.WithLimit(2)).waits(a, e.key, i+1))
	}
	for _, w := range waiting {
		e.settle()
		before := len(log.of(holdfast.Queued))
		e.release(locks[0])
		locks = append(locks[1:], w.granted(e.handOver(), ruleNext))
		e.settle()
		told := len(log.of(holdfast.Queued)) - before
		e.brokenIf(told > few, "a permit that is given back wakes one waiter", "%d places were told", told)
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
			if lost && e.engine.NeverExpires {
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
	e.needs(!e.engine.NeverExpires, "end a lease")
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
