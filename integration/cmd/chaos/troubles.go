package main

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// troubles are what faults do to one network at the same time.
type troubles[T any] struct {
	// apply sets the network to the combination of all troubles, the newest first. begun is the one that begins, or nil.
	apply func(all []*T, begun *T) error
	ended func(*T) // called when a trouble ends; may be nil

	mu  sync.Mutex
	all []*T
}

// begin puts a trouble in force, and returns what ends it.
func (s *troubles[T]) begin(t *T) (end func(context.Context) error, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = slices.Insert(s.all, 0, t)
	return func(context.Context) error { return s.end(func(other *T) bool { return other == t }) }, s.apply(s.all, t)
}

func (s *troubles[T]) end(which func(*T) bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.all {
		if s.ended != nil && which(t) {
			s.ended(t)
		}
	}
	s.all = slices.DeleteFunc(s.all, which)
	return s.apply(s.all, nil)
}

// heal ends all troubles.
func (s *troubles[T]) heal() error { return s.end(func(*T) bool { return true }) }

// afflict puts a trouble in force on some wires.
func afflict[T any, W interface {
	begin(*T) (func(context.Context) error, error)
}](wires []W, t T) (end func(context.Context) error) {
	var ends []func(context.Context) error
	var errs []error
	for _, w := range wires {
		end, err := w.begin(&t)
		ends, errs = append(ends, end), append(errs, err)
	}
	return func(ctx context.Context) error {
		for _, end := range ends {
			errs = append(errs, end(ctx))
		}
		return errors.Join(errs...)
	}
}
