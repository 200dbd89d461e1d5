package main

import (
	"bytes"
	"context"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// call runs the program as main does, without a terminal and with its own environment.
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

// TestBadUsage tests hazard C2: invalid usage is refused before anything is sent, with exit
// status 64 and one line that names the flag.
func TestBadUsage(t *testing.T) {
	t.Setenv("AWS_REGION", "")
	t.Setenv("AWS_CONFIG_FILE", os.DevNull)
	zk := map[string]string{"HOLDFAST_SERVERS": "127.0.0.1:1"}
	dynamo := map[string]string{"HOLDFAST_TABLE": "locks"}
	zkAnd := func(name, value string) map[string]string {
		return map[string]string{"HOLDFAST_SERVERS": "127.0.0.1:1", name: value}
	}
	for _, test := range []struct {
		env   map[string]string
		says  string
		lines []string // of arguments, separated by single spaces
	}{
		{zk, "--no-such-flag", []string{"ls --no-such-flag", "doctor --no-such-flag", "run a --no-such-flag true"}},
		{zk, "unknown command \"no-such-command\"\n", []string{"no-such-command"}},
		{zk, "\"; did you mean \"show\"?\n", []string{"shwo", "inspect a"}},
		{zk, "; did you mean \"run\" or \"hold\"?\n", []string{"lock a"}},
		{zk, "; did you mean \"break\"?\n", []string{"unlock a"}},
		{zk, "unknown flag: --json; did you mean -o json?\n", []string{"show a --json", "ls --json", "run a --json true"}},
		{zk, "did you mean 30s?\n", []string{"run a -w 30 true", "run --wait 30 a true", "hold a -w 30"}},
		{zkAnd("HOLDFAST_TIMEOUT", "30"), "did you mean 30s?\n", []string{"ls"}},
		{zkAnd("HOLDFAST_AUTH", "digest:al"), "digest:user:password", []string{"ls"}},
		{zk, "holdfast: no help on \"nope\"\n", []string{"help nope"}},
		{zk, "holdfast: no help on \"table nope\"\n", []string{"help table nope"}},
		{zk, "usage: holdfast ls [PREFIX] [flags]", []string{"ls a b"}},
		{zk, " KEY [flags]", []string{"show", "show a b", "break", "hold", "hold a true", "watch", "watch a b", "observe", "observe a b", "ask", "ask a b"}},
		{zk, "usage: holdfast doctor", []string{"doctor a b"}},
		{zk, "usage: holdfast table create\n", []string{"table", "table no-such-command"}},
		{zk, "usage: holdfast version", []string{"version x"}},
		{zk, "KEY is empty", []string{"show "}},
		{zk, "which key", []string{"run", "run -- true", "run  true", "run a -k b true"}},
		{zk, "which key? It comes first: holdfast elect KEY", []string{"elect", "elect -- true"}},
		{zk, "--wait", []string{"elect a --wait 1s true"}},
		{zk, "-n", []string{"elect a -n true"}},
		{zk, "--reclaim needs --owner", []string{"elect a --reclaim true"}},
		{zk, "which command? It comes after the key: holdfast elect KEY", []string{"elect a"}},
		{zk, "--break-after", []string{"ask a --break-after -1s", "ask a --break-after 0", "ask a --break-after soon"}},
		{zk, "--all and KEY exclude each other", []string{"run --all a,b -k c true", "run -k c --all a,b true"}},
		{zk, "--all: a key is empty", []string{"run --all a,,b true", "run --all  true"}},
		{zk, "--all: a key is there twice", []string{"run --all a,b,a true"}},
		{zk, "which command", []string{"run --all a,b", "run --all a,b --"}},
		{zk, "--all", []string{"elect --all a,b true", "run a --all b,c true"}},
		{zk, "which command", []string{"run a", "run a --", "run -k a", "run -k a --"}},
		{zk, "-k", []string{"run -k"}},
		{zk, "-c", []string{"run a -c"}},
		{zk, "--exec: it is empty", []string{"observe a --exec "}},
		{zk, "--command: it is empty", []string{"run a -c "}},
		{zk, "holdfast run KEY -c STRING", []string{"run -c true"}},
		{zk, "exclude each other", []string{
			"run a --try --wait 1s -- true", "run -k a --try --wait 1s true", "run a -c true false", "hold a --try -w 1s",
		}},
		{zk, "--yes", []string{"break a"}},
		{zk, "--try does not wait", []string{"run a --wait 0s true", "hold a --wait 0"}},
		{zk, "--wait", []string{"run a --wait -1s true", "run a --wait soon true"}},
		{zk, "--ttl", []string{"run a --ttl -1s true", "hold a --ttl -1s"}},
		{zk, "--ttl: 0s is not positive", []string{"run a --ttl 0 true"}},
		{zk, "--grace", []string{
			"run a --grace -1s true", "run a --grace 5s true", "run a --grace 4500ms true", "run a --lease 1s --grace 450ms true",
		}},
		{dynamo, "--grace", []string{"run a --grace 9s true"}},
		{zk, "--lease: 100ms is too short for a command", []string{"run a --lease 100ms true", "elect a --lease 100ms true"}},
		{zkAnd("HOLDFAST_GRACE", "9s"), "--grace", []string{"run a true"}},
		{zk, "--conflict-exit-code", []string{"run a -E 256 true", "run a -E -1 true"}},
		{zk, "--owner", []string{"run a --reclaim true", "run a --owner " + strings.Repeat("x", 1000) + " true"}},
		{zk, "--owner: it is empty", []string{"run a --owner  true"}},
		{zk, "--output", []string{"ls -o xml"}},
		{zk, "--timeout", []string{"ls --timeout 0", "ls --timeout -1s"}},
		{zk, "--lease", []string{"ls --lease -1s", "ls --lease 1000h", "doctor --lease 1000h"}},
		{zk, "--lease: 0s is not positive", []string{"ls --lease 0", "hold a --lease 0", "run a --lease 0s true"}},
		{zkAnd("HOLDFAST_LEASE", "0"), "--lease: 0s is not positive", []string{"ls"}},
		{zk, "--tick-time", []string{"ls --tick-time -1s"}},
		{zk, "--tick-time: 0s is not positive", []string{"ls --tick-time 0"}},
		{zk, "--root", []string{"ls --root relative"}},
		{zk, "--root: it is empty", []string{"ls --root "}},
		{zk, "--interval", []string{"watch a --interval 1ms", "watch a --interval -1s"}},
		{zk, "--interval: 0s is not positive", []string{"watch a --interval 0"}},
		{dynamo, "--poll: 0s is not positive", []string{"ls --poll 0"}},
		{zk, "--names", []string{"ls --names mine", "ls --names latch"}},
		{zk, "--acl", []string{"ls --acl mine"}},
		{zk, "needs credentials", []string{"ls --acl creator"}},
		{zk, "--auth-file", []string{"ls --auth-file /no/such/file"}},
		{zk, "--servers", []string{"ls --servers no\tport", "doctor --servers no\tport"}},
		{zk, "--servers: \"foo:99999\": the port is not a number from 1 to 65535\n", []string{"ls --servers foo:99999"}},
		{zk, "--servers: \"127.0.0.1:22181app\": the port is not", []string{"doctor --servers 127.0.0.1:22181app"}},
		{zk, "--servers: the chroot \"/app/\" must not end with a slash\n", []string{"ls --servers 127.0.0.1:1/app/"}},
		{zk, "--tls-ca", []string{"ls --tls-ca /no/such/file"}},
		{zk, "no certificate", []string{"ls --tls-ca usage_test.go"}},
		{zk, "go together", []string{"ls --tls-key key.pem"}},
		{zk, "redis", []string{"ls --engine redis", "doctor --engine redis"}},
		{zk, "--table", []string{"ls --engine dynamodb", "doctor --engine dynamodb", "table create"}},
		{zk, "--engine", []string{"ls --table locks"}},
		{dynamo, "--engine", []string{"table create --engine zookeeper"}},
		{dynamo, "--servers", []string{"ls --engine zookeeper"}},
		{zk, "--mode ($HOLDFAST_MODE) is for DynamoDB, and the engine is ZooKeeper\n", []string{"ls --mode fail-closed", "doctor --mode fail-closed"}},
		{zkAnd("HOLDFAST_MODE", "fail-closed"), "--mode ($HOLDFAST_MODE) is for DynamoDB", []string{"ls", "run a true", "hold a"}},
		{zkAnd("HOLDFAST_TABLE", "locks"), "--poll ($HOLDFAST_POLL) is for DynamoDB", []string{"ls --engine zookeeper --poll 2s"}},
		{dynamo, "--names ($HOLDFAST_NAMES) is for ZooKeeper, and the engine is DynamoDB\n", []string{"ls --names kazoo"}},
		{map[string]string{"HOLDFAST_TABLE": "locks", "HOLDFAST_AUTH": "digest:a:b"}, "$HOLDFAST_AUTH is for ZooKeeper", []string{"ls", "run a true"}},
		{dynamo, "--mode", []string{"ls --mode fail"}},
		{dynamo, "--partition-key", []string{"ls --partition-key :N"}},
		{dynamo, "--sort-key", []string{"ls --sort-key a:"}},
		{dynamo, "AWS_REGION", []string{"ls", "doctor"}},
		{nil, "--servers", []string{"ls", "doctor"}},
		{zkAnd("HOLDFAST_TIMEOUT", "soon"), "HOLDFAST_TIMEOUT", []string{"ls"}},
		{zkAnd("HOLDFAST_ENGINE", "redis"), "redis", []string{"ls"}},
		{zkAnd("HOLDFAST_TLS", "perhaps"), "HOLDFAST_TLS", []string{"ls"}},
	} {
		for _, line := range test.lines {
			status, stdout, stderr := call(t, test.env, strings.Split(line, " ")...)
			if status != exitUsage || stdout != "" || strings.Count(stderr, "\n") != 1 || len(stderr) > 400 ||
				!strings.HasPrefix(stderr, "holdfast: ") || !strings.Contains(stderr, test.says) {
				t.Errorf("holdfast %q: status %d, stdout %q, stderr %q; want %d and one line with %q", line, status, stdout, stderr, exitUsage, test.says)
			}
		}
	}
}

// TestRunArguments tests how run separates KEY, flags and COMMAND.
func TestRunArguments(t *testing.T) {
	t.Setenv("SHELL", "/bin/zsh")
	for line, want := range map[string]struct {
		key     string
		command []string
		try     bool
	}{
		"k cmd":          {"k", []string{"cmd"}, false},
		"k -- cmd -- -x": {"k", []string{"cmd", "--", "-x"}, false},
		"k -- --cmd":     {"k", []string{"--cmd"}, false},
		"-n k cmd -n":    {"k", []string{"cmd", "-n"}, true},
		"k -n cmd -k x":  {"k", []string{"cmd", "-k", "x"}, true},
		"k -n -- -k":     {"k", []string{"-k"}, true},
		"-k k cmd x":     {"k", []string{"cmd", "x"}, false},
		"-k k -- cmd -c": {"k", []string{"cmd", "-c"}, false},
		"-k -n -n cmd":   {"-n", []string{"cmd"}, true},
		"k -c a|b":       {"k", []string{"/bin/zsh", "-c", "a|b"}, false},
		"-c a|b k":       {"k", []string{"/bin/zsh", "-c", "a|b"}, false},
		"-k k -nc a|b":   {"k", []string{"/bin/zsh", "-c", "a|b"}, true},
	} {
		cmd, r := newRunCommand(&app{})
		err := cmd.ParseFlags(strings.Fields(line))
		if err == nil {
			err = r.parse(cmd, cmd.Flags().Args())
		}
		if err == nil {
			err = r.check(cmd)
		}
		if err != nil || r.key != want.key || !slices.Equal(r.command, want.command) || r.try != want.try {
			t.Errorf("run %s: key %q, command %q, try %v, %v; want %+v", line, r.key, r.command, r.try, err, want)
		}
	}
	for _, args := range [][]string{{"run", "--help"}, {"run", "k", "--help"}} {
		if status, stdout, _ := call(t, map[string]string{"HOLDFAST_SERVERS": "127.0.0.1:1"}, args...); status != 0 || !strings.Contains(stdout, "holdfast run KEY") {
			t.Errorf("%q: status %d, %q", args, status, stdout)
		}
	}
}

// TestOutputsAreNoSettings checks that the variables that run sets for its command are not
// settings of another holdfast below it, and that no flag takes a secret.
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

// TestHelp checks that help describes every flag, on stdout.
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
}
