package locktest

import (
	"time"

	"github.com/holdfast-go/holdfast"
)

func cutWhileJoining(e *env) {
	a, b, probe := e.client(), e.client(), e.client()
	stays := e.reader(b)
	for _, delay := range moments {
		if delay < 0 {
			a.Cut()
		}
		w := e.wait(a, holdfast.WithShared())
		time.Sleep(delay)
		a.Cut()
		time.Sleep(e.engine.Lease / 20)
		a.Heal()
		lock := w.granted(e.patience(), "a request whose reply was lost still ends in a grant")
		e.mayFail(lock.Verify(e.within(e.patience())), holdfast.ErrLost, "the engine has the grant that Acquire returns")
		n := len(e.inspect(probe).Holders)
		e.brokenIf(n != 2 && lock.Err() == nil, "a reader whose reply was lost holds the key once", "%d hold it", n)
		released := make(chan error, 1)
		go func() { released <- lock.Release(e.within(e.patience())) }()
		time.Sleep(delay)
		a.Cut()
		time.Sleep(e.engine.Lease / 20)
		a.Heal()
		e.mayFail(receive(e, released, e.patience(), ruleRetries, "Release waits"), holdfast.ErrLost, ruleRetries)
		if !e.eventually(e.handOver(), func() bool { return len(e.inspect(probe).Holders) == 1 }) {
			e.broken("a reader whose reply was lost leaves nothing", "%+v", e.inspect(probe).Holders)
		}
		e.isLive(stays, ruleOthers)
	}
	e.release(stays)
	e.leavesNothing(e.key, e.engine.Soon, ruleNothing)
}

// readersGiveUp has readers and a writer give up before, during and after the grant.
func readersGiveUp(e *env) {
	a, b, c := e.client(), e.client(), e.client()
	for i := range 10 {
		lock := e.hold(a)
		waiting := []*waiter{e.wait(b, holdfast.WithShared()), e.wait(c, holdfast.WithShared()), e.wait(b), e.wait(c, holdfast.WithShared())}
		time.Sleep(time.Duration(i) * e.engine.Soon / 1000)
		for _, w := range waiting[:3] {
			go w.cancel(nil)
		}
		e.release(lock)
		for _, w := range waiting[:3] {
			e.brokenIf(!e.closes(w.done, e.engine.Soon), ruleAtOnce, "round %d", i)
			if w.err == nil {
				e.isLive(w.lock, "a grant that Acquire returns is valid")
				e.release(w.lock)
			}
		}
		e.release(waiting[3].granted(e.patience(), "who gave up blocks nobody"))
		e.leavesNothing(e.key, e.patience(), ruleNothing)
	}
}

// readersAndWriters lets clients compete, and looks who is together with whom.
func readersAndWriters(e *env) {
	const rounds = 6
	clients := []*Client{e.client(), e.client(), e.client()}
	most := e.mix(ruleExclude, clients, 2*len(clients), rounds, func(worker, round int) mode { return modeOf((worker+round)%3 != 0, 0) })
	e.brokenIf(most < 2 && e.engine.Ordered && !e.Failed(), ruleShare, "no two readers were together in %d rounds", rounds)
}
