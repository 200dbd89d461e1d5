package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/integration/internal/child"
)

// peer is a process of its own, mostly of another language with another library. It is told by lines what to do, and answers
// each with the nanoseconds that it took, which it measures itself.
type peer struct {
	process *child.Process
	said    *bufio.Reader
	dir     string
	lock    *os.File
	settled bool // who joins waits when the answer to "fill" comes
}

// startPeer writes the source, if there is one, to a file of the name, and starts the command that the path of the file makes.
func startPeer(name, source string, command func(path string) ([]string, error)) (p *peer, err error) {
	p = &peer{}
	if p.dir, p.lock, err = child.NewDir("holdfast-bench-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			p.close()
		}
	}()
	path := filepath.Join(p.dir, name)
	if source != "" {
		if err = os.WriteFile(path, []byte(source), 0o600); err != nil {
			return nil, err
		}
	}
	args, err := command(path)
	if err != nil {
		return nil, err
	}
	if p.process, err = child.Start(p.log(), true, "env", args...); err != nil {
		return nil, err
	}
	p.said = bufio.NewReader(p.process.Stdout)
	return p, nil
}

func (p *peer) log() string { return filepath.Join(p.dir, "log") }

func (p *peer) close() {
	if p.process != nil {
		p.process.Kill()
		_ = p.process.Stdout.Close()
	}
	_ = os.RemoveAll(p.dir)
	_ = p.lock.Close()
}

// ask has the process do something, so many times, with a key.
func (p *peer) ask(ctx context.Context, what, key string, n int) (time.Duration, error) {
	took, err := p.askAll(ctx, what, key, n, 1)
	if err != nil {
		return 0, err
	}
	return took[0], nil
}

// askAll is ask for what is answered with a number of times.
func (p *peer) askAll(ctx context.Context, what, key string, n, times int) ([]time.Duration, error) {
	stop := context.AfterFunc(ctx, p.process.Kill)
	defer stop()
	if _, err := fmt.Fprintln(p.process.Stdin, what, key, n); err != nil {
		return nil, p.failure(ctx, err)
	}
	line, err := p.said.ReadString('\n')
	if err != nil {
		return nil, p.failure(ctx, err)
	}
	took, err := durations(line, times)
	if err != nil {
		return nil, fmt.Errorf("the answer to %q: %w", what, err)
	}
	return took, nil
}

// durations reads a line of numbers of nanoseconds.
func durations(line string, n int) ([]time.Duration, error) {
	words := strings.Fields(line)
	if len(words) != n {
		return nil, fmt.Errorf("%q has %d numbers, want %d", line, len(words), n)
	}
	all := make([]time.Duration, n)
	for i, word := range words {
		ns, err := strconv.ParseInt(word, 10, 64)
		if err != nil {
			return nil, err
		}
		if ns < 0 {
			return nil, fmt.Errorf("%q: a time is not negative", line)
		}
		all[i] = time.Duration(ns)
	}
	return all, nil
}

func (p *peer) failure(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	p.process.Kill() // it has ended, or cannot be used any more
	log, logErr := os.ReadFile(p.log())
	return fmt.Errorf("%w; the process: %w; it said:\n%s", errors.Join(err, logErr), p.process.Err(), log)
}

// loop makes a block that takes and releases one lock.
func (p *peer) loop(key string) block {
	return func(ctx context.Context, ops int) (time.Duration, error) { return p.ask(ctx, "run", key, ops) }
}

// many makes a block of its threads, which all acquire and release at the same time.
func (p *peer) many(key string) block {
	return func(ctx context.Context, ops int) (time.Duration, error) { return p.ask(ctx, "many", key, ops) }
}

// line makes a block of hand-offs, as those of type line.
func (p *peer) line(e *env, queue string, waiters int) block {
	return func(ctx context.Context, ops int) (total time.Duration, err error) {
		for ops > 0 {
			n := min(ops, max(1, waiters/2))
			ops -= n
			if _, err := p.ask(ctx, "fill", queue, waiters+1); err != nil {
				return 0, err
			}
			if !p.settled {
				if err := e.settle(ctx, queue, waiters+1); err != nil {
					return 0, err
				}
			}
			took, err := p.ask(ctx, "pass", queue, n)
			if err != nil {
				return 0, err
			}
			total += took
		}
		return total, nil
	}
}
