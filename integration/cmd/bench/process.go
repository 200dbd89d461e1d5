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

// process runs a library of another language. It reads orders from standard input, and answers each with the nanoseconds that it
// took, which it measures itself:
//
//	run KEY N   acquire and release N times, one after the other, a lock that no other client wants
//	many KEY N  acquire and release N times in all, by contenders that all use the key at the same time
type process struct {
	*child.Process
	answers *bufio.Reader
	log     string
}

// program writes the source to a file and starts the command that the path of the file makes. Its block sends the order. The
// program has done warmup operations before: until Java has compiled what they use, they take several times as long.
func program(
	name, source, order string, warmup int, command func(ctx context.Context, l *lifetime, path string) ([]string, error),
) func(context.Context, *lifetime) (block, error) {
	return func(ctx context.Context, l *lifetime) (block, error) {
		dir, lock, err := child.NewDir("holdfast-bench-")
		if err != nil {
			return nil, err
		}
		l.atEnd(func() {
			_ = os.RemoveAll(dir)
			_ = lock.Close()
		})
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(source), 0o600); err != nil {
			return nil, err
		}
		args, err := command(ctx, l, path)
		if err != nil {
			return nil, err
		}
		p := &process{log: filepath.Join(dir, "log")}
		if p.Process, err = child.Start(p.log, true, "env", args...); err != nil {
			return nil, err
		}
		l.atEnd(p.close)
		p.answers = bufio.NewReader(p.Stdout)
		key := otherRoot + "/" + l.name("program")
		if _, err := p.ask(ctx, order, key, max(1, warmup)); err != nil {
			return nil, err
		}
		return func(ctx context.Context, ops int) (time.Duration, error) { return p.ask(ctx, order, key, ops) }, nil
	}
}

func (p *process) close() {
	p.Kill()
	_ = p.Stdout.Close()
}

func (p *process) ask(ctx context.Context, order, key string, n int) (time.Duration, error) {
	stop := context.AfterFunc(ctx, p.Kill)
	defer stop()
	_, err := fmt.Fprintln(p.Stdin, order, key, n)
	answer := ""
	if err == nil {
		answer, err = p.answers.ReadString('\n')
	}
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	if err != nil {
		p.Kill()
		return 0, fmt.Errorf("%w; its log ends:\n%s", errors.Join(err, p.Err()), child.Tail(p.log))
	}
	ns, err := strconv.ParseInt(strings.TrimSpace(answer), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("the answer to %q: %w", order, err)
	}
	return time.Duration(ns), nil
}

// java is a command that compiles and runs one source file.
func java(classpath, source string, args ...string) []string {
	name := "java"
	if home := os.Getenv("JAVA_HOME"); home != "" {
		name = filepath.Join(home, "bin", name)
	}
	return append([]string{name, "-Xmx256m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", classpath, source}, args...)
}
