//go:build mutexorder

package strict

import (
	"bytes"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"sync"
)

// A Mutex is a [sync.Mutex] with a rank. To lock one panics while the same goroutine has another that does not come before it.
type Mutex[R Rank] struct{ mu sync.Mutex }

// Lock locks the mutex.
func (m *Mutex[R]) Lock() {
	var r R
	enter(r.rank())
	m.mu.Lock()
}

// Unlock unlocks the mutex.
func (m *Mutex[R]) Unlock() {
	m.mu.Unlock()
	var r R
	leave(r.rank())
}

// held are the ranks of what each goroutine has locked, or is about to.
var held = struct {
	mu sync.Mutex
	by map[uint64][]int
}{by: make(map[uint64][]int)}

func enter(rank int) {
	id := goroutine()
	held.mu.Lock()
	defer held.mu.Unlock()
	for _, before := range held.by[id] {
		if before >= rank {
			panic(fmt.Sprintf("strict: a mutex of rank %d is locked by a goroutine that has one of rank %d", rank, before))
		}
	}
	held.by[id] = append(held.by[id], rank)
}

func leave(rank int) {
	id := goroutine()
	held.mu.Lock()
	defer held.mu.Unlock()
	has := held.by[id]
	i := slices.Index(has, rank)
	if has = slices.Delete(has, i, i+1); len(has) == 0 {
		delete(held.by, id)
		return
	}
	held.by[id] = has
}

// goroutine returns the number of the present goroutine, which the runtime tells in stacks only.
func goroutine() uint64 {
	var buf [64]byte
	text := bytes.TrimPrefix(buf[:runtime.Stack(buf[:], false)], []byte("goroutine "))
	id, err := strconv.ParseUint(string(text[:bytes.IndexByte(text, ' ')]), 10, 64)
	if err != nil {
		panic(err)
	}
	return id
}
