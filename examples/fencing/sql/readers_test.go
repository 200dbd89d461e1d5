package main

import (
	"errors"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/memlock"
)

// Readers that hold the key together are served in any order. One that is late is refused once a writer has written,
// and so is a writer once a later reader has claimed the row.
func TestReaders(t *testing.T) {
	a, err := create(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer a.db.Close()
	for _, statement := range []string{settingsSchema, `INSERT INTO settings (id, value) VALUES ('color', 'red')`} {
		if _, err := a.db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	client, err := memlock.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close(t.Context())
	token := func(opts ...holdfast.Option) holdfast.Token {
		lock, err := client.TryAcquire(t.Context(), "color", opts...)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { lock.Release(t.Context()) })
		return lock.Token()
	}
	release := func() {
		info, err := client.Inspect(t.Context(), "color")
		if err != nil {
			t.Fatal(err)
		}
		for grant := range info.Each() {
			if err := client.Break(t.Context(), grant); err != nil {
				t.Fatal(err)
			}
		}
	}
	s := settings(a)
	expect := func(what string, err error, refused bool) {
		t.Helper()
		if errors.Is(err, errStale) != refused || err != nil && !refused {
			t.Errorf("%s: %v", what, err)
		}
	}
	early := token()
	release()
	one, two := token(holdfast.WithShared()), token(holdfast.WithShared())
	expect("the newer reader", s.claim(t.Context(), "color", two), false)
	expect("the older reader", s.claim(t.Context(), "color", one), false)
	expect("a writer that is later than a reader", s.set(t.Context(), "color", "blue", early), true)
	release()
	late := token()
	expect("the writer after them", s.set(t.Context(), "color", "green", late), false)
	expect("a reader that is later than a writer", s.claim(t.Context(), "color", two), true)
	expect("the writer again", s.set(t.Context(), "color", "white", late), false)
}
