package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

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
}

// TestFlags checks that the help of a command on stdout describes every flag with its variable, that the variables that run sets for
// its command are not settings of another holdfast below it, and that no flag takes a secret.
func TestFlags(t *testing.T) {
	root := newRootCommand(&app{})
	for _, cmd := range root.Commands() {
		if cmd.Name() == "completion" || cmd.Name() == "help" {
			continue
		}
		status, stdout, stderr := call(t, noEnv, cmd.Name(), "--help")
		if status != 0 || stderr != "" {
			t.Errorf("%s --help: status %d, stderr %q", cmd.Name(), status, stderr)
		}
		for line := range strings.Lines(stdout) {
			if len(line) > 90 {
				t.Errorf("%s --help has a long line: %s", cmd.Name(), line)
			}
		}
		check := func(f *pflag.Flag) {
			if !strings.Contains(stdout, "--"+f.Name) {
				t.Errorf("%s --help does not tell of --%s", cmd.Name(), f.Name)
			}
			if f.Name == "auth" || strings.Contains(f.Name, "password") || strings.Contains(f.Name, "secret") {
				t.Errorf("--%s would have a secret on the command line", f.Name)
			}
			for _, name := range f.Annotations[envAnnotation] {
				if slices.Contains([]string{"HOLDFAST_KEY", "HOLDFAST_TOKEN", "HOLDFAST_OWNER", "HOLDFAST_AUTH"}, name) {
					t.Errorf("--%s takes its value from %s", f.Name, name)
				}
				if !strings.Contains(f.Usage, "$"+name) {
					t.Errorf("the help for --%s does not tell of %s", f.Name, name)
				}
			}
		}
		cmd.LocalFlags().VisitAll(check)
		root.PersistentFlags().VisitAll(check)
	}
}

// TestNames checks that --names takes each form that completion offers.
func TestNames(t *testing.T) {
	for name := range nameForms {
		z := zooKeeper{servers: []string{"127.0.0.1:1"}, names: name, acl: "open"}
		if o, err := z.options(); err != nil || o.Names.String() != name {
			t.Errorf("--names %s makes %+v (%v)", name, o, err)
		}
	}
}
