// Package oldest has the age of the oldest wait or hold, for collectors of metrics. These are modules of their own, which may be
// older or newer than this one: do not change a signature here.
package oldest

import (
	"sync"
	"time"
)

// Spans are the waits, or the holds, under way in each series. The zero value has none.
type Spans[Series comparable] struct {
	mu    sync.Mutex
	began map[Series]map[any]time.Time
}

// Note notes when a span began, or, if that is zero, that it has ended. The id is unique among the spans of its series.
func (s *Spans[Series]) Note(series Series, id any, began time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.began == nil {
		s.began = make(map[Series]map[any]time.Time)
	}
	if s.began[series] == nil {
		s.began[series] = make(map[any]time.Time)
	}
	if s.began[series][id] = began; began.IsZero() {
		delete(s.began[series], id)
	}
}

// Each calls f with the age of the oldest span of each series that ever had one; 0 if none is under way. f must not call Note.
func (s *Spans[Series]) Each(f func(Series, time.Duration)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for series, spans := range s.began {
		var age time.Duration
		for _, began := range spans {
			age = max(age, time.Since(began))
		}
		f(series, age)
	}
}
