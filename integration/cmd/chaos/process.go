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
	// finish asks the process to end cleanly, by some commands, and kills it if it does not in time.
	finish(ctx context.Context, patience time.Duration, commands ...string) error
	// died is an error if the process has ended on its own.
	died() error
	// Done is closed when the process has ended.
	Done() <-chan struct{}
}

// childProcess is a process of the operating system.
type childProcess struct {
	*child.Process
	title   string
	log     string
	journal *journal
	heard   chan struct{} // closed when all its reports are in the journal

	mu       sync.Mutex
	paused   bool
	expected bool // we ended it
	torn     error
}

// startProcess starts a client process. Its reports go to the journal; its log and its race detector's reports go to the
// directory.
func startProcess(dir string, j *journal, config clientConfig) (*childProcess, error) {
	text, err := json.Marshal(config)
	if err != nil {
		return nil, err
	}
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &childProcess{title: config.Process, log: filepath.Join(dir, "client-"+config.Process+".log"), journal: j, heard: make(chan struct{})}
	// env replaces itself with the program, so the pid is the program's.
	p.Process, err = child.Start(
		p.log, true, "env",
		clientVariable+"="+string(text),
		// go-zookeeper has data races of its own on reconnecting, so a race does not end the process: see races.
		"GORACE=exitcode=0 atexit_sleep_ms=0 log_path="+filepath.Join(dir, racePrefix+config.Process),
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
			p.mu.Lock()
			p.torn = fmt.Errorf("%q: %w", lines.Text(), err)
			p.mu.Unlock()
			return
		}
		p.journal.add(rec)
	}
}

func (p *childProcess) name() string { return p.title }

func (p *childProcess) tell(format string, args ...any) error {
	_, err := fmt.Fprintf(p.Stdin, format+"\n", args...)
	return err
}

// pause sends SIGSTOP.
func (p *childProcess) pause() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.paused || p.Signal(syscall.SIGSTOP) != nil {
		return false
	}
	p.AwaitState(true)
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
	p.mu.Lock()
	p.expected, p.paused = true, false
	p.mu.Unlock()
	p.Kill()
	p.journal.note(history.Killed, p.title)
	<-p.heard
}

func (p *childProcess) finish(ctx context.Context, patience time.Duration, commands ...string) error {
	p.mu.Lock()
	p.expected = true
	p.mu.Unlock()
	_ = p.tell("%s", strings.Join(commands, "\n"))
	timer := time.NewTimer(patience)
	defer timer.Stop()
	var late error
	select {
	case <-p.Done():
	case <-ctx.Done():
		late = context.Cause(ctx)
	case <-timer.C:
		late = fmt.Errorf("it has not ended %v after being told to %v", patience, commands)
	}
	if late != nil {
		// SIGQUIT makes its log show what it was waiting for.
		if p.Signal(syscall.SIGQUIT) == nil {
			select {
			case <-p.Done():
			case <-time.After(2 * time.Second):
			}
		}
		p.kill()
		return fmt.Errorf("process %s: %w; see %s", p.title, late, p.log)
	}
	p.journal.note(history.Exited, p.title)
	<-p.heard
	p.Stdin.Close()
	return p.ended()
}

// ended says what was wrong with the end of a stopped process.
func (p *childProcess) ended() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.Err().Error() != "exit status 0":
		tail, _ := os.ReadFile(p.log)
		return fmt.Errorf("process %s: %w; its log ends:\n%s", p.title, p.Err(), tail[max(0, len(tail)-2000):])
	case p.torn != nil:
		return fmt.Errorf("process %s: report %w", p.title, p.torn)
	}
	return nil
}

func (p *childProcess) died() error {
	select {
	case <-p.Done():
	default:
		return nil
	}
	p.mu.Lock()
	expected := p.expected
	p.mu.Unlock()
	if expected {
		return nil
	}
	<-p.heard
	if err := p.ended(); err != nil {
		return err
	}
	return fmt.Errorf("process %s has ended on its own", p.title)
}

// proceed continues a process that has stopped itself.
func (p *childProcess) proceed() error {
	p.journal.note(history.Resumed, p.title)
	return p.Signal(syscall.SIGCONT)
}
