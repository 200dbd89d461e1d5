package locktest

import (
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
)

var turnCases = sharing([]testCase{
	{"G21_ArrivalOrder", func(e *env) { e.play("w r r w r r w") }},
	{"G21_PermitsInOrder", func(e *env) { e.play("w 2 2 2 2 2 2") }},
	{"G21_OneWokenPerPermit", oneWokenPerPermit},
	{"G21_ReaderBehindWaitingWriter", func(e *env) { e.behindWaitingWriter("r") }},
	{"G21_PermitBehindWaitingWriter", func(e *env) { e.behindWaitingWriter("3") }},
	{"G21_WriterGivesUp", writerGivesUp},
	{"G21_WriterIsServed", func(e *env) { e.writerIsServed("r") }},
	{"G21_WriterIsServedAmongPermits", func(e *env) { e.writerIsServed("4") }},
	{"G21_DeadWriterKeepsNobodyOut", deadWriterKeepsNobodyOut},
})

const (
	ruleTurns    = "readers and writers are served first come, first served"
	ruleKeepsOut = "a writer that waits keeps new readers out"
	ruleStream   = "a steady stream of readers or permits keeps no writer out"
)

// oneWokenPerPermit counts, by the places that OnEvent receives, who looks at the queue when a permit comes back.
func oneWokenPerPermit(e *env) {
	e.needs(e.engine.Ordered, "tell places")
	const n, waiters = 2, 8
	const few = 3 // whose place has become that of the first, or of one that looks ahead
	a := e.client()
	b, log := e.watched()
	locks := e.permits([]*Client{a}, n)
	var waiting []*waiter
	for i := range waiters {
		waiting = append(waiting, e.wait(b, holdfast.WithLimit(n)).waits(a, e.key, i+1))
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
	for _, lock := range locks {
		e.release(lock)
	}
	e.closed(b, log)
}

// behindWaitingWriter has a request of a mode wait behind a writer, which waits for another of the mode.
func (e *env) behindWaitingWriter(m mode) {
	a, b, c := e.client(), e.client(), e.client()
	lock := e.hold(a, m.option())
	writer := e.wait(b).waits(a, e.key, 1)
	e.isHeld(c, e.key, ruleKeepsOut, m.option())
	reader := e.wait(c, m.option()).waits(a, e.key, 2)
	e.settle()
	reader.stillWaits(ruleKeepsOut)
	e.release(lock)
	if e.engine.Ordered {
		e.release(writer.granted(e.handOver(), ruleTurns))
		e.release(reader.granted(e.handOver(), ruleTurns))
	} else {
		first, second := writer, reader
		if e.eventually(e.patience(), func() bool { return isClosed(writer.done) || isClosed(reader.done) }) && isClosed(reader.done) {
			first, second = reader, writer
		}
		e.release(first.granted(0, ruleServed))
		e.release(second.granted(e.patience(), ruleServed))
	}
	e.leavesNothing(e.key, e.engine.Soon, ruleNothing)
}

// writerGivesUp has readers wait behind a writer that gives up, and behind one that is lost.
func writerGivesUp(e *env) {
	const rule = "readers behind a waiting writer are let in when it is gone"
	a, b, c, d := e.client(), e.client(), e.client(), e.client()
	lock := e.reader(a)
	for _, lost := range []bool{false, true} {
		if lost && e.engine.NeverExpires {
			continue
		}
		writer := e.wait(b).waits(a, e.key, 1)
		readers := []*waiter{
			e.wait(c, holdfast.WithShared()).waits(a, e.key, 2),
			e.wait(d, holdfast.WithShared()).waits(a, e.key, 3),
		}
		if lost {
			b.Cut()
			if b.Expire != nil {
				b.Expire()
			}
		}
		writer.gone(holdfast.ErrHeld, holdfast.ErrDisconnected)
		for _, w := range readers {
			e.isLive(w.granted(e.handOver(), rule), ruleShare)
		}
		for _, w := range readers {
			e.release(w.lock)
		}
		e.isLive(lock, ruleOthers)
		b.Heal()
	}
	e.release(lock)
	e.leavesNothing(e.key, e.patience(), ruleNothing)
}

// writerIsServed keeps a key shared without a gap, by requests of one mode that hold it in turns.
func (e *env) writerIsServed(m mode) {
	a, b, c := e.client(), e.client(), e.client()
	stop := make(chan struct{})
	var stream sync.WaitGroup
	defer stream.Wait()
	defer close(stop)
	first := e.hold(a, m.option())
	for i := range 3 {
		stream.Go(func() {
			lock := first
			if i > 0 {
				lock = nil
			}
			for {
				if lock != nil {
					time.Sleep(e.engine.Lease / 100 * time.Duration(i+1))
					if err := lock.Release(e.within(e.patience())); err != nil {
						e.Errorf("%s: Release: %v", e.rule, err)
						return
					}
				}
				select {
				case <-stop:
					return
				default:
				}
				var err error
				if lock, err = []*Client{a, b}[i%2].Acquire(e.within(e.patience()), e.key, m.option()); err != nil {
					e.Errorf("%s: Acquire: %v", e.rule, err)
					return
				}
			}
		})
	}
	lock, err := c.Acquire(e.within(e.patience()), e.key)
	e.noError(err, ruleStream)
	e.release(lock)
}

// deadWriterKeepsNobodyOut has a writer die while it waits.
func deadWriterKeepsNobodyOut(e *env) {
	if e.engine.NeverExpires {
		e.Skipf("%s: no lease ends here", e.rule)
	}
	a, b, c := e.client(), e.client(), e.client()
	lock := e.reader(a)
	writer := e.wait(b).waits(a, e.key, 1)
	b.Cut()
	reader := e.wait(c, holdfast.WithShared()).granted(e.handOver(), "a writer that died keeps readers out for a lease at most")
	e.isLive(lock, ruleShare)
	e.isLive(reader, ruleShare)
	writer.gone(holdfast.ErrHeld, holdfast.ErrDisconnected)
	e.release(reader)
	e.release(lock)
}
