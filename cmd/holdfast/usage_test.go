package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// call calls the program as main does, without a terminal and with an
// environment of its own.
func call(t *testing.T, env map[string]string, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	a := &app{
		in: strings.NewReader(""), out: &out, err: &err, leaveSignals: func() {},
		lookupEnv: func(name string) (string, bool) { value, ok := env[name]; return value, ok },
	}
	status = a.main(context.Background(), args)
	return status, out.String(), err.String()
}

// TestBadUsage checks that what makes no sense is refused before anything is
// sent, with exit status 64 and one line that names the flag.
func TestBadUsage(t *testing.T) {
	t.Setenv("AWS_REGION", "")
	t.Setenv("AWS_CONFIG_FILE", os.DevNull)
	zk := map[string]string{"HOLDFAST_SERVERS": "127.0.0.1:1"}
	dynamo := map[string]string{"HOLDFAST_TABLE": "locks"}
	long := strings.Repeat("x", 1000)
	for _, test := range []struct {
		env  map[string]string
		args []string
		says string
	}{
		{zk, []string{"ls", "--no-such-flag"}, "--no-such-flag"},
		{zk, []string{"no-such-command"}, "unknown command \"no-such-command\"\n"},
		{zk, []string{"shwo"}, "holdfast: unknown command \"shwo\"; did you mean \"show\"?\n"},
		{zk, []string{"help", "nope"}, "holdfast: no help on \"nope\"\n"},
		{zk, []string{"help", "table", "nope"}, "holdfast: no help on \"table nope\"\n"},
		{zk, []string{"ls", "a", "b"}, "usage: holdfast ls [PREFIX] [flags]"},
		{zk, []string{"show"}, " KEY [flags]"},
		{zk, []string{"show", "a", "b"}, " KEY [flags]"},
		{zk, []string{"break"}, " KEY [flags]"},
		{zk, []string{"break", "a"}, "--yes"},
		{zk, []string{"table"}, "usage: holdfast table create\n"},
		{zk, []string{"table", "no-such-command"}, "usage: holdfast table create\n"},
		{zk, []string{"version", "x"}, "usage: holdfast version"},
		{zk, []string{"show", ""}, "KEY is empty"},
		{zk, []string{"run"}, "which key"},
		{zk, []string{"run", "--", "true"}, "which key"},
		{zk, []string{"run", "", "true"}, "which key"},
		{zk, []string{"run", "a"}, "which command"},
		{zk, []string{"run", "a", "--"}, "which command"},
		{zk, []string{"run", "a", "-k", "b", "true"}, "which key"},
		{zk, []string{"run", "a", "--no-such-flag", "true"}, "--no-such-flag"},
		{zk, []string{"run", "a", "--try", "--wait", "1s", "--", "true"}, "exclude each other"},
		{zk, []string{"run", "a", "-c", ""}, "--command: it is empty"},
		{zk, []string{"run", "a", "-c", "true", "false"}, "exclude each other"},
		{zk, []string{"run", "a", "-c"}, "-c"},
		{zk, []string{"run", "-c", "true"}, "holdfast run KEY -c STRING"},
		{zk, []string{"hold"}, " KEY [flags]"},
		{zk, []string{"hold", "a", "true"}, " KEY [flags]"},
		{zk, []string{"hold", "a", "--ttl", "-1s"}, "--ttl"},
		{zk, []string{"hold", "a", "--try", "-w", "1s"}, "exclude each other"},
		{zk, []string{"hold", "a", "--lease", "0"}, "--lease"},
		{zk, []string{"run", "-k"}, "-k"},
		{zk, []string{"run", "-k", "a"}, "which command"},
		{zk, []string{"run", "-k", "a", "--"}, "which command"},
		{zk, []string{"run", "-k", "a", "--try", "--wait", "1s", "true"}, "exclude each other"},
		{zk, []string{"run", "-k", "a", "--wait", "0s", "true"}, "--try does not wait"},
		{zk, []string{"hold", "a", "--wait", "0"}, "--try does not wait"},
		{zk, []string{"run", "-k", "a", "--wait", "-1s", "true"}, "--wait"},
		{zk, []string{"run", "-k", "a", "--wait", "soon", "true"}, "--wait"},
		{zk, []string{"run", "-k", "a", "--ttl", "-1s", "true"}, "--ttl"},
		{zk, []string{"run", "-k", "a", "--grace", "-1s", "true"}, "--grace"},
		{zk, []string{"run", "-k", "a", "--grace", "5s", "true"}, "--grace"},
		{zk, []string{"run", "-k", "a", "--grace", "4500ms", "true"}, "--grace"},
		{zk, []string{"run", "-k", "a", "--lease", "1s", "--grace", "450ms", "true"}, "--grace"},
		{dynamo, []string{"run", "-k", "a", "--grace", "9s", "true"}, "--grace"},
		{zk, []string{"run", "-k", "a", "-E", "256", "true"}, "--conflict-exit-code"},
		{zk, []string{"run", "-k", "a", "-E", "-1", "true"}, "--conflict-exit-code"},
		{zk, []string{"run", "-k", "a", "--reclaim", "true"}, "--owner"},
		{zk, []string{"run", "-k", "a", "--owner", long, "true"}, "--owner"},
		{zk, []string{"ls", "-o", "xml"}, "--output"},
		{zk, []string{"ls", "--timeout", "0"}, "--timeout"},
		{zk, []string{"ls", "--timeout", "-1s"}, "--timeout"},
		{zk, []string{"ls", "--lease", "-1s"}, "--lease"},
		{zk, []string{"ls", "--lease", "1000h"}, "--lease"},
		{zk, []string{"ls", "--lease", "0"}, "--lease: 0s is not positive"},
		{zk, []string{"run", "-k", "a", "--lease", "0s", "true"}, "--lease: 0s is not positive"},
		{map[string]string{"HOLDFAST_LEASE": "0", "HOLDFAST_SERVERS": "127.0.0.1:1"}, []string{"ls"}, "--lease: 0s is not positive"},
		{zk, []string{"run", "-k", "a", "--ttl", "0", "true"}, "--ttl: 0s is not positive"},
		{zk, []string{"run", "-k", "a", "--owner", "", "true"}, "--owner: it is empty"},
		{zk, []string{"ls", "--tick-time", "0"}, "--tick-time: 0s is not positive"},
		{zk, []string{"ls", "--tick-time", "-1s"}, "--tick-time"},
		{zk, []string{"ls", "--root", ""}, "--root: it is empty"},
		{zk, []string{"watch", "a", "--interval", "0"}, "--interval: 0s is not positive"},
		{dynamo, []string{"ls", "--poll", "0"}, "--poll: 0s is not positive"},
		{map[string]string{"HOLDFAST_GRACE": "9s", "HOLDFAST_SERVERS": "127.0.0.1:1"}, []string{"run", "-k", "a", "true"}, "--grace"},
		{zk, []string{"ls", "--names", "mine"}, "--names"},
		{zk, []string{"ls", "--root", "relative"}, "--root"},
		{zk, []string{"ls", "--acl", "mine"}, "--acl"},
		{zk, []string{"ls", "--acl", "creator"}, "needs credentials"},
		{zk, []string{"ls", "--servers", "no port, or what"}, "--servers"},
		{zk, []string{"ls", "--servers", "foo:99999"}, "--servers: \"foo:99999\": the port is not a number from 1 to 65535\n"},
		{zk, []string{"doctor", "--servers", "127.0.0.1:22181app"}, "--servers: \"127.0.0.1:22181app\": the port is not"},
		{zk, []string{"ls", "--servers", "127.0.0.1:1/app/"}, "--servers: the chroot \"/app/\" must not end with a slash\n"},
		{zk, []string{"ls", "--tls-ca", "/no/such/file"}, "--tls-ca"},
		{zk, []string{"ls", "--engine", "redis"}, "redis"},
		{zk, []string{"ls", "--engine", "dynamodb"}, "--table"},
		{zk, []string{"ls", "--table", "locks"}, "--engine"},
		{zk, []string{"table", "create"}, "--table"},
		{dynamo, []string{"table", "create", "--engine", "zookeeper"}, "--engine"},
		{dynamo, []string{"ls", "--engine", "zookeeper"}, "--servers"},
		{dynamo, []string{"ls", "--mode", "fail"}, "--mode"},
		{dynamo, []string{"ls", "--partition-key", ":N"}, "--partition-key"},
		{dynamo, []string{"ls", "--sort-key", "a:"}, "--sort-key"},
		{dynamo, []string{"ls"}, "AWS_REGION"},
		{nil, []string{"ls"}, "--servers"},
		{map[string]string{"HOLDFAST_TIMEOUT": "soon"}, []string{"ls"}, "HOLDFAST_TIMEOUT"},
		{map[string]string{"HOLDFAST_ENGINE": "redis"}, []string{"ls"}, "redis"},
		{map[string]string{"HOLDFAST_TLS": "perhaps"}, []string{"ls"}, "HOLDFAST_TLS"},
	} {
		status, stdout, stderr := call(t, test.env, test.args...)
		if status != exitUsage || stdout != "" {
			t.Errorf("holdfast %q: status %d, stdout %q; want %d and nothing", test.args, status, stdout, exitUsage)
		}
		if !strings.HasPrefix(stderr, "holdfast: ") || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, test.says) || len(stderr) > 400 {
			t.Errorf("holdfast %q: stderr is %q; want one line with %q", test.args, stderr, test.says)
		}
	}
}

// TestRunArguments tests how KEY, flags and COMMAND are told apart.
func TestRunArguments(t *testing.T) {
	t.Setenv("SHELL", "/bin/zsh")
	for _, test := range []struct {
		args    []string
		key     string
		command []string
		try     bool
	}{
		{[]string{"k", "cmd"}, "k", []string{"cmd"}, false},
		{[]string{"k", "--", "cmd", "--", "-x"}, "k", []string{"cmd", "--", "-x"}, false},
		{[]string{"k", "--", "--cmd"}, "k", []string{"--cmd"}, false},
		{[]string{"-n", "k", "cmd", "-n"}, "k", []string{"cmd", "-n"}, true},
		{[]string{"k", "-n", "cmd", "-k", "x"}, "k", []string{"cmd", "-k", "x"}, true},
		{[]string{"k", "-n", "--", "-k"}, "k", []string{"-k"}, true},
		{[]string{"-k", "k", "cmd", "x"}, "k", []string{"cmd", "x"}, false},
		{[]string{"-k", "k", "--", "cmd", "-c"}, "k", []string{"cmd", "-c"}, false},
		{[]string{"-k", "-n", "-n", "cmd"}, "-n", []string{"cmd"}, true},
		{[]string{"k", "-c", "a | b"}, "k", []string{"/bin/zsh", "-c", "a | b"}, false},
		{[]string{"-c", "a | b", "k"}, "k", []string{"/bin/zsh", "-c", "a | b"}, false},
		{[]string{"-k", "k", "-nc", "a | b"}, "k", []string{"/bin/zsh", "-c", "a | b"}, true},
	} {
		cmd, r := newRunCommand(&app{})
		err := cmd.ParseFlags(test.args)
		if err == nil {
			err = r.parse(cmd, cmd.Flags().Args())
		}
		if err == nil {
			err = r.check(cmd)
		}
		if err != nil || r.key != test.key || !slices.Equal(r.command, test.command) || r.try != test.try {
			t.Errorf("run %q: key %q, command %q, try %v, %v; want %+v", test.args, r.key, r.command, r.try, err, test)
		}
	}
	for _, args := range [][]string{{"run", "--help"}, {"run", "k", "--help"}} {
		if status, stdout, _ := call(t, map[string]string{"HOLDFAST_SERVERS": "127.0.0.1:1"}, args...); status != 0 || !strings.Contains(stdout, "holdfast run KEY") {
			t.Errorf("%q: status %d, %q", args, status, stdout)
		}
	}
}

// TestSettings checks that a flag wins over its variable, a variable over the
// default, and that an empty variable is none.
func TestSettings(t *testing.T) {
	for _, test := range []struct {
		env  string
		args []string
		want string
	}{
		{"", nil, "text"},
		{"json", nil, "json"},
		{"json", []string{"-o", "text"}, "text"},
		{"xml", []string{"-o", "text"}, "text"},
	} {
		status, stdout, stderr := call(t, map[string]string{"HOLDFAST_OUTPUT": test.env}, append([]string{"version"}, test.args...)...)
		if got := map[bool]string{true: "json", false: "text"}[strings.HasPrefix(stdout, "{")]; status != 0 || got != test.want {
			t.Errorf("HOLDFAST_OUTPUT=%s version %q printed %s (status %d, %s), want %s", test.env, test.args, got, status, stderr, test.want)
		}
	}
}

// TestOutputsAreNoSettings checks that what run tells its command never becomes
// a setting of another call below it, and that no flag takes a secret.
func TestOutputsAreNoSettings(t *testing.T) {
	root := newRootCommand(&app{})
	for _, cmd := range append(root.Commands(), root) {
		for _, flags := range []*pflag.FlagSet{cmd.Flags(), cmd.PersistentFlags()} {
			flags.VisitAll(func(f *pflag.Flag) {
				for _, name := range f.Annotations[envAnnotation] {
					if slices.Contains([]string{"HOLDFAST_KEY", "HOLDFAST_TOKEN", "HOLDFAST_OWNER", "HOLDFAST_AUTH"}, name) {
						t.Errorf("--%s takes its value from %s", f.Name, name)
					}
					if !strings.Contains(f.Usage, "$"+name) {
						t.Errorf("the help for --%s does not tell of %s", f.Name, name)
					}
				}
				if f.Name == "auth" || strings.Contains(f.Name, "password") || strings.Contains(f.Name, "secret") {
					t.Errorf("--%s would have a secret on the command line", f.Name)
				}
			})
		}
	}
}

// TestHelp checks that help tells of every flag and every exit status, on stdout.
func TestHelp(t *testing.T) {
	root := newRootCommand(&app{})
	for _, cmd := range root.Commands() {
		if cmd.Name() == "completion" || cmd.Name() == "help" {
			continue
		}
		status, stdout, stderr := call(t, nil, cmd.Name(), "--help")
		if status != 0 || stderr != "" {
			t.Errorf("%s --help: status %d, stderr %q", cmd.Name(), status, stderr)
		}
		for _, flags := range []*pflag.FlagSet{cmd.LocalFlags(), root.PersistentFlags()} {
			flags.VisitAll(func(f *pflag.Flag) {
				if !strings.Contains(stdout, "--"+f.Name) {
					t.Errorf("%s --help does not tell of --%s", cmd.Name(), f.Name)
				}
			})
		}
		for line := range strings.Lines(stdout) {
			if len(line) > 90 {
				t.Errorf("%s --help has a long line: %s", cmd.Name(), line)
			}
		}
	}
	for _, args := range [][]string{{"help", "table", "create"}, {"help", "list"}, {"help", "completion", "powershell"}, {"help", "help"}} {
		if status, stdout, stderr := call(t, nil, args...); status != 0 || stderr != "" || !strings.Contains(stdout, "Usage:\n  holdfast ") {
			t.Errorf("%q: status %d, %q, stderr %q", args, status, stdout, stderr)
		}
	}
	_, stdout, _ := call(t, nil, "help")
	for _, status := range []string{"64 ", "69 ", "75 ", "79 ", "124 ", "126 ", "127 ", "128+n"} {
		if !strings.Contains(stdout, "\n  "+status) {
			t.Errorf("help does not tell of exit status %s", status)
		}
	}
}

// TestSecretFiles checks that no message repeats what a file of credentials has
// in it.
func TestSecretFiles(t *testing.T) {
	file := filepath.Join(t.TempDir(), "auth")
	if err := os.WriteFile(file, []byte("hunter2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	status, _, stderr := call(t, map[string]string{"HOLDFAST_SERVERS": "127.0.0.1:1"}, "ls", "--auth-file", file)
	if status != exitUsage || strings.Contains(stderr, "hunter2") {
		t.Errorf("status %d: %s", status, stderr)
	}
}
