package recordlock

import (
	"context"
	"iter"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// A RevisionStore keeps each record with a revision. Its other methods and its errors are those of a [Store].
type RevisionStore interface {
	CheckKey(key string) error
	Read(ctx context.Context, key string, fresh bool) (Record, error)
	List(ctx context.Context, prefix string) iter.Seq2[Keyed, error]
	// Put writes a record in place of the version that was read; nil: the key has no record. It returns the record with its own version,
	// which is new, or false if the key has another one.
	Put(ctx context.Context, key string, version any, next Record) (now Record, done bool, err error)
	// Now is the time from which the first token of a key without a record comes.
	Now() time.Time
}

// ByRevision returns a [Store] that reads a record before it puts the next one in its place. The first read may be stale, because the
// revision decides whether the write is carried out. Only a fresh read refuses a write.
func ByRevision(s RevisionStore) Store { return revisions{s} }

type revisions struct{ RevisionStore }

const maxTries = 8 // of a write, because other writes of the record come between

// Take implements Store.
func (s revisions) Take(ctx context.Context, key string, h Holder, m driver.Mode) (now Record, done bool, err error) {
	return s.write(ctx, key, nil, func(now Record) (Record, bool) {
		if !now.Vacant() {
			return now, false
		}
		if now.Version == nil { // above all tokens of a record that was deleted: no client takes a lock once a millisecond for long
			now.Token = driver.Token(s.Now().UnixMilli() - 1)
		}
		now.Token++
		h.Token = now.Token
		now.Mode, now.Holders = m, []Holder{h}
		return now, true
	})
}

// Swap implements Store.
func (s revisions) Swap(ctx context.Context, key string, old, next Record) (now Record, done bool, err error) {
	if len(next.Holders) == 0 {
		next.Mode = driver.Mode{}
	}
	return s.write(ctx, key, &old, func(now Record) (Record, bool) { return next, now.Version == old.Version })
}

// Renew implements Store.
func (s revisions) Renew(ctx context.Context, key string, h Holder, m driver.Mode) (now Record, done bool, err error) {
	return s.write(ctx, key, nil, func(now Record) (Record, bool) {
		own := now.Holder(h.Grant)
		if own == nil || own.Token != h.Token || own.Broken || own.Beat >= h.Beat || now.Mode != m {
			return now, false
		}
		return now.changed(h.Grant, func(own *Holder) { own.Beat, own.Touched, own.Data = h.Beat, h.Touched, h.Data }), true
	})
}

// write replaces a record by what change makes of it: old, or the present one if old is nil. If another write came between, it begins
// again. It is refused if change refuses a record that was read fresh. It sends no write after one that may have been carried out.
func (s revisions) write(
	ctx context.Context, key string, old *Record, change func(Record) (Record, bool),
) (now Record, done bool, err error) {
	var rec Record
	if old != nil {
		rec = *old
	} else if rec, err = s.Read(ctx, key, false); err != nil {
		return now, false, err
	}
	for try := range maxTries {
		if next, allowed := change(rec); allowed {
			if now, done, err = s.Put(ctx, key, rec.Version, next); done || err != nil {
				return now, done, err
			}
		} else if try > 0 {
			break
		}
		if rec, err = s.Read(ctx, key, true); err != nil {
			return now, false, err
		}
	}
	return rec, false, nil
}
