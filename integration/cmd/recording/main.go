// Recording makes docs/takeover.svg, an animated picture of three terminals: two
// programs take turns at a lock, and an operator watches. Real processes on a
// real ZooKeeper produce all output; the frames follow each other at the
// original pace.
//
//	make recording
//
// Files: main.go has the script, terminal.go the terminals, svg.go the picture.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
	"time"

	"github.com/holdfast-go/holdfast/integration/internal/zkserver"
)

// patience bounds the whole recording.
const patience = 2 * time.Minute

// The job that web1 and web2 run under the lock.
const job = `#!/bin/sh
while sleep 1; do echo "wrote page $((n += 1)) with token $HOLDFAST_TOKEN"; done
`

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: recording FILE.svg")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	film, err := record(ctx)
	if err == nil {
		err = os.WriteFile(os.Args[1], film.svg(), 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		stop()
		os.Exit(1)
	}
}

// record plays the script, and returns the film.
func record(ctx context.Context) (f *film, err error) {
	dir, err := os.MkdirTemp("", "holdfast-rec-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	build := exec.CommandContext(ctx, "go", "build", "-o", dir, ".")
	build.Dir = "cmd/holdfast"
	build.Env = append(os.Environ(), "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("go build: %w\n%s", err, out)
	}
	if err := os.WriteFile(filepath.Join(dir, "make-reports"), []byte(job), 0o755); err != nil {
		return nil, err
	}
	server, err := zkserver.Start(ctx, zkserver.Config{})
	if err != nil {
		return nil, err
	}
	defer server.Close()

	t := &terminals{dir: dir, env: []string{
		"PATH=" + dir + ":" + os.Getenv("PATH"), "TERM=screen", "LANG=C.UTF-8", "HISTFILE=",
		"HOLDFAST_SERVERS=" + server.Addr(), "HOLDFAST_LEASE=2s",
	}}
	defer func() { err = errors.Join(err, t.close()) }()
	web1, web2 := t.open(ctx, "web1", 4), t.open(ctx, "web2", 4)
	operator := t.open(ctx, "operator", 9)

	const run = "holdfast run reports/nightly --owner %s -- ./make-reports"
	operator.enter(ctx, "holdfast watch reports/nightly")
	operator.shows(ctx, "reports/nightly")
	t.caption("Nobody holds the lock.")
	t.pause(ctx, 1500*time.Millisecond)
	t.caption("web1 is granted the lock.")
	web1.enter(ctx, fmt.Sprintf(run, "web1"))
	first := web1.shows(ctx, `wrote page 1 with token (\d+)`)
	t.pause(ctx, 2500*time.Millisecond)
	t.caption("web2 waits for it.")
	web2.enter(ctx, fmt.Sprintf(run, "web2"))
	web2.shows(ctx, "waiting for")
	t.pause(ctx, 2500*time.Millisecond)
	t.caption("web1 is killed by SIGKILL. Its job dies with it. The lock is free when its lease is over.")
	web1.kill(ctx)
	web1.shows(ctx, "Killed")
	operator.shows(ctx, "held by +web2")
	t.caption("web2 is granted the lock, with a greater fencing token.")
	second := web2.shows(ctx, `wrote page 1 with token (\d+)`)
	t.pause(ctx, 4*time.Second)
	if t.err != nil {
		return nil, t.err
	}
	if one, two := number(first), number(second); one >= two {
		return nil, fmt.Errorf("token %d was followed by %d", one, two)
	}
	return &t.film, nil
}

func number(digits string) int64 {
	n, _ := strconv.ParseInt(digits, 10, 64) // an expression has found them
	return n
}

// find returns what an expression matches in a text, or its parenthesized part.
func find(expression, text string) (string, bool) {
	m := regexp.MustCompile(expression).FindStringSubmatch(text)
	if m == nil {
		return "", false
	}
	return m[len(m)-1], true
}
