package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/holdfast-go/holdfast/integration/internal/child"
	"github.com/holdfast-go/holdfast/integration/internal/history"
)

// process is a client process, as the run sees it.
type process struct {
	*child.Process
	name    string
	log     string
	journal *journal
	heard   chan struct{} // closed when all that it has reported is in the journal

	mu       sync.Mutex
	paused   bool
	expected bool // its end is ours
	torn     error
}

// startProcess starts a client process. What it reports goes to the journal. Its log and the reports of its race detector go to
// the directory.
func startProcess(dir string, j *journal, config clientConfig) (*process, error) {
	text, err := json.Marshal(config)
	if err != nil {
		return nil, err
	}
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &process{name: config.Process, log: filepath.Join(dir, "client-"+config.Process+".log"), journal: j, heard: make(chan struct{})}
	// Env becomes the program, so the process is the program's.
	p.Process, err = child.Start(
		p.log, true, "env",
		clientVariable+"="+string(text),
		// go-zookeeper has data races of its own on reconnecting, so a race does not end the process: see races.
		"GORACE=exitcode=0 log_path="+filepath.Join(dir, racePrefix+config.Process),
		exe,
	)
	if err != nil {
		return nil, err
	}
	j.note(history.Started, p.name)
	go p.listen(p.Stdout)
	return p, nil
}

// listen takes in what the process reports.
func (p *process) listen(out io.ReadCloser) {
	defer close(p.heard)
	defer out.Close()
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadBytes('\n')
		if err == nil {
			var rec history.Record
			if err = json.Unmarshal(line, &rec); err == nil {
				p.journal.add(rec)
				continue
			}
			err = fmt.Errorf("%q: %w", line, err)
		} else if errors.Is(err, io.EOF) {
			err = nil
			if len(line) > 0 {
				err = fmt.Errorf("%q: the line breaks off", line)
			}
		}
		p.mu.Lock()
		p.torn = err
		p.mu.Unlock()
		return
	}
}

// tell gives the process a command. A process that has ended hears nothing.
func (p *process) tell(format string, args ...any) error {
	_, err := fmt.Fprintf(p.Stdin, format+"\n", args...)
	return err
}

// pause stops the process with SIGSTOP. It reports false if the process is stopped already, or has ended.
func (p *process) pause() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.paused || p.Signal(syscall.SIGSTOP) != nil {
		return false
	}
	p.AwaitState(true)
	p.paused = true
	p.journal.note(history.Stopped, p.name)
	return true
}

// resume lets a process go on that pause has stopped.
func (p *process) resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.paused {
		p.paused = false
		p.journal.note(history.Resumed, p.name)
		_ = p.Signal(syscall.SIGCONT) // it may have been killed meanwhile
	}
}

// kill ends the process with SIGKILL, and returns when it is gone and all it had to say has been heard. It does nothing to one
// that has ended.
func (p *process) kill() {
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
	p.journal.note(history.Killed, p.name)
	<-p.heard
}

// finish tells the process to end in good order, and kills it when it does not in time.
func (p *process) finish(ctx context.Context, patience time.Duration) error {
	p.mu.Lock()
	p.expected = true
	p.mu.Unlock()
	_ = p.tell("stop")
	timer := time.NewTimer(patience)
	defer timer.Stop()
	var late error
	select {
	case <-p.Done():
	case <-ctx.Done():
		late = context.Cause(ctx)
	case <-timer.C:
		late = fmt.Errorf("it has not ended %v after it was told to", patience)
	}
	if late != nil {
		// For whoever reads its log: what it was waiting for.
		if p.Signal(syscall.SIGQUIT) == nil {
			select {
			case <-p.Done():
			case <-time.After(2 * time.Second):
			}
		}
		p.kill()
		return fmt.Errorf("process %s: %w; see %s", p.name, late, p.log)
	}
	p.journal.note(history.Exited, p.name)
	<-p.heard
	p.Stdin.Close()
	return p.ended()
}

// ended says what was wrong with the end of a process that was told to end.
func (p *process) ended() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.Err().Error() != "exit status 0":
		tail, _ := os.ReadFile(p.log)
		return fmt.Errorf("process %s: %w; its log ends:\n%s", p.name, p.Err(), tail[max(0, len(tail)-2000):])
	case p.torn != nil:
		return fmt.Errorf("process %s: report %w", p.name, p.torn)
	}
	return nil
}

// died says that the process has ended although nobody told it to, if it has.
func (p *process) died() error {
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
	return fmt.Errorf("process %s has ended, and nobody told it to", p.name)
}

// proceed lets a process go on that has stopped itself.
func (p *process) proceed() error {
	p.journal.note(history.Resumed, p.name)
	return p.Signal(syscall.SIGCONT)
}
