package locktest

import (
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
)

var turnCases = sharing([]testCase{
	{"G21_ArrivalOrder", arrivalOrder},
	{"G21_PermitsInOrder", permitsInOrder},
	{"G21_OneWokenPerPermit", oneWokenPerPermit},
	{"G21_ReaderBehindWaitingWriter", readerBehindWaitingWriter},
	{"G21_WriterGivesUp", writerGivesUp},
	{"G21_WriterIsServed", writerIsServed},
	{"G21_DeadWriterKeepsNobodyOut", deadWriterKeepsNobodyOut},
})

const (
	ruleTurns    = "readers and writers are served first come, first served"
	ruleKeepsOut = "a writer that waits keeps new readers out"
	ruleServed   = "a steady stream of readers keeps no writer out"
)

// arrivalOrder has readers and writers wait behind a writer: S S X S S X.
func arrivalOrder(e *env) {
	a := e.client()
	last := e.hold(a)
	var waiting []*waiter
	kinds := []bool{true, true, false, true, true, false}
	for i, shared := range kinds {
		var opts []holdfast.Option
		if shared {
			opts = append(opts, holdfast.WithShared())
		}
		waiting = append(waiting, e.wait(e.client(), opts...).waits(a, e.key, i+1))
	}
	if !e.engine.Ordered {
		e.release(last)
		var served sync.WaitGroup
		for _, w := range waiting {
			served.Go(func() {
				if e.closes(w.done, e.patience()) && w.err == nil {
					if err := w.lock.Release(e.soon()); err != nil {
						e.Errorf("%s: Release: %v", e.rule, err)
					}
				}
			})
		}
		served.Wait()
		for _, w := range waiting {
			w.granted(0, "every reader and writer is served in the end")
		}
		return
	}
	for i, w := range e.inspect(a).Queue {
		if w.Shared != kinds[i] {
			e.broken("Inspect says who of those who wait would share the key", "number %d: %v", i, w.Shared)
		}
	}
	ends := []*holdfast.Lock{last}
	for len(waiting) > 0 {
		for _, lock := range ends {
			for _, w := range waiting {
				w.stillWaits(ruleTurns)
			}
			e.release(lock)
			e.settle()
		}
		n := 1
		for kinds[0] && n < len(kinds) && kinds[n] {
			n++
		}
		ends = nil
		for _, w := range waiting[:n] {
			ends = append(ends, w.granted(e.handOver(), "readers that wait side by side are served together"))
		}
		waiting, kinds = waiting[n:], kinds[n:]
		e.areLive(ends, ruleShare)
	}
	e.release(ends[0])
	e.leavesNothing(e.key, e.engine.Soon, ruleNothing)
}

func permitsInOrder(e *env) {
	const n = 2
	a := e.client()
	locks := e.permits([]*Client{a}, n)
	var waiting []*waiter
	for i := range 4 {
		waiting = append(waiting, e.wait(e.client(), holdfast.WithLimit(n)).waits(a, e.key, i+1))
	}
	if e.engine.Ordered {
		e.isHeld(a, e.key, ruleMost, holdfast.WithLimit(n))
	}
	for len(waiting) > 0 {
		e.release(locks[0])
		next := waiting[0]
		if e.engine.Ordered {
			next.granted(e.handOver(), "the permits of a semaphore go to those who wait, first come, first served")
			e.settle()
			for _, w := range waiting[1:] {
				w.stillWaits("a permit that is given back goes to one waiter")
			}
			waiting = waiting[1:]
		} else {
			i := -1
			if !e.eventually(e.patience(), func() bool {
				for j, w := range waiting {
					if isClosed(w.done) {
						i = j
					}
				}
				return i >= 0
			}) {
				e.broken("every waiter is served in the end", "none of %d", len(waiting))
			}
			next = waiting[i]
			next.granted(0, ruleNext)
			waiting = append(waiting[:i:i], waiting[i+1:]...)
		}
		locks = append(locks[1:], next.lock)
	}
	for _, lock := range locks {
		e.release(lock)
	}
	e.leavesNothing(e.key, e.engine.Soon, ruleNothing)
}

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
		if told := len(log.of(holdfast.Queued)) - before; told > few {
			e.broken("a permit that is given back wakes one waiter", "%d places were told", told)
		}
	}
	for _, lock := range locks {
		e.release(lock)
	}
	e.closed(b, log)
}

func readerBehindWaitingWriter(e *env) {
	a, b, c := e.client(), e.client(), e.client()
	lock := e.reader(a)
	writer := e.wait(b).waits(a, e.key, 1)
	e.isHeld(c, e.key, ruleKeepsOut, holdfast.WithShared())
	reader := e.wait(c, holdfast.WithShared()).waits(a, e.key, 2)
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
		e.release(first.granted(0, "every waiter is served in the end"))
		e.release(second.granted(e.patience(), "every waiter is served in the end"))
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

// writerIsServed keeps a key shared without a gap, by readers that hold it in turns.
func writerIsServed(e *env) {
	a, b, c := e.client(), e.client(), e.client()
	stop := make(chan struct{})
	var stream sync.WaitGroup
	defer stream.Wait()
	defer close(stop)
	first := e.reader(a)
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
				if lock, err = []*Client{a, b}[i%2].Acquire(e.within(e.patience()), e.key, holdfast.WithShared()); err != nil {
					e.Errorf("%s: Acquire: %v", e.rule, err)
					return
				}
			}
		})
	}
	lock, err := c.Acquire(e.within(e.patience()), e.key)
	if err != nil {
		e.broken(ruleServed, "%v", err)
	}
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
