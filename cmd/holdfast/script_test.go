package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/memlock"
)

// call runs the program as main does, without a terminal and with its own environment.
func call(t *testing.T, lookupEnv func(string) (string, bool), args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	a := &app{in: strings.NewReader(""), out: &out, err: &err, leaveSignals: func() {}, lookupEnv: lookupEnv}
	status = a.main(context.Background(), args)
	return status, out.String(), err.String()
}

func noEnv(string) (string, bool) { return "", false }

// inSequence runs scripts one after the other, since tests change the list of engines.
type inSequence struct{ *testing.T }

func (s inSequence) Parallel()     {}
func (s inSequence) Verbose() bool { return testing.Verbose() }
func (s inSequence) Run(name string, f func(testscript.T)) {
	s.T.Run(name, func(t *testing.T) { f(inSequence{t}) })
}

// TestScripts runs the shell sessions in testdata in this process, which need no server. A third engine is in memory, with a held key
// in the store a.
func TestScripts(t *testing.T) {
	t.Setenv("AWS_REGION", "")
	t.Setenv("AWS_CONFIG_FILE", os.DevNull)
	stores := map[string]*memlock.Store{"a": memlock.NewStore()}
	mine, err := memlock.New(&memlock.Options{Store: stores["a"]})
	if err == nil {
		_, err = mine.Acquire(t.Context(), "held", holdfast.WithOwner("me"))
	}
	if err != nil {
		t.Fatal(err)
	}
	useEngine(t, func() engine { return &inMemory{stores: stores} })
	all := engines
	run := func(ts *testscript.TestScript, args []string) (status int, out, says string) {
		engines = all[:len(all)-1]
		if ts.Name() == "engine" {
			engines = all
		}
		return call(t, func(name string) (string, bool) { value := ts.Getenv(name); return value, value != "" }, args...)
	}
	ends := func(ts *testscript.TestScript, want string, args []string) {
		status, out, says := run(ts, args)
		fmt.Fprint(ts.Stdout(), out)
		fmt.Fprint(ts.Stderr(), says)
		if strconv.Itoa(status) != want {
			ts.Fatalf("status %d", status)
		}
	}
	testscript.RunT(inSequence{t}, testscript.Params{Dir: "testdata", Setup: func(env *testscript.Env) error {
		env.Setenv("LONG", strings.Repeat("x", 1000))
		return nil
	}, Cmds: map[string]func(*testscript.TestScript, bool, []string){
		"holdfast": func(ts *testscript.TestScript, _ bool, args []string) { ends(ts, "0", args) },
		// status N ARGS... runs the program, which must end with a status.
		"status": func(ts *testscript.TestScript, _ bool, args []string) { ends(ts, args[0], args[1:]) },
		// refuses TEXT ARGS... runs the program, which must refuse its command line by one line with a text.
		"refuses": func(ts *testscript.TestScript, _ bool, args []string) {
			status, out, says := run(ts, args[1:])
			if status != exitUsage || out != "" || strings.Count(says, "\n") != 1 || len(says) > 400 ||
				!strings.HasPrefix(says, "holdfast: ") || !strings.Contains(says, args[0]) {
				ts.Fatalf("status %d, stdout %q, stderr %q", status, out, says)
			}
		},
	}})
}
