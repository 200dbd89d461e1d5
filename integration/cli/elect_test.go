package cli_test

import (
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
)

// leadOnce notes its term in DIR/terms and its process in DIR/pid, waits for DIR/go-N in its N-th term, and
// exits with what is in that file.
const leadOnce = `echo "$HOLDFAST_TOKEN" >>"$DIR/terms"; n=$(wc -l <"$DIR/terms"); echo $$ >"$DIR/pid-$n"
	until [ -s "$DIR/go-$n" ]; do sleep 0.02; done; exit $(cat "$DIR/go-$n")`

// elect starts a candidate.
func (e *engine) elect(t *testing.T, key string, args ...string) *tool {
	t.Helper()
	return e.start(t, append([]string{"elect", "-k", key}, args...)...)
}

// stepsDown ends the n-th term of a candidate that runs leadOnce.
func (p *tool) stepsDown(n, status int) {
	p.t.Helper()
	name := p.file("go-" + strconv.Itoa(n))
	must(p.t, os.WriteFile(name+".new", []byte(strconv.Itoa(status)+"\n"), 0o644))
	must(p.t, os.Rename(name+".new", name))
}

// TestElectAgain checks that a command which exits with 0 runs again, with a greater token and the data, while
// its candidate leads.
func TestElectAgain(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		key := newKey(t)
		p := e.elect(t, key, "--lease", calm, "--data", "10.0.0.7:80", "--", "sh", "-c", leadOnce)
		var last holdfast.Token
		for n := 1; n <= 3; n++ {
			pid := p.pid("pid-" + strconv.Itoa(n))
			info := e.inspect(t, key)
			if info.Token <= last || string(info.Data) != "10.0.0.7:80" {
				t.Errorf("in term %d, after token %d, the key is %+v", n, last, info)
			}
			last = info.Token
			p.stepsDown(n, 0)
			dies(t, "the command", pid)
		}
		p.pid("pid-4")
		p.signal(syscall.SIGTERM) // the shell dies of it
		p.exits(143)
		free(t, e, key)
		if got := strings.Count(read(p.stderr), "holdfast: leading "+key+" (token "); got != 4 {
			t.Errorf("stderr tells of %d terms, want 4: %s", got, read(p.stderr))
		}
	})
}

// handsOver has a candidate step down, until another one leads: in its next term, of which it says the number. Only where there is a queue is
// it certain who comes next; elsewhere the other has to look in time, which a busy machine may not let it. It returns the number of the
// candidate's last term.
func (e *engine) handsOver(t *testing.T, from *tool, term int, to *tool, next int) (last int) {
	t.Helper()
	pid := func(p *tool, n int) bool { return strings.HasSuffix(read(p.file("pid-"+strconv.Itoa(n))), "\n") }
	for ; ; term++ {
		from.stepsDown(term, 0)
		await(t, func() bool { return pid(to, next) || pid(from, term+1) }, "nobody leads after term %d", term)
		switch {
		case pid(to, next):
			return term
		case e.name == "zookeeper":
			t.Fatalf("who has stepped down leads again, before one that waits")
		}
	}
}

// TestElectStepsDown checks that the next candidate leads when one steps down, and that both lead in turn.
func TestElectStepsDown(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		key := newKey(t)
		first := e.elect(t, key, "--lease", calm, "-q", "--", "sh", "-c", leadOnce)
		first.pid("pid-1")
		second := e.elect(t, key, "--lease", calm, "-v", "--", "sh", "-c", leadOnce)
		second.asks()
		waits(t, e, key)
		mine := e.handsOver(t, first, 1, second, 1)
		others := e.handsOver(t, second, 1, first, mine+1)
		first.stepsDown(mine+1, 7)
		first.exits(7, "") // nothing on stderr, with -q
		second.pid("pid-" + strconv.Itoa(others+1))
	})
}

// TestElectStatus checks that another status than 0 ends the candidacy, except with --keep-going.
func TestElectStatus(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		for script, status := range map[string]int{"exit 3": 3, "kill -KILL $$": 137, "exit 255": 255} {
			key := newKey(t)
			e.run(t, "elect", "-k", key, "--lease", calm, "-q", "-c", script).exits(status, "")
			free(t, e, key)
		}
		key := newKey(t)
		p := e.elect(t, key, "--lease", calm, "--keep-going", "-c", leadOnce)
		p.pid("pid-1")
		p.stepsDown(1, 3)
		p.writes("stderr", "the command has failed (status 3), which ends the term: standing for "+key+" again")
		must(t, syscall.Kill(p.pid("pid-2"), syscall.SIGKILL))
		p.writes("stderr", "the command has failed (SIGKILL), which ends the term: standing for "+key+" again")
		must(t, syscall.Kill(-p.pid("pid-3"), syscall.SIGINT)) // as Ctrl-C does
		p.exits(130)
		free(t, e, key)
	})
}

// TestElectSignals checks that a signal ends a candidate that waits, and that one which leads passes it on and
// ends with the status of its command.
func TestElectSignals(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		key := newKey(t)
		leader := e.elect(t, key, "--lease", calm, "-q", "--", "sh", "-c", heedTerm)
		leader.pid("pid")
		waiting := e.elect(t, key, "--lease", calm, "-v", "--", "true")
		waiting.asks()
		waiting.signal(syscall.SIGTERM)
		waiting.exits(143)
		leader.signal(syscall.SIGTERM)
		leader.exits(0, "")
		leader.gets("TERM\n")
		free(t, e, key)

		// In the second candidacy as in the first.
		p := e.elect(t, key, "--lease", calm, "--", "sh", "-c", leadOnce)
		p.pid("pid-1")
		waiting = e.elect(t, key, "--lease", calm, "-v", "--", "sh", "-c", untilGo)
		waiting.asks()
		waits(t, e, key)
		p.stepsDown(1, 0)
		waiting.pid("pid")
		waits(t, e, key)
		p.signal(syscall.SIGINT)
		p.exits(130)
		waiting.goes()
		waiting.exits(5)
		free(t, e, key)
	})
}

// TestElectKilled checks that the next candidate leads after a SIGKILL, when the command of the first is dead.
func TestElectKilled(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		key := newKey(t)
		const lease = 15 * time.Second
		first := e.elect(t, key, "--lease", lease.String(), "--", "sh", "-c", ignoreTerm)
		pid := first.pid("pid")
		second := e.elect(t, key, "--lease", calm, "-v", "--", "sh", "-c", `kill -0 `+strconv.Itoa(pid)+` && touch "$DIR/two"; `+leadOnce)
		second.asks()
		first.signal(syscall.SIGKILL)
		second.pid("pid-1")
		if _, err := os.Stat(second.file("two")); err == nil || alive(pid) {
			together(t, lease/3, 0, "two commands have run at a time")
		}
		must(t, syscall.Kill(second.pid("pid-1"), syscall.SIGKILL)) // the command alone
		second.exits(137)
		free(t, e, key)
	})
}

// TestElectLosesTerm checks that a command is ended when its term is lost, even one that ignores SIGTERM, and
// that its candidate then leads again.
func TestElectLosesTerm(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		key := newKey(t)
		script := `trap "" TERM; ` + leadOnce
		const lease = 15 * time.Second
		p := e.elect(t, key, "--lease", lease.String(), "--", "sh", "-c", script)
		pid := p.pid("pid-1")
		e.run(t, "break", key, "--yes").exits(0)
		p.writes("stderr", "broken by somebody else: SIGKILL to the command\nholdfast: the term is over: standing for "+key+" again\n")
		dies(t, "the command", pid)
		pid = p.pid("pid-2")
		e.cut()
		p.writes("stderr", ": SIGTERM now, SIGKILL in ")
		e.expires(t, key, lease, pid)
		e.heal()
		p.pid("pid-3")
		p.stepsDown(3, 9)
		p.exits(9)
		free(t, e, key)
	})
}

// TestElectTTL checks that --ttl ends the command and the term, and not the candidacy.
func TestElectTTL(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		key := newKey(t)
		p := e.elect(t, key, "--lease", calm, "--ttl", "1s", "--", "sh", "-c", leadOnce)
		p.pid("pid-2")
		p.writes("stderr", "the command has run for 1s (--ttl): SIGTERM now")
	})
}

// TestElectReclaimed checks that a candidate whose owner name another process has claimed does not stand again.
func TestElectReclaimed(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		key := newKey(t)
		first := e.elect(t, key, "--lease", calm, "--owner", "me", "-q", "--", "sh", "-c", ignoreTerm)
		pid := first.pid("pid")
		second := e.elect(t, key, "--lease", calm, "--owner", "me", "--reclaim", "-q", "--", "sh", "-c", leadOnce)
		second.pid("pid-1")
		first.exits(79)
		dies(t, "the command", pid)
	})
}

// TestElectCannotRun checks that a candidate with a command that cannot be run does not stand, or stands once.
func TestElectCannotRun(t *testing.T) {
	begin(t)
	launch(t, []string{"HOLDFAST_SERVERS=127.0.0.1:1"}, nil, "elect", "k", "no-such-command").exits(127, "no-such-command: command not found")
	e := newZooKeeper(t)
	key := newKey(t)
	script := t.TempDir() + "/script"
	must(t, os.WriteFile(script, []byte("#!/no/such/interpreter\n"), 0o755))
	e.run(t, "elect", "-k", key, "-q", script).exits(127, "command not found")
	free(t, e, key)
}

// TestElectTerminal tests the terminal over several terms: each command gets it, and Ctrl-Z and Ctrl-C work in
// the second candidacy as in the first.
func TestElectTerminal(t *testing.T) {
	eachTerminal(t, func(t *testing.T, e *engine, w *terminal, key string) {
		w.enter(`holdfast elect %s -- sh -c 'echo $$ >$DIR/pid; echo "question $HOLDFAST_TOKEN"; read x; echo "answer was $x"; [ "$x" != bad ]'; echo "status $?"`, key)
		for _, answer := range []string{"one", "two"} {
			w.shows("\nquestion")
			w.enter("%s", answer)
			w.shows("\nanswer was " + answer)
			await(t, func() bool { return strings.Count(w.screen(), "\nquestion") > strings.Count(w.screen(), "\nanswer") }, "the command does not run again")
		}
		pid := w.pid("pid")
		w.suspend(pid)
		w.enter(`fg; echo "status $?"`)
		await(t, func() bool { return state(pid) == "S" }, "the command does not go on")
		client, ctx, granted := e.dial(t, "the other"), limited(t), make(chan *holdfast.Lock, 1)
		go func() {
			lock, err := client.Acquire(ctx, key)
			if err != nil {
				t.Error(err)
			}
			granted <- lock
		}()
		for len(granted) == 0 { // the tool may be faster
			terms := strings.Count(w.screen(), "\nquestion")
			w.enter("three")
			await(t, func() bool { return len(granted) > 0 || strings.Count(w.screen(), "\nquestion") > terms }, "nobody has the key")
		}
		other := <-granted
		if other == nil {
			return
		}
		w.shows("\nanswer was three")
		w.shows("standing for " + key + " again")
		w.shows("waiting for " + key)
		w.shows(", held by the other")
		w.press("C-z")
		w.shows("Stopped")
		w.prompts()
		w.clear()
		w.enter(`fg; echo "status $?"`)
		w.shows("waiting for " + key)
		w.shows(", held by the other")
		release(t, other)
		w.shows("\nquestion")
		w.press("C-c")
		w.shows("status 130\n")
		w.prompts()
		free(t, e, key)
	})
}
