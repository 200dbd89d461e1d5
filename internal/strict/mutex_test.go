//go:build mutexorder

package strict

import (
	"strings"
	"testing"
)

func TestMutexOrder(t *testing.T) {
	var client Mutex[Client]
	var lock, other Mutex[Lock]
	panics := func(f func()) (text string) {
		defer func() { text, _ = recover().(string) }()
		f()
		return ""
	}
	client.Lock()
	lock.Lock()
	for name, f := range map[string]func(){"its own rank": other.Lock, "one before": new(Mutex[Store]).Lock} {
		if text := panics(f); !strings.Contains(text, "rank") {
			t.Errorf("%s: %q", name, text)
		}
	}
	client.Unlock() // in whatever order
	elsewhere := make(chan string)
	go func() {
		elsewhere <- panics(func() {
			client.Lock()
			client.Unlock()
		})
	}()
	if text := <-elsewhere; text != "" {
		t.Errorf("another goroutine: %s", text)
	}
	lock.Unlock()
	if text := panics(func() {
		client.Lock()
		client.Unlock()
	}); text != "" {
		t.Errorf("it has none: %s", text)
	}
}
