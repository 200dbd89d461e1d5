// Package memstore is a store for [recordlock] in memory, for tests: with latency, old replicas, and connections that lose, repeat, delay
// and refuse requests. Its methods say what those of a store mean, and other stores are compared with it.
package memstore

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/recordlock"
)

// A Store keeps records. The zero value is empty. Set its fields before use.
type Store struct {
	Latency time.Duration // of a request with its answer
	Lag     time.Duration // how much a read that is not fresh may be behind
	// Forgetful: the store has no tokens, and no record of a vacant key.
	Forgetful bool
	// Revisions: each write makes another version, and a Take of the grant that held the key last is carried out.
	Revisions bool

	mu      sync.Mutex
	records map[string][]state // the latest states of a key, the newest last
	last    map[string]string  // the grants that held keys alone last, unless they were broken
	changes int
}

// state is a record from a moment on.
type state struct {
	at  time.Time
	rec recordlock.Record
}

// states is how many states of a key a replica may show.
const states = 8

// Record returns the present record of a key.
func (s *Store) Record(key string) recordlock.Record { return s.record(key, 0) }

// record returns the record of a key as it was some time ago.
func (s *Store) record(key string, ago time.Duration) recordlock.Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.recordLocked(key, ago)
}

func (s *Store) recordLocked(key string, ago time.Duration) recordlock.Record {
	all := s.records[key]
	for i := len(all) - 1; i >= 0; i-- {
		if ago == 0 || time.Since(all[i].at) >= ago {
			return all[i].rec
		}
	}
	if len(all) == states { // earlier ones are forgotten
		return all[0].rec
	}
	return recordlock.Record{}
}

// Delete deletes a record, as an operator or the store's expiry does.
func (s *Store) Delete(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.putLocked(key, recordlock.Record{})
}

// Expire deletes the free and the held records that have not changed for some time, as the store's expiry does.
func (s *Store) Expire(free, held time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, all := range s.records {
		now, after := all[len(all)-1], held
		if now.rec.Vacant() {
			after = free
		}
		if now.rec.Version != nil && time.Since(now.at) >= after {
			s.putLocked(key, recordlock.Record{})
		}
	}
}

// Put writes a record as another program does. It returns it with its version.
func (s *Store) Put(key string, rec recordlock.Record) recordlock.Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.putLocked(key, rec)
}

func (s *Store) putLocked(key string, rec recordlock.Record) recordlock.Record {
	if s.records == nil {
		s.records, s.last = make(map[string][]state), make(map[string]string)
	}
	s.changes++
	if s.Forgetful {
		rec.Token, rec.Broken = 0, 0
		rec.Holders = slices.Clone(rec.Holders)
		for i := range rec.Holders {
			rec.Holders[i].Token = 0
		}
	}
	absent := s.Forgetful && len(rec.Holders) == 0 || rec.Token == 0 && len(rec.Holders) == 0
	if rec.Version = s.version(&rec); absent {
		rec = recordlock.Record{}
	}
	switch {
	case absent, rec.Mode.Shared, len(rec.Holders) == 1 && rec.Holders[0].Broken:
		delete(s.last, key)
	case len(rec.Holders) == 1:
		s.last[key] = rec.Holders[0].Grant
	}
	all := append(s.records[key], state{time.Now(), rec})
	s.records[key] = all[max(0, len(all)-states):]
	return rec
}

// version names the state of a record. Without Revisions, a state that comes back, as when an intent is left and removed, has its earlier
// version, but not if holders share the key.
func (s *Store) version(rec *recordlock.Record) string {
	var v strings.Builder
	fmt.Fprint(&v, rec.Token, rec.Intent.Beat)
	for _, h := range rec.Holders {
		fmt.Fprint(&v, " ", h.Grant, h.Beat, h.Asked, h.Broken)
	}
	if rec.Mode.Shared || s.Revisions {
		fmt.Fprint(&v, " ", s.changes)
	}
	return v.String()
}

// take is the meaning of Take.
func (s *Store) take(key string, h recordlock.Holder, m driver.Mode) (now recordlock.Record, done bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now = s.recordLocked(key, 0)
	if !now.Vacant() || s.last[key] == h.Grant && !s.Revisions {
		return now, false
	}
	if now.Version == nil {
		now.Token = driver.Token(time.Now().UnixMilli() - 1)
	}
	now.Token++
	h.Token = now.Token
	now.Mode, now.Holders = m, []recordlock.Holder{h}
	return s.putLocked(key, now), true
}

// swap is the meaning of Swap.
func (s *Store) swap(key string, old, next recordlock.Record) (now recordlock.Record, done bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now = s.recordLocked(key, 0); now.Version == nil || now.Version != old.Version {
		return now, false
	}
	if len(next.Holders) == 0 {
		next.Mode = driver.Mode{}
	}
	next.Holders = slices.SortedFunc(slices.Values(next.Holders), func(a, b recordlock.Holder) int {
		return cmp.Or(cmp.Compare(a.Token, b.Token), cmp.Compare(a.Grant, b.Grant))
	})
	return s.putLocked(key, next), true
}

// replace is the meaning of Put.
func (s *Store) replace(key string, version any, next recordlock.Record) (now recordlock.Record, done bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now = s.recordLocked(key, 0); now.Version != version {
		return now, false
	}
	return s.putLocked(key, next), true
}

// renew is the meaning of Renew.
func (s *Store) renew(key string, h recordlock.Holder, m driver.Mode) (now recordlock.Record, done bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now = s.recordLocked(key, 0)
	own := now.Holder(h.Grant)
	if own == nil || own.Token != h.Token || own.Broken || own.Beat >= h.Beat || now.Mode != m {
		return now, false
	}
	now.Holders = slices.Clone(now.Holders)
	own = now.Holder(h.Grant)
	own.Beat, own.Touched, own.Data = h.Beat, h.Touched, bytes.Clone(h.Data)
	return s.putLocked(key, now), true
}

// list returns the records of the held keys that begin with prefix.
func (s *Store) list(prefix string) (all []recordlock.Keyed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(s.records)) {
		if rec := s.recordLocked(key, 0); strings.HasPrefix(key, prefix) && len(rec.Holders) > 0 {
			all = append(all, recordlock.Keyed{Key: key, Record: rec})
		}
	}
	return all
}
