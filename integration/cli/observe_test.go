package cli_test

import (
	"bufio"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
)

// TestObserve checks that observe prints a line for each change, and that an interrupt ends it quietly.
func TestObserve(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		key := newKey(t)
		p := launch(t, e.direct, nil, "observe", key)
		p.line(1, "free key="+key)
		lock := e.acquire(t, key, "the first", holdfast.WithData([]byte("10.0.0.1:80")))
		p.line(2, `held key=`+key+` owner="the first" token=`+lock.Token().String()+` .*data=10\.0\.0\.1:80`)
		giveUp := e.wait(t, key, "waiter")
		waits(t, e, key)
		giveUp()
		e.run(t, "break", key, "--yes").exits(0)
		// On DynamoDB its lease runs on until the holder notices, which is no change for an observer.
		p.line(3, "free key="+key)
		lock = e.acquire(t, key, "the second")
		p.line(4, `held key=`+key+` owner="the second" token=`+lock.Token().String()+".*")
		p.signal(syscall.SIGINT)
		p.exits(130, "")
		p.harmless()
	})
}

// TestObserveOutage checks that an observer goes on after an outage, tells of it on stderr, and ends with the
// last state.
func TestObserveOutage(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		key := newKey(t)
		lock := e.acquire(t, key, "holder")
		p := e.start(t, "observe", key, "--lease", "12s", "-o", "json")
		p.writes("stdout", `"owner":"holder"`)
		e.cut()
		p.writes("stderr", "holdfast: disconnected: the last state may be outdated\n")
		release(t, lock)
		e.heal()
		p.writes("stdout", `"held":false`)
		p.writes("stderr", "holdfast: connected again\n")
		p.signal(syscall.SIGTERM)
		p.exits(143)
	})
}

// TestObserveExec checks that a command runs for each change, and that neither its failure nor one that hangs
// keeps observe from its end, after which nothing of it is left.
func TestObserveExec(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		key := newKey(t)
		p := e.start(t, "observe", key, "--exec",
			`echo "$HOLDFAST_HELD $HOLDFAST_OWNER" >>"$DIR/seen"; if $HOLDFAST_HELD; then trap "" TERM; sh -c 'echo $PPID' >"$DIR/pid"; sleep 1000 & wait; sleep 1000; fi; exit 4`)
		p.writes("seen", "false \n")
		p.writes("stderr", "holdfast: the command of --exec has failed: exit status 4\n")
		e.acquire(t, key, "$(evil)")
		p.writes("seen", "false \ntrue $(evil)\n")
		pid := p.pid("pid")
		p.signal(syscall.SIGTERM)
		p.exits(143).prints("")
		dies(t, "the command", pid)
	})
}

// TestObserveBrokenPipe checks that observe ends when nobody reads any more, even without a change.
func TestObserveBrokenPipe(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		r, w := pipe(t)
		p := launchTo(t, w, e.direct, "observe", newKey(t))
		_ = w.Close()
		if in := bufio.NewScanner(r); !in.Scan() || !strings.Contains(in.Text(), "free key=") {
			t.Errorf("the first line is %q", in.Text())
		}
		_ = r.Close()
		p.exits(141, "")
	})
}

// TestObserveExpiry checks that the end of a holder that dies is told when its lease is over, and not before.
func TestObserveExpiry(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		key := newKey(t)
		const lease = 15 * time.Second
		holder := e.start(t, "run", "-k", key, "--lease", lease.String(), "--", "sh", "-c", untilGo)
		holder.pid("pid")
		p := launch(t, e.direct, nil, "observe", key)
		p.line(1, "held .*")
		killed := time.Now()
		holder.signal(syscall.SIGKILL)
		p.line(2, "free key="+key)
		// Its last heartbeat may have been some time before.
		if after := time.Since(killed); after < lease/2 {
			t.Errorf("told %v after the holder's death, before its lease of %v was over", after, lease)
		}
	})
}
