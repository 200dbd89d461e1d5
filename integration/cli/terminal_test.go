package cli_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast/integration/internal/verdict"
)

// openTerminal opens a tmux window with an interactive shell, whose DIR is the folder tty. The first starts the server of tmux.
func (s *script) openTerminal(ts *testscript.TestScript) {
	if s.tools["tty"] == nil {
		dir := ts.MkAbs("tty")
		ts.Check(unix.Mkdir(dir, 0o755))
		ts.Check(os.WriteFile(filepath.Join(dir, "rc"), []byte("PS1='$ '\n"), 0o644))
		p := s.prepare(ts, dir, []string{"tmux", "-D", "-f", "/dev/null", "-S", s.socket()})
		p.cmd.Env = append(p.cmd.Env, "TERM=screen", "HISTFILE=", "ENV=")
		s.tools["tty"] = p.launch()
		await(s.T, func() bool { _, err := os.Stat(s.socket()); return err == nil }, "tmux does not start; \"make setup\" installs it")
	}
	s.tmux("new-session", "-d", "-c", s.dir, "-x", "100", "-y", "40", "exec bash --noprofile --rcfile tty/rc -i")
	s.shows(`\$`)
}

func (s *script) socket() string { return filepath.Join(s.dir, "socket") }

// tmux runs a tmux command in the environment of the terminal: a new shell gets its PATH from that.
func (s *script) tmux(args ...string) {
	s.Helper()
	cmd := exec.Command("tmux", append([]string{"-S", s.socket()}, args...)...)
	cmd.Env = s.tools["tty"].cmd.Env
	if out, err := cmd.CombinedOutput(); err != nil {
		verdict.Fatalf(s.T, "tmux %q: %v: %s", args, err, out)
	}
}

func (s *script) screen() string {
	out, _ := exec.Command("tmux", "-S", s.socket(), "capture-pane", "-p", "-J").Output()
	return strings.TrimSpace(regexp.MustCompile(" +\n").ReplaceAllString(string(out), "\n"))
}

func (s *script) enter(line string) {
	s.Helper()
	s.tmux("send-keys", "-l", line)
	s.tmux("send-keys", "Enter")
}

func (s *script) shows(pattern string) {
	s.Helper()
	match := regexp.MustCompile("(?ms)" + pattern)
	if !becomes(func() bool { return match.MatchString(s.screen()) }) {
		verdict.Fatalf(s.T, "the terminal never shows %q; it shows\n%s", pattern, s.screen())
	}
}

// prompts waits until the shell has the terminal again. The command looks different from its output.
func (s *script) prompts() {
	s.Helper()
	n := keys.Add(1)
	s.enter(fmt.Sprintf("echo answer-$((%d+1)).", n-1))
	s.shows(fmt.Sprintf(`answer-%d\.`, n))
}

func (s *script) clear() {
	s.Helper()
	s.prompts()
	s.enter("clear")
	await(s.T, func() bool { return s.screen() == "$" }, "the screen does not get clear")
}

func (s *script) cooked(ts *testscript.TestScript) {
	s.prompts()
	s.enter("stty -a >$DIR/modes; echo >>$DIR/modes done")
	s.tools["tty"].writes("modes", "done")
	got := ts.ReadFile("tty/modes")
	ts.Check(os.Remove(ts.MkAbs("tty/modes")))
	if strings.Contains(got, "-icanon") || strings.Contains(got, "-echo ") || !strings.Contains(got, "susp = ^Z") {
		ts.Fatalf("the modes left behind are %s", got)
	}
}
