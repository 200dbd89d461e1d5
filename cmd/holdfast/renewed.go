package main

import (
	"os"
	"sync"
)

// renewed is a value made from files, and made again when they change. While a file is missing or invalid, the last good value stays.
type renewed[T any] struct {
	files []string
	load  func() (T, error)

	mu    sync.Mutex
	seen  string // the contents of the files of value
	value T
}

func newRenewed[T any](load func() (T, error), files ...string) (*renewed[T], error) {
	r := &renewed[T]{files: files, load: load}
	r.seen = r.contents() // first, so that a change during load is seen
	var err error
	r.value, err = load()
	return r, err
}

// get returns the value by the present files.
func (r *renewed[T]) get() T {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := r.contents(); now != r.seen {
		if v, err := r.load(); err == nil {
			r.value, r.seen = v, now
		}
	}
	return r.value
}

func (r *renewed[T]) contents() string {
	var all []byte
	for _, name := range r.files {
		if info, err := os.Stat(name); err == nil && info.Mode().IsRegular() { // a pipe can be read once
			text, _ := os.ReadFile(name)
			all = append(append(all, text...), 0)
		}
	}
	return string(all)
}
