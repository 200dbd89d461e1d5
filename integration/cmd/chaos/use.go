package main

import (
	"fmt"
	"slices"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/internal/history"
)

// The keys of a run that several hold at a time. The others are locks.
const (
	readKey   = "read"    // readers, and some writers
	permitKey = "permits" // mostly a semaphore
	mixedKey  = "mixed"   // all modes, several limits, and many waiters that give up
)

// permits is the limit of the semaphore: few, so that some requests wait. mostPermits is the highest limit on any key.
const permits, mostPermits = 2, 3

// exclusive is how a lock is held.
var exclusive history.Mode

func permitOf(n int) history.Mode { return history.Mode{Shared: true, Limit: n} }

// uses are the modes in which a key is acquired.
func uses(key string) []history.Mode {
	switch reading := (history.Mode{Shared: true}); key {
	case readKey:
		return []history.Mode{reading, reading, reading, exclusive}
	case permitKey:
		return []history.Mode{permitOf(permits)}
	case mixedKey:
		return []history.Mode{
			permitOf(permits), permitOf(permits), permitOf(mostPermits), permitOf(mostPermits), permitOf(1), reading, exclusive,
		}
	}
	return []history.Mode{exclusive}
}

// option asks for a key in a mode.
func option(m history.Mode) []holdfast.Option {
	switch {
	case m.Limit > 0:
		return []holdfast.Option{holdfast.WithLimit(m.Limit)}
	case m.Shared:
		return []holdfast.Option{holdfast.WithShared()}
	}
	return nil
}

// keys are all keys of a run. A run with few keys has only some of the shared keys, by its seed.
func (s *settings) keys() []string {
	var keys []string
	if !engineOf(s.Engine).endless {
		keys = []string{readKey, permitKey, mixedKey}
		first := int(s.Seed % uint64(len(keys)))
		keys = slices.Concat(keys[first:], keys[:first])
	}
	keys = keys[:min(len(keys), s.Keys-1)]
	for i := range s.Keys - len(keys) {
		keys = append(keys, fmt.Sprintf("key-%d", i))
	}
	return keys
}
