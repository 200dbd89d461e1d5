package cli_test

import (
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast"
)

// TestAsk checks that ask reaches the holder, ends nothing, and that --wait ends with the grant.
func TestAsk(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		key := newKey(t)
		e.run(t, "ask", key).exits(1, "nobody holds")
		client := e.dial(t, "the holder")
		lock, err := client.Acquire(limited(t), key)
		must(t, err)
		e.run(t, "ask", key).exits(0, "").prints(`asked the holder, which holds ` + key + " (token " + lock.Token().String() + ")\n")
		p := e.start(t, "ask", key, "--wait")
		p.writes("stderr", "holdfast: asked the holder, which holds "+key)
		closes(t, "the holder is asked", lock.Asked())
		must(t, lock.Verify(limited(t)))
		if p.hasEnded() {
			t.Error("it has ended before the grant")
		}
		release(t, lock)
		e.acquire(t, key, "the next")
		p.exits(0).prints("the holder has let go of " + key + "\n")
	})
}

// TestAskBreaks checks that --break-after breaks the grant of a holder that has been asked in vain, and no other.
func TestAskBreaks(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		key := newKey(t)
		holder := e.start(t, "run", "-k", key, "--lease", "12s", // which a holder on DynamoDB hears of it within
			"--", "sh", "-c", ignoreTerm)
		pid := holder.pid("pid")
		p := e.run(t, "ask", key, "--break-after", "20s", "-o", "json").exits(0)
		if !strings.Contains(read(p.stdout), `"key":"`+key+`","held":true`) {
			t.Errorf("it printed %s", read(p.stdout))
		}
		holder.exits(79)
		dies(t, "the command", pid)
		if text := read(holder.stderr); !strings.Contains(text, "holdfast: somebody asks for "+key+": it is held until the command ends\n") {
			t.Errorf("the holder's stderr is %q", text)
		}

		lock := e.acquire(t, key, "mild")
		p = e.start(t, "ask", key, "--break-after", "1h")
		closes(t, "the holder is asked", lock.Asked())
		release(t, lock)
		next := e.acquire(t, key, "the next")
		p.exits(0).prints("mild has let go of " + key + "\n")
		must(t, next.Verify(limited(t)))

		p = e.run(t, "ask", key, "--break-after", "100ms").exits(0)
		if hasty := strings.Contains(read(p.stderr), "may not hear of it within 100ms"); hasty != (e.name == "dynamodb") {
			t.Errorf("stderr is %q", read(p.stderr))
		}
	})
}

// TestAskInterrupted checks that an interrupt ends the wait, and breaks nothing.
func TestAskInterrupted(t *testing.T) {
	eachTerminal(t, func(t *testing.T, e *engine, w *terminal, key string) {
		lock := e.acquire(t, key, "the holder")
		w.enter(`holdfast ask %s --break-after 1h; echo "status $?"`, key)
		w.shows("holdfast: asked the holder, which holds " + key)
		w.press("C-c")
		w.shows("status 130\n")
		must(t, lock.Verify(limited(t)))
	})
}

// TestElectStepsDownWhenAsked checks that a candidate steps down when asked, but only with the flag.
func TestElectStepsDownWhenAsked(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		key := newKey(t)
		p := e.elect(t, key, "--lease", calm, "--step-down-when-asked", "--", "sh", "-c", leadOnce)
		pid := p.pid("pid-1")
		next := make(chan *holdfast.Lock, 1)
		client := e.dial(t, "the next")
		go func() {
			lock, _ := client.Acquire(limited(t), key)
			next <- lock
		}()
		waits(t, e, key)
		e.run(t, "ask", key, "--wait").exits(0)
		lock := <-next
		if lock == nil || alive(pid) {
			t.Error("the command is alive when another leads")
		}
		p.writes("stderr", "holdfast: asked to step down: SIGTERM now, SIGKILL in ")
		release(t, lock)
		p.pid("pid-2")
	})
}
