package cli_test

import (
	"strings"
	"testing"
)

// TestRunAll checks that the command runs while all keys are held, knows their tokens in the order in which they
// were given, and is ended when one of them is lost.
func TestRunAll(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		a, b := newKey(t)+"-a", newKey(t)+"-b"
		all := b + "," + a
		p := e.start(t, "run", "--all", all, "--lease", calm, "--", "sh", "-c",
			`echo "$HOLDFAST_KEY_1 $HOLDFAST_TOKEN_1 $HOLDFAST_KEY_2 $HOLDFAST_TOKEN_2 ${HOLDFAST_KEY-none} $HOLDFAST_OWNER"; `+untilGo)
		p.pid("pid")
		isHeld(t, e, a)
		isHeld(t, e, b)
		one, two := e.inspect(t, b), e.inspect(t, a)
		p.goes()
		p.exits(5, "").prints(strings.Join([]string{b, one.Token.String(), a, two.Token.String(), "none", one.Owner}, " ") + "\n")
		free(t, e, a)
		free(t, e, b)

		p = e.start(t, "run", "--all", all, "--lease", calm, "--", "sh", "-c", ignoreTerm)
		pid := p.pid("pid")
		e.run(t, "break", b, "--yes").exits(0)
		p.exits(79, "broken by somebody else: SIGKILL to the command")
		dies(t, "the command", pid)
		free(t, e, a)

		lock := e.acquire(t, b, "the holder")
		e.run(t, "run", "--all", all, "--lease", calm, "--try", "--", "true").exits(75, `"`+b+`" is held by "the holder"`)
		e.run(t, "run", "--all", all, "--lease", calm, "--wait", "6s", "--", "true").exits(75, `"`+b+`" is held by "the holder"`)
		free(t, e, a)
		waiting := e.start(t, "run", "--all", all, "--lease", calm, "--", "true")
		waiting.writes("stderr", "holdfast: waiting for "+b)
		waiting.writes("stderr", ", held by the holder")
		release(t, lock)
		waiting.exits(0)
	})
}
