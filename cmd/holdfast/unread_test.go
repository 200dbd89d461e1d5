//go:build unix

package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/memlock"
)

// cutOff is an engine whose connection breaks during a request.
type cutOff struct{ inMemory }

func (e *cutOff) connect(context.Context, *app, connectOptions) (*client, error) {
	c, err := memlock.New(&memlock.Options{Wrap: func(_ driver.Host, d driver.Driver) driver.Driver { return brokenOff{d} }})
	if err != nil {
		return nil, err
	}
	return &client{Client: c.Client, lease: func() time.Duration { return time.Minute }, queues: true}, nil
}

type brokenOff struct{ driver.Driver }

func (brokenOff) Inspect(context.Context, string) (driver.Info, error) {
	broken := &net.OpError{Op: "write", Net: "tcp", Err: os.NewSyscallError("write", syscall.EPIPE)}
	return driver.Info{}, fmt.Errorf("%w: %w", driver.ErrDisconnected, broken)
}

// TestBrokenConnectionIsTold checks that a connection to the engine that is broken is a failure with a
// message, and not taken for an output that nobody reads.
func TestBrokenConnectionIsTold(t *testing.T) {
	useEngine(t, func() engine { return &cutOff{} })
	for _, command := range []string{"show k", "observe k", "watch k"} {
		status, _, says := call(t, nil, append(strings.Fields(command), "--store", "a")...)
		if status != exitFailed || !strings.Contains(says, "broken pipe") {
			t.Errorf("%s: status %d, want %d, and stderr is %q", command, status, exitFailed, says)
		}
	}
}

// TestUnreadOutput checks that a command ends with the status of SIGPIPE, and says nothing, once nobody
// reads its output: at a write, or before there is anything to be written.
func TestUnreadOutput(t *testing.T) {
	stores := map[string]*memlock.Store{"a": memlock.NewStore()}
	useEngine(t, func() engine { return &inMemory{stores: stores} })
	for _, command := range []string{"show k", "show k -o json", "observe k", "watch k", "doctor", "version"} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		_ = r.Close()
		var stderr bytes.Buffer
		a := &app{in: strings.NewReader(""), out: w, err: &stderr, leaveSignals: func() {}, lookupEnv: func(string) (string, bool) { return "", false }}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		status := a.main(ctx, append(strings.Fields(command), "--store", "a"))
		cancel()
		_ = w.Close()
		if want := 128 + int(syscall.SIGPIPE); status != want || stderr.Len() > 0 {
			t.Errorf("%s: status %d, want %d, and stderr is %q", command, status, want, stderr.String())
		}
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	_ = r.Close()
	if err := unread(w); !isUnread(err) {
		t.Errorf("the reader of the pipe is gone, and unread returns %v", err)
	}
}
