package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
)

// observe begins to observe the key of a scene, and returns what ends it.
func (s *scene) observe(o observeFlags) (stop func()) {
	s.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	o.key = "k"
	go func() {
		defer close(ended)
		_ = s.w.app.tellChanges(ctx, s.w.client, o)
	}()
	return func() {
		cancel()
		<-ended
	}
}

// TestObservePrintsChanges checks that observe prints one line for each change of holder, one for the begin of an
// outage and one for its end, and no other: not for those who wait.
func TestObservePrintsChanges(t *testing.T) {
	inScene(t, func(t *testing.T, s *scene) {
		defer s.observe(observeFlags{})()
		s.prints("free key=k")
		lock := s.take(holdfast.WithOwner("a b"), holdfast.WithData([]byte("x\x1b[31m=")))
		const time = `[-0-9]{10}T[:0-9]{8}\S*`
		held := fmt.Sprintf(`held key=k owner="a b" token=%d since=%s lease=10s data="x\\x1b\[31m="`, lock.Token(), time)
		s.prints(held)
		ctx, giveUp := context.WithCancel(context.Background())
		go func() { _, _ = s.other.Acquire(ctx, "k") }()
		s.prints()
		giveUp()
		s.store.Cut(s.watched)
		s.prints(held + " stale=true")
		s.store.Heal(s.watched)
		s.prints(held)
		if err := lock.Release(context.Background()); err != nil {
			t.Fatal(err)
		}
		s.prints("free key=k")
	})
}

// TestObservePrintsJSON checks that each line is a document with the fields of show.
func TestObservePrintsJSON(t *testing.T) {
	inScene(t, func(t *testing.T, s *scene) {
		s.w.app.set.output = "json"
		s.take(holdfast.WithData([]byte{0xff}))
		defer s.observe(observeFlags{})()
		synctest.Wait()
		var all map[string]any
		if err := json.Unmarshal(s.out.Bytes(), &all); err != nil {
			t.Fatalf("%v: %q", err, s.out.String())
		}
		if all["time"] == nil || all["held"] != true || all["owner"] != "other" || all["data_base64"] != "/w==" || all["token"] == nil {
			t.Errorf("it printed %v", all)
		}
	})
}

// TestObserveOutages checks what stderr tells of an outage: once that it began, once that it ended.
func TestObserveOutages(t *testing.T) {
	inScene(t, func(t *testing.T, s *scene) {
		var stderr bytes.Buffer
		s.w.app.err = &stderr
		stop := s.w.app.tellOutages(s.w.client, "the last state may be outdated")
		time.Sleep(time.Second)
		s.store.Cut(s.watched)
		time.Sleep(time.Minute)
		s.store.Heal(s.watched)
		time.Sleep(time.Minute)
		stop()
		if got, want := stderr.String(), "holdfast: disconnected: the last state may be outdated\nholdfast: connected again\n"; got != want {
			t.Errorf("stderr is %q, want %q", got, want)
		}
	})
}

// awaitText waits until a file has a text.
func awaitText(t *testing.T, name, text string) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		got, _ := os.ReadFile(name)
		if string(got) == text {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("the file has %q, want %q", got, text)
		}
	}
}

// TestObserveExec checks what the command is told, that one runs at a time and for the newest
// state, and that its failures end nothing.
func TestObserveExec(t *testing.T) {
	t.Setenv("SHELL", "/bin/sh")
	t.Setenv("HOLDFAST_DATA", "of another holdfast")
	s := newScene(t)
	var stderr bytes.Buffer
	s.w.app.err = &stderr
	dir := t.TempDir()
	seen, proceed := filepath.Join(dir, "seen"), filepath.Join(dir, "go")
	stop := s.observe(observeFlags{script: `echo "$HOLDFAST_KEY $HOLDFAST_HELD ${HOLDFAST_OWNER-none} ${HOLDFAST_TOKEN-none} ${HOLDFAST_DATA-none}" >>` + seen +
		`; [ "$HOLDFAST_DATA" != slow ] || until [ -e ` + proceed + ` ]; do sleep 0.01; done; exit 3`})
	awaitText(t, seen, "k false none none none\n")
	first := s.take(holdfast.WithData([]byte("slow")))
	story := fmt.Sprintf("k false none none none\nk true other %d slow\n", first.Token())
	awaitText(t, seen, story)
	_ = first.Release(t.Context())
	second := s.take(holdfast.WithOwner("$(exit)"))
	_ = second.Release(t.Context())
	last := s.take(holdfast.WithData([]byte("\x00")))
	if err := os.WriteFile(proceed, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	awaitText(t, seen, fmt.Sprintf("%sk true other %d none\n", story, last.Token()))
	stop()
	if n := strings.Count(stderr.String(), "holdfast: the command of --exec has failed: exit status 3\n"); n < 2 {
		t.Errorf("stderr tells %d times of a failure: %q", n, stderr.String())
	}
}

// TestObserveExecEnds checks that a command which hangs is ended with observe, and with it what it has started.
func TestObserveExecEnds(t *testing.T) {
	t.Setenv("SHELL", "/bin/sh")
	s := newScene(t)
	s.w.app.err = &bytes.Buffer{}
	seen := filepath.Join(t.TempDir(), "seen")
	stop := s.observe(observeFlags{script: `trap 'echo TERM >>` + seen + `; exit' TERM; echo begun >>` + seen + `; sleep 1000 & wait`})
	awaitText(t, seen, "begun\n")
	stop()
	awaitText(t, seen, "begun\nTERM\n")
}
