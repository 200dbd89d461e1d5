package cli_test

import (
	"crypto/tls"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/internal/verdict"
	"github.com/holdfast-go/holdfast/integration/internal/zkserver"
)

// TestScripts runs the shell sessions in testdata on each engine, or on the engine that ends a script's name.
func TestScripts(t *testing.T) {
	begin(t)
	files, err := filepath.Glob("testdata/*.txtar")
	must(t, err)
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txtar")
		t.Run(name, func(t *testing.T) {
			begin(t)
			all := maps.Clone(engines)
			all["mongodb"] = newMongoDB // its commands are those of DynamoDB
			suffix := name[strings.LastIndex(name, "_")+1:]
			for engine, open := range all {
				if general := all[suffix] == nil; general && engines[engine] == nil || !general && suffix != engine {
					continue
				}
				t.Run(engine, func(t *testing.T) {
					begin(t)
					(&script{T: t, engine: open(t), tools: make(map[string]*tool), locks: make(map[string]*holdfast.Lock)}).play(file)
				})
			}
		})
	}
}

// A script is a run of a shell session.
type script struct {
	*testing.T
	*engine
	dir   string
	tools map[string]*tool          // started programs by name
	locks map[string]*holdfast.Lock // of clients of the library by owner
}

// play runs the script in this test.
func (s *script) play(file string) {
	commands := map[string]func(ts *testscript.TestScript, neg bool, args []string){}
	for name, command := range scriptCommands {
		commands[name] = func(ts *testscript.TestScript, neg bool, args []string) { command(s, ts, neg, args) }
	}
	testscript.RunT(s, testscript.Params{
		Files: []string{file},
		Cmds:  commands,
		Condition: func(name string) (bool, error) {
			return name == s.engine.name, nil
		},
		Setup: func(env *testscript.Env) error {
			s.dir = env.WorkDir
			env.Vars = append(env.Vars, s.settings(read(file))...)
			env.Setenv("PATH", filepath.Dir(binary(s.T))+":"+s.dir+":"+env.Getenv("PATH"))
			return nil
		},
	})
}

// Commands that scripts run under a lock.
const (
	// untilGo exits with 5 once there is a file go.
	untilGo = `echo $$ >"$DIR/pid"; until [ -e "$DIR/go" ]; do sleep 0.02; done; exit 5`

	// ignoreTerm ignores SIGTERM.
	ignoreTerm = `trap "" TERM; echo $$ >"$DIR/pid"; exec sleep 1000`

	// heedTerm records SIGTERM and then exits cleanly.
	heedTerm = `trap 'echo TERM >"$DIR/signals"; exit 0' TERM; echo $$ >"$DIR/pid"; sleep 1000 & wait`

	// leadOnce notes its term in terms and its process in pid-N, waits for go-N in its N-th term, and exits with the status in
	// that file.
	leadOnce = `echo "$HOLDFAST_TOKEN" >>"$DIR/terms"; n=$(wc -l <"$DIR/terms"); echo $$ >"$DIR/pid-$n"
	until [ -s "$DIR/go-$n" ]; do sleep 0.02; done; exit $(cat "$DIR/go-$n")`
)

// settings are those of the engine through the proxy, its address past the proxy, commands for the tool to run, and the servers that
// a script mentions.
func (s *script) settings(text string) []string {
	docs, err := filepath.Abs(filepath.Join("..", "..", "docs"))
	must(s.T, err)
	all := append(bare(), s.env...)
	all = append(all,
		"KEY="+newKey(s.T), "SHELL=/bin/sh", "DOCS="+docs,
		"UNTIL_GO="+untilGo, "IGNORE_TERM="+ignoreTerm, "HEED_TERM="+heedTerm, "LEAD="+leadOnce,
		"ENGINE="+s.engine.name, "SERVERS="+setting(s.direct, "HOLDFAST_SERVERS"),
		"TABLE="+setting(s.direct, "HOLDFAST_TABLE"), "PARTITION_KEY="+setting(s.direct, "HOLDFAST_PARTITION_KEY"))
	if strings.Contains(text, "$SILENT") {
		all = append(all, "SILENT="+silent(s.T))
	}
	if strings.Contains(text, "$MAIL") {
		all = append(all, "MAIL="+mailServer(s.T))
	}
	if strings.Contains(text, "$STRICT") {
		strict := zkserver.New(s.T, zkserver.Config{Props: map[string]string{
			"zookeeper.enforce.auth.enabled": "true", "zookeeper.enforce.auth.schemes": "digest",
		}})
		all = append(all, "STRICT="+strict.Addr())
	}
	if strings.Contains(text, "$TLS") {
		cert, file, key := certificate(s.T)
		addr := serveTLS(s.T, &tls.Config{Certificates: []tls.Certificate{cert}, ClientAuth: tls.RequireAnyClientCert})
		all = append(all, "TLS="+addr, "CERT="+file, "CERT_KEY="+key)
	}
	return all
}

// Run, Parallel, FailNow and Verbose make a script a [testscript.T].
func (s *script) Run(_ string, f func(testscript.T)) { f(s) }
func (s *script) Parallel()                          {}
func (s *script) Verbose() bool                      { return testing.Verbose() }
func (s *script) FailNow()                           { verdict.Fatalf(s.T, "the script fails") }

// prepare makes a process of a command line in the environment of a script, with a folder of its own.
func (s *script) prepare(ts *testscript.TestScript, dir string, line []string) *tool {
	ts.Check(ts.Exec("env", "-0"))
	p := newTool(s.T, dir, line[0], line[1:]...)
	p.cmd.Env = append(strings.Split(strings.TrimSuffix(ts.ReadFile("stdout"), "\x00"), "\x00"), "DIR="+dir)
	p.cmd.Dir = s.dir
	if path := filepath.Join(filepath.Dir(binary(s.T)), line[0]); line[0] == "holdfast" {
		p.cmd.Path, p.cmd.Err = path, nil
	}
	return p
}

// at returns a file of a started program and the program, by NAME/FILE.
func (s *script) at(ts *testscript.TestScript, path string) (*tool, string) {
	name, file, _ := strings.Cut(path, "/")
	p := s.tools[name]
	if p == nil {
		ts.Fatalf("%s: no program %q was started", path, name)
	}
	return p, file
}

// options reads "shared", "limit=N" and "data=TEXT".
func options(args []string) (opts []holdfast.Option) {
	for _, arg := range args {
		name, value, _ := strings.Cut(arg, "=")
		n, _ := strconv.Atoi(value)
		opts = append(opts, map[string]holdfast.Option{
			"shared": holdfast.WithShared(), "limit": holdfast.WithLimit(max(n, 1)), "data": holdfast.WithData([]byte(unescape(value))),
		}[name])
	}
	return opts
}

// scriptCommands are the commands of scripts, besides those of testscript.
var scriptCommands = map[string]func(s *script, ts *testscript.TestScript, neg bool, args []string){
	// status N PROGRAM ARGS... runs a program that must end with a status.
	"status": func(s *script, ts *testscript.TestScript, _ bool, args []string) {
		status := 0
		if err := ts.Exec(args[1], args[2:]...); err != nil {
			status = exitStatus(err)
		}
		if want, _ := strconv.Atoi(args[0]); status != want {
			ts.Fatalf("status %d, want %d", status, want)
		}
	},
	// unread STATUS PROGRAM ARGS... runs a program with an output that has no reader. The program must end quietly.
	"unread": func(s *script, ts *testscript.TestScript, _ bool, args []string) {
		p := s.prepare(ts, s.TempDir(), args[1:])
		r, w, err := os.Pipe()
		ts.Check(err)
		_ = r.Close()
		p.cmd.Stdout = w
		p.launch()
		_ = w.Close()
		status, _ := strconv.Atoi(args[0])
		if says := read(p.exits(status).stderr); says != "" {
			ts.Fatalf("stderr is %q", says)
		}
	},
	// start NAME PROGRAM ARGS... starts a program. Its output goes to NAME/stdout and NAME/stderr; NAME is its DIR.
	"start": func(s *script, ts *testscript.TestScript, _ bool, args []string) {
		dir := ts.MkAbs(args[0])
		ts.Check(unix.Mkdir(dir, 0o755))
		s.tools[args[0]] = s.prepare(ts, dir, args[1:]).launch()
	},
	// ends NAME STATUS waits for the end of a program.
	"ends": func(s *script, ts *testscript.TestScript, _ bool, args []string) {
		p, _ := s.at(ts, args[0])
		status, err := strconv.Atoi(args[1])
		ts.Check(err)
		p.exits(status)
	},
	// signal NAME SIGNAL sends a signal to a program.
	"signal": func(s *script, ts *testscript.TestScript, _ bool, args []string) {
		p, _ := s.at(ts, args[0])
		p.signal(unix.SignalNum("SIG" + args[1]))
	},
	// await NAME/FILE [TEXT] waits until a program has written a text, or any line.
	"await": func(s *script, ts *testscript.TestScript, _ bool, args []string) {
		p, file := s.at(ts, args[0])
		p.writes(file, append(args, "\n")[1])
	},
	// until SHELL waits until a shell command succeeds.
	"until": func(s *script, ts *testscript.TestScript, _ bool, args []string) {
		await(s.T, func() bool { return ts.Exec("sh", "-c", args[0]) == nil }, "never: %s", args[0])
	},
	// dies PROCESS... waits for the ends of processes, given by NAME/FILE with the number, or by the number.
	"dies": func(s *script, ts *testscript.TestScript, _ bool, args []string) {
		for i, pid := range s.pids(ts, args) {
			dies(s.T, args[i], pid)
		}
	},
	// kills PROCESS SIGNAL sends a signal to a process.
	"kills": func(s *script, ts *testscript.TestScript, _ bool, args []string) {
		ts.Check(syscall.Kill(s.pids(ts, args[:1])[0], unix.SignalNum("SIG"+args[1])))
	},
	// state PROCESS LETTERS waits until the kernel's letter for what a process does is one of these.
	"state": func(s *script, ts *testscript.TestScript, _ bool, args []string) {
		pid := s.pids(ts, args[:1])[0]
		reached := func() bool { now := state(pid); return now != "" && strings.Contains(args[1], now) }
		await(s.T, reached, "%s is never in the state %s", args[0], args[1])
	},
	// guard NAME waits for the guard of a program's command, other than the last one, and sets GUARD to its process number.
	"guard": func(s *script, ts *testscript.TestScript, _ bool, args []string) {
		p, _ := s.at(ts, args[0])
		last, _ := strconv.Atoi(ts.Getenv("GUARD"))
		ts.Setenv("GUARD", strconv.Itoa(p.guardOf(last)))
	},
	// next KEY NAME/FILE... acquires and releases a key. The processes with the numbers in files must be dead by then.
	"next": func(s *script, ts *testscript.TestScript, _ bool, args []string) {
		s.next(s.T, args[0], s.pids(ts, args[1:])...)
	},
	// expires KEY LEASE NAME/FILE... is next for a lock that ends with its lease.
	"expires": func(s *script, ts *testscript.TestScript, _ bool, args []string) {
		lease, err := time.ParseDuration(args[1])
		ts.Check(err)
		s.expires(s.T, args[0], lease, s.pids(ts, args[2:])...)
	},
	// acquire KEY OWNER [shared] [limit=N] [data=TEXT] acquires a lock by the library, and sets TOKEN.
	"acquire": func(s *script, ts *testscript.TestScript, _ bool, args []string) {
		lock := s.acquire(s.T, args[0], args[1], options(args[2:])...)
		s.locks[args[1]] = lock
		ts.Setenv("TOKEN", lock.Token().String())
	},
	// release OWNER releases it.
	"release": func(s *script, ts *testscript.TestScript, _ bool, args []string) { release(s.T, s.locks[args[0]]) },
	// verify OWNER checks that a lock of the library is held, or, negated, that it has ended.
	"verify": func(s *script, ts *testscript.TestScript, neg bool, args []string) {
		if err := s.locks[args[0]].Verify(limited(s.T)); (err != nil) != neg {
			ts.Fatalf("the lock of %s: %v", args[0], err)
		}
	},
	// asked OWNER waits until a lock of the library was asked for.
	"asked": func(s *script, ts *testscript.TestScript, _ bool, args []string) {
		closes(s.T, "asked", s.locks[args[0]].Asked())
	},
	// free KEY... checks that keys are free.
	"free": func(s *script, ts *testscript.TestScript, _ bool, args []string) {
		for _, key := range args {
			free(s.T, s.engine, key)
		}
	},
	// held KEY... checks that keys are held.
	"held": func(s *script, ts *testscript.TestScript, _ bool, args []string) {
		for _, key := range args {
			isHeld(s.T, s.engine, key)
		}
	},
	// waits KEY waits until a client waits for a key.
	"waits": func(s *script, ts *testscript.TestScript, _ bool, args []string) { waits(s.T, s.engine, args[0]) },
	// cut swallows all traffic between the tool and the engine, heal lets it through again, and slow delays each request.
	"cut":  func(s *script, _ *testscript.TestScript, _ bool, _ []string) { s.cut() },
	"heal": func(s *script, _ *testscript.TestScript, _ bool, _ []string) { s.heal() },
	"slow": func(s *script, _ *testscript.TestScript, _ bool, _ []string) { s.slow() },
	// deny CALL has DynamoDB deny a call, and no other.
	"deny": func(s *script, _ *testscript.TestScript, _ bool, args []string) { s.deny(args[0]) },
	// empty checks that the table has no item, or that the root does not exist.
	"empty": func(s *script, ts *testscript.TestScript, _ bool, _ []string) {
		nothingLeft(s.T, append(s.direct, "HOLDFAST_ROOT="+ts.Getenv("HOLDFAST_ROOT")))
	},
	// read VARIABLE FILE sets a variable to the text of a file.
	"read": func(s *script, ts *testscript.TestScript, _ bool, args []string) {
		ts.Setenv(args[0], strings.TrimSpace(ts.ReadFile(args[1])))
	},
	// evil KEY acquires a lock with an owner name and data that could harm a terminal. "release evil" releases it.
	"evil": func(s *script, _ *testscript.TestScript, _ bool, args []string) {
		const evil = "\x1b[2J\x1b]0;title\a\r\n\tforged  line\u202e\u009b31m" // an owner name is UTF-8 without NUL
		s.locks["evil"] = s.acquire(s.T, args[0], evil, holdfast.WithData([]byte(evil+"\xff\x00")))
	},
	// znode PATH IDENTITY:PERMISSIONS... creates a znode and its parents, or changes its permissions. The identity is world, or owner,
	// which has a password.
	"znode": func(s *script, ts *testscript.TestScript, _ bool, args []string) {
		makeNode(ts, s.T, unescape(args[0]), args[1:])
	},
	// item NAME=VALUE... writes an item into the table: numbers as N, "bytes" as B, others as S.
	"item": func(s *script, _ *testscript.TestScript, _ bool, args []string) { putItem(s.T, s.direct, item(args)) },
	// age KEY makes the holder on DynamoDB look silent for longer than its lease.
	"age": func(s *script, ts *testscript.TestScript, _ bool, args []string) { age(s.T, s.direct, args[0]) },
	// terminal opens a terminal, which is the program tty.
	"terminal": func(s *script, ts *testscript.TestScript, _ bool, _ []string) { s.openTerminal(ts) },
	// tmux ARGS... runs a command of tmux.
	"tmux": func(s *script, ts *testscript.TestScript, _ bool, args []string) {
		ts.Check(ts.Exec("tmux", append([]string{"-S", "socket"}, args...)...))
	},
	// type LINE types a line, and press KEY... presses keys, such as C-c.
	"type": func(s *script, _ *testscript.TestScript, _ bool, args []string) { s.enter(args[0]) },
	"press": func(s *script, _ *testscript.TestScript, _ bool, args []string) {
		s.tmux(append([]string{"send-keys"}, args...)...)
	},
	// shows PATTERN waits until the screen matches a pattern, in which "." is any character, and ^ and $ are the ends of a row.
	"shows": func(s *script, _ *testscript.TestScript, _ bool, args []string) { s.shows(args[0]) },
	// prompts waits until the shell has the terminal again, and clear clears the screen, so that its next text is new.
	"prompts": func(s *script, _ *testscript.TestScript, _ bool, _ []string) { s.prompts() },
	"clear":   func(s *script, _ *testscript.TestScript, _ bool, _ []string) { s.clear() },
	// cooked checks that the terminal's modes are those of a shell.
	"cooked": func(s *script, ts *testscript.TestScript, _ bool, _ []string) { s.cooked(ts) },
	// harmless FILE... checks that texts have no control characters.
	"harmless": func(s *script, ts *testscript.TestScript, _ bool, args []string) {
		for _, file := range args {
			if text := ts.ReadFile(file); unprintable(text) {
				ts.Fatalf("%s is %q", file, text)
			}
		}
	},
}

// pids reads process numbers, or waits for those in files.
func (s *script) pids(ts *testscript.TestScript, args []string) (all []int) {
	for _, arg := range args {
		pid, err := strconv.Atoi(arg)
		if err != nil {
			p, file := s.at(ts, arg)
			pid = p.pid(file)
		}
		all = append(all, pid)
	}
	return all
}

// waits waits until a client waits for a key, if the engine shows waiters, and otherwise for a while.
func waits(t *testing.T, e *engine, key string) {
	t.Helper()
	if e.name != "zookeeper" {
		time.Sleep(4 * poll)
		return
	}
	observer := e.dial(t, "")
	await(t, func() bool {
		info, err := observer.Inspect(limited(t), key)
		return err == nil && len(info.Queue) > 0
	}, "no request waits for the key")
}
