package dynamolock

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/dynamofake"
	"github.com/holdfast-go/holdfast/internal/recordlock"
	"github.com/holdfast-go/holdfast/internal/recordlock/memstore"
)

// TestDifferential carries out the same random operations on the store in memory and on the DynamoDB store, and compares the records.
// The fake below the latter is compared with servers in integration.
func TestDifferential(t *testing.T) {
	for key, keys := range map[string]Keys{
		"k":     {},
		"17":    {Partition: KeyAttr{Name: "id", Type: types.ScalarAttributeTypeN}},
		"\xffk": {Partition: KeyAttr{Name: "id", Type: types.ScalarAttributeTypeB}},
		"p/s":   {Sort: KeyAttr{Name: "sort"}},
		"p/7":   {Sort: KeyAttr{Name: "sort", Type: types.ScalarAttributeTypeN}},
	} {
		for _, mode := range []Mode{FailOpen, FailClosed, FailClosedFenced} {
			t.Run(fmt.Sprintf("%q/%v", key, mode), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					seed := rand.Uint64()
					t.Logf("seed %d", seed)
					d := newDifferential(t, key, Options{Table: "locks", Keys: keys, Mode: mode}, seed)
					for range 400 {
						d.step(t)
						if t.Failed() {
							return
						}
					}
					d.race(t)
				})
			})
		}
	}
}

// A pair is what both stores have for a key.
type pair struct{ memory, table recordlock.Record }

type differential struct {
	*rand.Rand
	key    string
	opts   Options
	memory *memstore.Store
	conn   *memstore.Conn
	db     *dynamofake.DB
	table  *store
	seen   []pair              // the latest is the present one
	grants []recordlock.Holder // that ever had a part in an operation
	modes  map[string]driver.Mode
	beats  int
}

func newDifferential(t *testing.T, key string, o Options, seed uint64) *differential {
	d := &differential{
		Rand: rand.New(rand.NewPCG(seed, 1)), key: key, opts: o, db: dynamofake.New(), seen: []pair{{}}, modes: map[string]driver.Mode{},
		memory: &memstore.Store{Forgetful: o.Mode == FailClosed},
	}
	d.conn = d.memory.Conn()
	if err := CreateTable(t.Context(), d.db.Client(), &o); err != nil {
		t.Fatal(err)
	}
	c, err := New(clock.With(t.Context(), clock.Real{}), d.db.Client(), &o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(t.Context()) })
	d.table = c.store
	return d
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
		grant := strings.Repeat("A", 16) + fmt.Sprintf("%016d", d.beats)
		h = recordlock.Holder{Grant: strings.NewReplacer("0", "B", "1", "C", "8", "D", "9", "E").Replace(grant), Owner: "o", Since: now}
		h.Lease = 20 * time.Second
		if d.opts.Mode != FailOpen {
			h.Lease = recordlock.Forever
		}
		d.modes[h.Grant] = driver.Mode{}
		if d.opts.Mode == FailOpen {
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

func beatOf(n int) string {
	return recordlock.Ordered(uint64(driver.Token(n))) + strings.Repeat("A", 16)
}

// step carries out one operation.
func (d *differential) step(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	time.Sleep(time.Second)
	var did [2]bool
	var now pair
	var errs [2]error
	what := ""
	switch d.IntN(10) {
	case 0, 1, 2:
		h := d.holder()
		h.Since = h.Touched
		what = "Take " + h.Grant
		now.memory, did[0], errs[0] = d.conn.Take(ctx, d.key, h, d.modes[h.Grant])
		now.table, did[1], errs[1] = d.table.Take(ctx, d.key, h, d.modes[h.Grant])
	case 3, 4, 5, 6:
		old := pick(d, d.seen)
		if old.memory.Version == nil {
			return
		}
		var next recordlock.Record
		what, next = d.next(old.memory)
		if reflect.DeepEqual(next, old.memory) { // the engine writes no record that is there
			return
		}
		what = "Swap: " + what
		now.memory, did[0], errs[0] = d.conn.Swap(ctx, d.key, old.memory, next)
		now.table, did[1], errs[1] = d.table.Swap(ctx, d.key, old.table, next)
	case 7:
		if len(d.grants) == 0 {
			return
		}
		h := pick(d, d.grants)
		if own := d.seen[len(d.seen)-1].memory.Holder(h.Grant); own != nil {
			h = *own
			h.Touched = time.Now().Round(0)
			switch d.IntN(4) {
			case 0:
				h.Beat = beatOf(1)
			default:
				if d.opts.Mode != FailClosed && d.IntN(4) == 0 {
					h.Token++
				}
				d.beats++
				h.Beat = beatOf(d.beats)
			}
		}
		if h.Token == 0 && d.opts.Mode != FailClosed { // a holder has a token
			h.Token = 1
		}
		what = "Renew " + h.Grant
		now.memory, did[0], errs[0] = d.conn.Renew(ctx, d.key, h, d.modes[h.Grant])
		now.table, did[1], errs[1] = d.table.Renew(ctx, d.key, h, d.modes[h.Grant])
	case 8:
		what = "another program"
		d.stranger(t)
		fallthrough
	default:
		what += " Read"
		now.memory, errs[0] = d.conn.Read(ctx, d.key, true)
		now.table, errs[1] = d.table.Read(ctx, d.key, true)
	}
	if errs[0] != nil || errs[1] != nil || did[0] != did[1] || !reflect.DeepEqual(d.plain(now.memory), d.plain(now.table)) {
		t.Errorf("%s: %v, %v; %v\n%+v\n%+v", what, did, errs[0], errs[1], d.plain(now.memory), d.plain(now.table))
	}
	d.seen = append(d.seen, now)
}

// next returns another record in place of an old one.
func (d *differential) next(rec recordlock.Record) (what string, next recordlock.Record) {
	next = rec
	next.Holders = append([]recordlock.Holder(nil), rec.Holders...)
	any := -1
	if len(next.Holders) > 0 {
		any = d.IntN(len(next.Holders))
	}
	switch n := d.IntN(6); {
	case n == 0:
		h := d.holder()
		for rec.Holder(h.Grant) != nil {
			h = d.holder()
		}
		if m := d.modes[h.Grant]; !m.Shared || m != rec.Mode {
			next.Holders = nil
			next.Mode = m
		}
		next.Token++
		h.Token, next.Intent = next.Token, recordlock.Intent{}
		next.Holders = append(next.Holders, h)
		return "grant", next
	case n == 1 && any >= 0:
		next.Holders[any].Asked = true
		return "ask", next
	case n == 2 && any >= 0 && d.opts.Mode == FailOpen:
		next.Holders[any].Broken, next.Broken = true, next.Holders[any].Token
		return "break", next
	case n == 3 && any >= 0:
		next.Holders = append(next.Holders[:any], next.Holders[any+1:]...)
		return "release", next
	case n == 4:
		next.Intent = recordlock.Intent{}
		return "no intent", next
	}
	if d.opts.Mode == FailClosed && len(next.Holders) == 0 {
		return "nothing", next
	}
	d.beats++
	next.Intent = recordlock.Intent{
		Grant: strings.Repeat("I", 32), Beat: beatOf(d.beats), Mode: driver.Mode{Shared: d.IntN(2) == 0}, Lease: time.Minute, Poll: time.Second,
	}
	return "intent", next
}

// stranger deletes the item, or writes it as the npm client does.
func (d *differential) stranger(t *testing.T) {
	key, err := d.opts.filledKeys().encode(d.key)
	if err != nil {
		t.Fatal(err)
	}
	if d.IntN(2) == 0 {
		d.memory.Delete(d.key)
		if _, err := d.db.Client().DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &d.opts.Table, Key: key}); err != nil {
			t.Fatal(err)
		}
		return
	}
	guid := strings.Repeat(string(rune('a'+d.IntN(26))), guidLen)
	key[attrOwner], key[attrGUID] = attribute("node"), attribute([]byte(guid))
	h := recordlock.Holder{Owner: "node", Lease: recordlock.Forever}
	if d.opts.Mode != FailClosed {
		h.Token, h.Lease = driver.Token(1+d.IntN(5)), 5*time.Second
		key[attrToken], key[attrLease] = attribute(h.Token), attribute(h.Lease.Milliseconds())
	}
	h.Grant, h.Beat = grantOf(guid, h.Token)
	d.memory.Put(d.key, recordlock.Record{Token: h.Token, Holders: []recordlock.Holder{h}})
	d.db.SetItem(d.opts.Table, key)
}

func (o Options) filledKeys() *Keys {
	_ = o.Keys.fill()
	return &o.Keys
}

// plain is a record as both stores can have it.
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
			if at.IsZero() || d.opts.Mode == FailClosed {
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

// race sends writes at the same time, of which one is carried out.
func (d *differential) race(t *testing.T) {
	for range 20 {
		d.memory.Delete(d.key)
		key, _ := d.opts.filledKeys().encode(d.key)
		if _, err := d.db.Client().DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &d.opts.Table, Key: key}); err != nil {
			t.Fatal(err)
		}
		for _, s := range []recordlock.Store{d.conn, d.table} {
			var won [2]atomic.Int32
			var all sync.WaitGroup
			for range 8 {
				h := d.holder()
				all.Go(func() {
					if _, done, err := s.Take(t.Context(), d.key, h, driver.Mode{}); err != nil || done {
						won[0].Add(1)
					}
				})
			}
			all.Wait()
			rec, err := s.Read(t.Context(), d.key, true)
			if err != nil {
				t.Fatal(err)
			}
			for range 8 {
				_, next := d.next(rec)
				next.Intent = recordlock.Intent{Grant: strings.Repeat("I", 32), Beat: beatOf(d.beats), Lease: time.Minute, Poll: time.Second}
				d.beats++
				if len(next.Holders) == 0 {
					next.Holders = rec.Holders
				}
				all.Go(func() {
					if _, done, err := s.Swap(t.Context(), d.key, rec, next); err != nil || done {
						won[1].Add(1)
					}
				})
			}
			all.Wait()
			if a, b := won[0].Load(), won[1].Load(); a != 1 || b != 1 {
				t.Fatalf("%T: %d Takes and %d Swaps of one record were carried out", s, a, b)
			}
		}
	}
}
