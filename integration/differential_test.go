package integration_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/recordlock"
	"github.com/holdfast-go/holdfast/internal/recordlock/memstore"
)

// A pair is the record of a key in both stores.
type pair struct{ memory, table recordlock.Record }

type differential struct {
	*rand.Rand
	key                string
	tokenless, expires bool // the store has no tokens; locks have leases, and can be shared
	memory             *memstore.Store
	table              recordlock.Store                // on the server
	remove             func(*testing.T)                // deletes the record from the server
	foreign            func(*testing.T, *differential) // writes the record as another program does; nil: none does
	conn               *memstore.Conn
	seen               []pair              // the last is the present one
	grants             []recordlock.Holder // of all operations
	modes              map[string]driver.Mode
	beats              int
	lost               int // answers of the server
}

// run carries out operations one after the other, and then some at the same time.
func (d *differential) run(t *testing.T, operations int) {
	d.conn, d.seen, d.modes = d.memory.Conn(), []pair{{}}, make(map[string]driver.Mode)
	for i := 0; i < operations && !t.Failed(); i++ {
		d.step(t)
	}
	d.race(t)
}

// pick returns one of the latest of some values.
func pick[T any](d *differential, all []T) T { return all[max(0, len(all)-1-d.IntN(min(len(all), 4)))] }

// holder returns a new holder, or an earlier one with another beat.
func (d *differential) holder() recordlock.Holder {
	d.beats++
	now := time.Now().Round(0)
	var h recordlock.Holder
	if len(d.grants) > 0 && d.IntN(3) > 0 {
		h = pick(d, d.grants)
	} else {
		h = recordlock.Holder{Grant: beatOf(d.beats), Owner: "o", Since: now, Lease: recordlock.Forever}
		d.modes[h.Grant] = driver.Mode{}
		if d.expires {
			h.Lease = 20 * time.Second
			d.modes[h.Grant] = []driver.Mode{{}, {Shared: true}, {Shared: true}, {Shared: true, Limit: 3}}[d.IntN(4)]
		}
	}
	h.Beat, h.Touched, h.Data = beatOf(d.beats), now, nil
	if d.IntN(2) == 0 {
		h.Data = fmt.Appendf(nil, "data %d", d.beats)
	}
	d.grants = append(d.grants, h)
	return h
}

// beatOf returns 32 letters that rise with n.
func beatOf(n int) string {
	return strings.Map(func(digit rune) rune { return digit - '0' + 'A' }, fmt.Sprintf("%032d", n))
}

// stored is the answer of a store.
type stored struct {
	rec  recordlock.Record
	done bool
	err  error
}

// step carries out one operation on both stores, and compares the results.
func (d *differential) step(t *testing.T) {
	t.Helper()
	what, send := d.operation(t)
	if send == nil {
		return
	}
	before := d.seen[len(d.seen)-1].table
	memory, table := send(d.conn, false), send(d.table, true)
	if lost := (*recordlock.Error)(nil); errors.As(table.err, &lost) {
		if d.lost++; d.lost > 3 {
			t.Fatal(table.err)
		}
		t.Log(table.err)
		now, err := d.table.Read(t.Context(), d.key, true)
		must(t, err)
		d.seen = append(d.seen, pair{d.memory.Put(d.key, now), now})
		return
	}
	if table.done && before.Version == nil && len(table.rec.Holders) == 1 { // a Take chose the first token by the time
		if table.rec.Token < memory.rec.Token {
			t.Errorf("%s: the token is %d, and may be below earlier ones", what, table.rec.Token)
		}
		same := memory.rec
		same.Token = table.rec.Token
		same.Holders[0].Token = same.Token
		memory.rec = d.memory.Put(d.key, same)
	}
	if memory.err != nil || table.err != nil || memory.done != table.done || !reflect.DeepEqual(d.plain(memory.rec), d.plain(table.rec)) {
		t.Errorf("%s\n%v, %v %+v\n%v, %v %+v", what, memory.done, memory.err, d.plain(memory.rec), table.done, table.err, d.plain(table.rec))
	}
	d.seen = append(d.seen, pair{memory.rec, table.rec})
}

// operation returns the next operation; nil if there is nothing to do.
func (d *differential) operation(t *testing.T) (what string, send func(s recordlock.Store, table bool) stored) {
	ctx := t.Context()
	switch d.IntN(14) {
	case 0, 1, 2:
		h := d.holder()
		h.Since = h.Touched
		return "Take " + h.Grant, func(s recordlock.Store, _ bool) (r stored) {
			r.rec, r.done, r.err = s.Take(ctx, d.key, h, d.modes[h.Grant])
			return r
		}
	case 3, 4, 5, 6:
		old := pick(d, d.seen)
		what, next := d.next(old.memory)
		if old.memory.Version == nil || reflect.DeepEqual(next, old.memory) { // the engine sends neither
			return "", nil
		}
		return "Swap: " + what, func(s recordlock.Store, table bool) (r stored) {
			from := old.memory
			if table {
				from = old.table
			}
			r.rec, r.done, r.err = s.Swap(ctx, d.key, from, next)
			return r
		}
	case 7, 8, 9, 10, 11:
		if len(d.grants) == 0 {
			return "", nil
		}
		h := d.renewed()
		return "Renew " + h.Grant, func(s recordlock.Store, _ bool) (r stored) {
			r.rec, r.done, r.err = s.Renew(ctx, d.key, h, d.modes[h.Grant])
			return r
		}
	case 12:
		what = "another program, "
		d.stranger(t)
	}
	return what + "Read", func(s recordlock.Store, _ bool) (r stored) {
		r.rec, r.err = s.Read(ctx, d.key, true)
		return r
	}
}

// renewed returns a holder with a later beat, an earlier one, or another token.
func (d *differential) renewed() recordlock.Holder {
	h := pick(d, d.grants)
	if own := d.seen[len(d.seen)-1].memory.Holder(h.Grant); own != nil {
		h = *own
		h.Touched = time.Now().Round(0)
		if d.IntN(4) == 0 {
			h.Beat = beatOf(1)
		} else {
			if !d.tokenless && d.IntN(4) == 0 {
				h.Token++
			}
			d.beats++
			h.Beat = beatOf(d.beats)
		}
	}
	if h.Token == 0 && !d.tokenless { // a holder has a token
		h.Token = 1
	}
	return h
}

// next returns another record in place of an old one.
func (d *differential) next(rec recordlock.Record) (what string, next recordlock.Record) {
	next = rec
	next.Holders = append([]recordlock.Holder(nil), rec.Holders...)
	some := -1
	if len(next.Holders) > 0 {
		some = d.IntN(len(next.Holders))
	}
	switch n := d.IntN(6); {
	case n == 0:
		h := d.holder()
		for rec.Holder(h.Grant) != nil {
			h = d.holder()
		}
		if m := d.modes[h.Grant]; !m.Shared || m != rec.Mode {
			next.Mode, next.Holders = m, nil
		}
		next.Token++
		h.Token, next.Intent = next.Token, recordlock.Intent{}
		next.Holders = append(next.Holders, h)
		return "grant", next
	case n == 1 && some >= 0:
		next.Holders[some].Asked = true
		return "ask", next
	case n == 2 && some >= 0 && d.expires:
		next.Holders[some].Broken, next.Broken = true, next.Holders[some].Token
		return "break", next
	case n == 3 && some >= 0:
		next.Holders = append(next.Holders[:some], next.Holders[some+1:]...)
		return "release", next
	case n == 4:
		next.Intent = recordlock.Intent{}
		return "no intent", next
	case d.tokenless && len(next.Holders) == 0:
		return "nothing", next
	}
	next.Intent = d.intent()
	return "intent", next
}

func (d *differential) intent() recordlock.Intent {
	d.beats++
	return recordlock.Intent{
		Grant: strings.Repeat("I", 32), Beat: beatOf(d.beats), Mode: driver.Mode{Shared: d.IntN(2) == 0}, Lease: time.Minute, Poll: time.Second,
	}
}

// stranger deletes the record, or writes it as another program does.
func (d *differential) stranger(t *testing.T) {
	if d.foreign == nil || d.IntN(2) == 0 {
		d.forget(t)
	} else {
		d.foreign(t, d)
	}
}

// forget deletes the record in both stores.
func (d *differential) forget(t *testing.T) {
	d.memory.Delete(d.key)
	d.remove(t)
}

// plain is the part of a record that both stores have.
func (d *differential) plain(rec recordlock.Record) recordlock.Record {
	if rec.Version != nil {
		rec.Version = "some"
	}
	rec.Rewrite = false
	if len(rec.Holders) == 0 {
		rec.Holders, rec.Mode = nil, driver.Mode{}
	}
	rec.Holders = append([]recordlock.Holder(nil), rec.Holders...)
	for i := range rec.Holders {
		h := &rec.Holders[i]
		ms := func(at time.Time) time.Time {
			if at.IsZero() || d.tokenless {
				return time.Time{}
			}
			return time.UnixMilli(at.UnixMilli()).UTC()
		}
		if h.Since, h.Touched = ms(h.Since), ms(h.Touched); len(h.Data) == 0 {
			h.Data = nil
		}
	}
	return rec
}

// race sends Takes, and then Swaps of one record, at the same time.
func (d *differential) race(t *testing.T) {
	for range 5 {
		d.forget(t)
		for _, s := range []recordlock.Store{d.conn, d.table} {
			var takes, swaps atomic.Int32
			var all sync.WaitGroup
			count := func(n *atomic.Int32, write func() (recordlock.Record, bool, error)) {
				all.Go(func() {
					if _, done, err := write(); err != nil || done {
						n.Add(1)
					}
				})
			}
			for range 8 {
				h := d.holder()
				count(&takes, func() (recordlock.Record, bool, error) { return s.Take(t.Context(), d.key, h, driver.Mode{}) })
			}
			all.Wait()
			rec, err := s.Read(t.Context(), d.key, true)
			must(t, err)
			for range 8 {
				_, next := d.next(rec)
				if next.Intent = d.intent(); len(next.Holders) == 0 {
					next.Holders = rec.Holders
				}
				count(&swaps, func() (recordlock.Record, bool, error) { return s.Swap(t.Context(), d.key, rec, next) })
			}
			all.Wait()
			if a, b := takes.Load(), swaps.Load(); a != 1 || b != 1 {
				t.Fatalf("%T: %d Takes and %d Swaps of one record were carried out", s, a, b)
			}
		}
	}
}
