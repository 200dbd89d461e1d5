package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/holdfast-go/holdfast/integration/internal/child"
	"github.com/holdfast-go/holdfast/integration/internal/history"
)

// process is a client process, as the run sees it.
type process interface {
	name() string
	// tell sends the process a command. It does nothing if the process has ended.
	tell(format string, args ...any) error
	// pause stops the process. It returns false if the process is already stopped, or has ended.
	pause() bool
	// resume continues a process that pause has stopped.
	resume()
	// kill ends the process, and returns when it is gone and all its reports are recorded. It does nothing if the process has
	// ended.
	kill()
	// dump logs the stacks of the process.
	dump()
	// ended returns the error of a process that has ended, when all its reports are recorded.
	ended() error
	// Done is closed when the process has ended.
	Done() <-chan struct{}
	// lives is the part that all processes have.
	lives() *lifecycle
}

// lifecycle is the state of a process that does not depend on its world.
type lifecycle struct {
	title    string
	journal  *journal
	expected atomic.Bool // the run ended it
}

func (l *lifecycle) name() string { return l.title }

func (l *lifecycle) lives() *lifecycle { return l }

// finish asks a process to end cleanly, by some commands, and kills it if it does not in time.
func finish(ctx context.Context, p process, patience time.Duration, commands ...string) error {
	p.lives().expected.Store(true)
	for _, command := range commands {
		_ = p.tell("%s", command) // it may have ended
	}
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("it has not ended %v after being told to %v", patience, commands))
	defer cancel()
	select {
	case <-p.Done():
		p.lives().journal.note(history.Exited, p.name())
		return p.ended()
	case <-ctx.Done():
		p.dump()
		p.kill()
		return fmt.Errorf("process %s: %w", p.name(), context.Cause(ctx))
	}
}

// died is an error if a process has ended on its own.
func died(p process) error {
	select {
	case <-p.Done():
	default:
		return nil
	}
	if p.lives().expected.Load() {
		return nil
	}
	if err := p.ended(); err != nil {
		return err
	}
	return fmt.Errorf("process %s has ended on its own", p.name())
}

// childProcess is a process of the operating system.
type childProcess struct {
	*child.Process
	lifecycle
	log   string
	heard chan struct{} // closed when all its reports are in the journal

	mu     sync.Mutex
	paused bool
	torn   error // of a truncated last report
}

// startProcess starts a client process. Its reports go to the journal; its log goes to the directory.
func startProcess(dir string, j *journal, config clientConfig) (*childProcess, error) {
	text, err := json.Marshal(config)
	if err != nil {
		return nil, err
	}
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &childProcess{
		lifecycle: lifecycle{title: config.Process, journal: j},
		log:       filepath.Join(dir, clientLog(config.Process)), heard: make(chan struct{}),
	}
	// env replaces itself with the program, so the pid is the program's.
	p.Process, err = child.Start(
		p.log, true, "env",
		clientVariable+"="+string(text),
		// go-zookeeper has data races of its own on reconnecting, so a race does not end the process: see races.
		"GORACE=exitcode=0 atexit_sleep_ms=0",
		exe,
	)
	if err != nil {
		return nil, err
	}
	j.note(history.Started, p.title)
	go p.listen(p.Stdout)
	return p, nil
}

// listen records the reports of the process.
func (p *childProcess) listen(out io.ReadCloser) {
	defer close(p.heard)
	defer out.Close()
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		var rec history.Record
		if err := json.Unmarshal(lines.Bytes(), &rec); err != nil {
			p.torn = fmt.Errorf("report %q: %w", lines.Text(), err)
			return
		}
		p.journal.add(rec)
	}
}

func (p *childProcess) tell(format string, args ...any) error {
	_, err := fmt.Fprintf(p.Stdin, format+"\n", args...)
	return err
}

// pause sends SIGSTOP.
func (p *childProcess) pause() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.paused || p.Pause() != nil {
		return false
	}
	p.paused = true
	p.journal.note(history.Stopped, p.title)
	return true
}

func (p *childProcess) resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.paused {
		p.paused = false
		p.journal.note(history.Resumed, p.title)
		_ = p.Signal(syscall.SIGCONT) // it may have been killed meanwhile
	}
}

// kill sends SIGKILL.
func (p *childProcess) kill() {
	defer p.Stdin.Close()
	select {
	case <-p.Done():
		return
	default:
	}
	p.expected.Store(true)
	p.Kill()
	p.journal.note(history.Killed, p.title)
	<-p.heard
}

// dump makes the process write its stacks to its log, and end.
func (p *childProcess) dump() {
	if p.Signal(syscall.SIGQUIT) == nil {
		select {
		case <-p.Done():
		case <-time.After(2 * time.Second):
		}
	}
}

func (p *childProcess) ended() error {
	<-p.heard
	p.Stdin.Close()
	if p.Err().Error() != "exit status 0" {
		tail, _ := os.ReadFile(p.log)
		return fmt.Errorf("process %s: %w; its log ends:\n%s", p.title, p.Err(), strings.TrimSpace(string(tail[max(0, len(tail)-2000):])))
	}
	return p.torn
}
