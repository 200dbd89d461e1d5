package maplock

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
)

// New must not return a client together with an error.
func TestFinding_NewFails(t *testing.T) {
	c, err := New(NewStore(), Options{Lease: time.Second, Owner: "\xff"})
	if err == nil {
		t.Fatal("no error")
	}
	if c != nil {
		t.Errorf("New returns %+v with the error %v", c, err)
	}
}

func TestFinding_ZeroLease(t *testing.T) {
	c, err := New(NewStore(), Options{})
	if err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err = c.Acquire(ctx, "key")
	t.Errorf("a client without a lease opens, and Acquire: %v", err)
}

// A break of a grant that was released says that it was lost and broken.
func TestFinding_ErrorsOfBreak(t *testing.T) {
	s := NewStore()
	c, _ := New(s, Options{Lease: time.Second})
	defer c.Close(t.Context())
	lock, err := c.Acquire(t.Context(), "key")
	if err != nil {
		t.Fatal(err)
	}
	info, _ := c.Inspect(t.Context(), "key")
	if err := lock.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	err = c.Break(t.Context(), info)
	if errors.Is(err, holdfast.ErrLost) || strings.Contains(err.Error(), "broken") {
		t.Errorf("Break of a grant that was released: %v", err)
	}
}
