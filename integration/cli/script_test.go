package cli_test

import (
	"crypto/tls"
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
			for engine, open := range engines {
				other := map[string]string{"zookeeper": "_dynamodb", "dynamodb": "_zookeeper"}[engine]
				if strings.HasSuffix(name, other) {
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
			"shared": holdfast.WithShared(), "limit": holdfast.WithLimit(max(n, 1)), "data": holdfast.WithData([]byte(value)),
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
		w := unread(s.T)
		p.cmd.Stdout = w
		p.launch()
		_ = w.Close()
		status, _ := strconv.Atoi(args[0])
		p.exits(status, "")
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
	// dies NAME/FILE... waits for the ends of the processes with the numbers in files.
	"dies": func(s *script, ts *testscript.TestScript, _ bool, args []string) {
		for _, arg := range args {
			p, file := s.at(ts, arg)
			dies(s.T, arg, p.pid(file))
		}
	},
	// kills NAME/FILE SIGNAL sends a signal to the process with the number in a file.
	"kills": func(s *script, ts *testscript.TestScript, _ bool, args []string) {
		p, file := s.at(ts, args[0])
		ts.Check(syscall.Kill(p.pid(file), unix.SignalNum("SIG"+args[1])))
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
	// evil KEY acquires a lock with an owner name and data that could harm a terminal.
	"evil": func(s *script, _ *testscript.TestScript, _ bool, args []string) {
		const evil = "\x1b[2J\x1b]0;title\a\r\n\tforged  line\u202e\u009b31m" // an owner name is UTF-8 without NUL
		s.acquire(s.T, args[0], evil, holdfast.WithData([]byte(evil+"\xff\x00")))
	},
	// znode PATH WHO:PERMISSIONS... creates a znode and its parents, or changes its permissions, for WHO: world, or owner with a password.
	"znode": func(s *script, ts *testscript.TestScript, _ bool, args []string) {
		makeNode(ts, s.T, unescape(args[0]), args[1:])
	},
	// item NAME=VALUE... writes an item into the table: numbers as N, "bytes" as B, others as S.
	"item": func(s *script, _ *testscript.TestScript, _ bool, args []string) { putItem(s.T, s.direct, item(args)) },
	// age KEY makes the holder on DynamoDB look silent for longer than its lease.
	"age": func(s *script, ts *testscript.TestScript, _ bool, args []string) { age(s.T, s.direct, args[0]) },
	// harmless FILE... checks that texts have no control characters.
	"harmless": func(s *script, ts *testscript.TestScript, _ bool, args []string) {
		for _, file := range args {
			if text := ts.ReadFile(file); unprintable(text) {
				ts.Fatalf("%s is %q", file, text)
			}
		}
	},
}

// pids are the process numbers in files.
func (s *script) pids(ts *testscript.TestScript, paths []string) (all []int) {
	for _, path := range paths {
		p, file := s.at(ts, path)
		all = append(all, p.pid(file))
	}
	return all
}
