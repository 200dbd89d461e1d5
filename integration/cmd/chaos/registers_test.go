package main

import (
	"slices"
	"sync"
	"testing"

	"github.com/holdfast-go/holdfast/integration/internal/history"
)

// newRegisters serves registers for a test. Read its records only while no write is under way.
func newRegisters(t *testing.T) (*registers, *[]history.Record) {
	t.Helper()
	var records []history.Record
	r, err := startRegisters(func(rec history.Record) { records = append(records, rec) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.close)
	return r, &records
}

func newWriter(t *testing.T, r *registers) *writer {
	t.Helper()
	w, err := dialRegisters(r.addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.close)
	return w
}

// TestRegisters guards that a fenced register refuses a token lower than the highest it has accepted, that the other accepts
// everything, that keys are independent, and that each answer has its record.
func TestRegisters(t *testing.T) {
	r, records := newRegisters(t)
	client := newWriter(t, r)
	var want []history.Record
	for _, c := range []struct {
		key      string
		token    uint64
		fenced   bool
		accepted bool
	}{
		{"a", 5, true, true},
		{"a", 5, true, true}, // the same grant, again
		{"a", 4, true, false},
		{"a", 4, false, true},
		{"b", 1, true, true},
		{"a", 9, true, true},
		{"a", 5, true, false},
		{"a", 3, false, true},
	} {
		accepted, err := client.write(write{Process: "1.1", Key: c.key, Token: c.token, Fenced: c.fenced})
		if err != nil || accepted != c.accepted {
			t.Errorf("%+v: %v, %v", c, accepted, err)
		}
		want = append(want, history.Record{
			What: history.Wrote, Process: "1.1", Key: c.key, Token: c.token, Fenced: c.fenced, Accepted: c.accepted,
		})
	}
	last := int64(0)
	for i := range *records {
		if rec := &(*records)[i]; rec.At < last {
			t.Errorf("record %d is older than the one before it", i)
		} else {
			last, rec.At = rec.At, 0
		}
	}
	if !slices.Equal(*records, want) {
		t.Errorf("records:\n%+v\nwant:\n%+v", *records, want)
	}
}

// TestRegistersInOneOrder guards that the records give the writes of several clients one order, in which a fenced register
// never goes back, and refuses nothing that it should accept.
func TestRegistersInOneOrder(t *testing.T) {
	r, records := newRegisters(t)
	var tasks sync.WaitGroup
	for range 4 {
		client := newWriter(t, r)
		tasks.Go(func() {
			for token := range uint64(200) {
				if _, err := client.write(write{Key: "a", Token: token, Fenced: true}); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	tasks.Wait()
	highest, last := uint64(0), int64(0)
	for _, rec := range *records {
		if rec.Accepted != (rec.Token >= highest) || rec.At < last {
			t.Fatalf("%+v, when the highest token was %d", rec, highest)
		}
		highest, last = max(highest, rec.Token), rec.At
	}
	if len(*records) != 800 {
		t.Errorf("%d records of 800 writes", len(*records))
	}
}
