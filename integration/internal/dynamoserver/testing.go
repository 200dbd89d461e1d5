package dynamoserver

import (
	"context"
	"sync"
	"testing"
	"time"
)

// shared is the one server of a test binary.
var shared struct {
	mu     sync.Mutex
	inMain bool
	target *Target
	err    error
}

// Main runs the tests of a binary that uses [Find], stops the server that they started, and returns the exit code. Call it
// from TestMain.
func Main(m *testing.M) int {
	shared.mu.Lock()
	shared.inMain = true
	shared.mu.Unlock()
	defer func() {
		shared.mu.Lock()
		defer shared.mu.Unlock()
		if shared.target != nil {
			shared.target.Close()
		}
	}()
	return m.Run()
}

// Find is [Open] for tests: it fails tb on error. All tests of the binary get the same server, so the first opens it, and
// [Main] closes it. An error is kept too: a second try would only take as long again.
func Find(tb testing.TB) *Target {
	tb.Helper()
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if !shared.inMain {
		tb.Fatal("dynamoserver.Find without dynamoserver.Main, which stops the server")
	}
	if shared.target == nil && shared.err == nil {
		shared.target, shared.err = Open(tb.Context())
	}
	if shared.err != nil {
		tb.Fatal(shared.err)
	}
	t := *shared.target
	t.close = func() {}
	tb.Logf("DynamoDB: %s at %s", t.Source(), t.Endpoint())
	tb.Cleanup(func() {
		if tail := t.LogTail(); tb.Failed() && tail != "" {
			tb.Logf("log of DynamoDB at %s ends:\n%s", t.Endpoint(), tail)
		}
	})
	return &t
}

// Table is [Target.CreateTable] for tests: it fails tb on error, and deletes the table when tb ends.
func (t *Target) Table(tb testing.TB, keys ...Key) string {
	tb.Helper()
	name, drop, err := t.CreateTable(tb.Context(), keys...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := drop(ctx); err != nil {
			tb.Error(err)
		}
	})
	return name
}
