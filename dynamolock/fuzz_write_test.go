package dynamolock

import (
	"bytes"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/dynamofake"
)

// conditionally returns an item without what no condition can check: fractions, times, data, who waits.
func conditionally(attrs attributes) attributes {
	attrs = maps.Clone(attrs)
	delete(attrs, attrData)
	delete(attrs, attrSince)
	delete(attrs, attrIntent) // which an exclusive grant removes
	if isTyped[*types.AttributeValueMemberN](attrs[attrTouched]) {
		attrs[attrTouched] = number(0)
	}
	for _, name := range []string{attrToken, attrLease} {
		if n, ok := attrs[name].(*types.AttributeValueMemberN); ok && !strings.HasPrefix(n.Value, "-") {
			whole, _, _ := strings.Cut(n.Value, ".")
			attrs[name] = &types.AttributeValueMemberN{Value: whole}
		}
	}
	return attrs
}

// mayTake reports whether an acquisition may take an item, by the documentation
// of the modes; seen says whether the client has seen it abandoned, or what it is to reclaim.
func (a *contender) mayTake(attrs attributes, seen bool) bool {
	i, err := decode(fuzzTable, attrs)
	if err != nil || i.token >= 1<<62 { // it could not rise
		return false
	}
	if guid, ok := i.guidVal.(*types.AttributeValueMemberB); ok && bytes.HasPrefix(guid.Value, []byte(a.grant)) {
		return i.form == absent // it belongs to this grant, from a late request
	}
	if a.opts.Mode == FailClosed {
		return i.form == absent || i.form == tokenless && seen
	}
	switch i.form {
	case absent, released:
		return true
	case leased, closed:
		return seen
	}
	return false
}

// FuzzWrite tests writes and their conditions. Whatever another program has left under a
// key, an acquisition takes it if it is a free lock, and otherwise leaves it unchanged.
// What it writes is read back correctly. Heartbeats and releases change only the grant's
// own item.
func FuzzWrite(f *testing.F) {
	const (
		reclaim = 4
		seen    = 8
		ttl     = 0x10
	)
	for _, how := range []byte{0, 1, 2, reclaim, reclaim | 1, seen, seen | 2, seen | reclaim, seen | reclaim | 1, seen | reclaim | 2} {
		for _, script := range [][]byte{
			{},
			{8, 1, 'g', 8, 3, 8, 1, 8, 1, 'o'}, // released
			{8, 1, 'g', 8, 3, 8, 4, 8, 1, 'o'},
			{1, 1, 'g', 8, 3, 8, 4}, // leased
			{8, 1, 'g', 8, 3, 8, 6, 8, 1, 'o'},
			{8, 1, 'g', 0, 0, 8, 1, 'o'}, // the two kinds of closed
			{8, 1, 'g', 8, 18, 8, 1},
			{8, 1, 'g', 8, 11, 8, 1}, // found by fuzzing: the greatest token, which could not rise
			{4, 8, 3, 8, 1},          // not whole, at the end, no guid
			{8, 1, 'g', 8, 3, 8, 1, 2, 1},
			{8, 1, 'g', 8, 3, 8, 1, 0, 1, 1, 'x'},
			{8, 1, 'g', 8, 3, 8, 1, 0, 8, 16},
			{8, 1, 'g', 8, 3, 8, 1, 0, 0, 5, 5},
		} {
			f.Add(how, byte(0), script, []byte(nil), "o", []byte("d"), uint64(1_760_000_000_000))
			f.Add(how, byte(1), script, []byte(nil), "o", []byte(nil), uint64(0))
			f.Add(how, byte(2), script, []byte(nil), "o", []byte(nil), uint64(1))
			f.Add(how, byte(3), script, []byte(nil), "o", []byte(nil), uint64(1))
		}
	}
	for _, how := range []byte{ttl, ttl | 1, ttl | 2, ttl | seen} {
		f.Add(how, byte(0), []byte{8, 1, 'g', 8, 3, 8, 4}, []byte(nil), "o", []byte(nil), uint64(1)) // leased, or to be taken over
		f.Add(how, byte(0), []byte(nil), []byte(nil), "o", []byte(nil), uint64(1))
	}
	f.Add(byte(0), byte(0), []byte{0, 2, 20}, []byte(nil), "o", []byte(nil), uint64(1))                                           // a token of 38 digits, and no guid
	f.Add(byte(0), byte(0), []byte{8, 1, 'g', 2, 1, 8, 4, 2, 1, 0, 0, 0, 6}, []byte(nil), "o", []byte(nil), uint64(1))            // a number for an owner, a list
	f.Add(byte(reclaim), byte(0), []byte{8, 1, 'g', 3, 1, 'b', 8, 4, 2, 1, 0, 0, 0, 7}, []byte(nil), "o", []byte(nil), uint64(1)) // bytes for a token, a map
	f.Add(byte(ttl|reclaim), byte(0), []byte(nil), []byte(nil), "o", []byte(nil), uint64(1_760_000_000_000))                      // found by fuzzing: it expired at once
	for _, sharing := range sharingSeeds {
		for _, how := range []byte{0, 1, 2, reclaim, seen} {
			f.Add(how, byte(0), []byte{8, 1, 'g', 8, 5, 8, 4, 8, 1, 'o'}, sharing, "o", []byte(nil), uint64(1_760_000_000_000))
			f.Add(how, byte(0), []byte{8, 1, 'g', 8, 5, 8, 1, 8, 1, 'o'}, sharing, "o", []byte(nil), uint64(1_760_000_000_000)) // released
		}
	}
	f.Add(byte(2), byte(1), []byte("1A0202"), []byte("000000010"), "0", []byte(nil), uint64(36)) // found by fuzzing: an intent of another type
	f.Add(byte(0), byte(0), []byte(nil), []byte(nil), "", []byte(nil), uint64(1))
	f.Add(byte(0), byte(0), []byte(nil), []byte(nil), "\xff", []byte(nil), uint64(1))
	f.Fuzz(func(t *testing.T, how, whose byte, script, sharing []byte, owner string, data []byte, wall uint64) {
		if driver.CheckOwner("owner", owner) != nil || len(data) > holdfast.MaxData {
			return
		}
		o := Options{Mode: Mode(how & 3 % 3)}
		if how&ttl != 0 {
			o.TTLAttribute = "ttl"
		}
		b, db := fuzzEngine(t, o)
		db.ExpireDelay = -1 // the times are not those of now
		key, _ := b.opts.Keys.encode("k")
		begin := time.UnixMilli(int64(wall % (1 << 52)))
		now := driver.Instant{Mono: begin, Wall: begin}
		req := &driver.Request{Key: "k", Owner: owner, Data: data, Reclaim: how&reclaim != 0}
		a := &contender{engine: b, req: req, key: key, grant: newGrant(b.id)}

		attrs := takeAttributes(&script)
		if isTyped[*types.AttributeValueMemberB](attrs[attrGUID]) {
			switch whose % 4 {
			case 1:
				attrs[attrGUID] = binary(touch(newGrant(b.id), 1))
			case 2:
				attrs[attrGUID] = binary(touch(a.grant, 1))
			case 3:
				attrs[attrGUID] = binary(touch(newGrant(newClientID()), 1))
			}
		}
		takeSharing(&sharing, attrs)
		if isShared(attrs) {
			attrs[attrOwner] = text(sharedOwner) // those who share it are in its map
		}
		if len(attrs) > 0 {
			maps.Copy(attrs, key)
			db.SetItem(fuzzTable, attrs)
		}
		before := db.Item(fuzzTable, key)
		var left *item
		if i, err := decode(fuzzTable, before); err == nil && how&seen != 0 && (i.form == leased || a.reclaimable(i)) {
			left = i
		}
		updated, _, err := b.update(t.Context(), key, a.expression(now, left))
		taken := updated != nil
		after := db.Item(fuzzTable, key)
		if !taken && !reflect.DeepEqual(after, before) {
			t.Fatalf("%v was not taken, and is %v now", before, after)
		}
		if a.mayTake(before, left != nil) && !taken {
			t.Fatalf("mode %v, reclaim %v: %v is free and was not taken: %v", o.Mode, req.Reclaim, before, err)
		}
		if !taken {
			return
		}
		if !a.mayTake(conditionally(before), left != nil) {
			t.Fatalf("mode %v, reclaim %v: %v is not free and was taken: %v", o.Mode, req.Reclaim, before, after)
		}
		if token, ok := after[attrToken].(*types.AttributeValueMemberN); ok && strings.Contains(token.Value, ".") {
			return
		}
		checkTaken(t, a, now, before, updated, after)
		checkOwn(t, a, db, now)
	})
}

// checkTaken checks the item that an acquisition has written.
func checkTaken(t *testing.T, a *contender, now driver.Instant, before, updated, after attributes) {
	answer, err := decode(fuzzTable, updated)
	if err != nil {
		t.Fatalf("%v: the answer %v: %v", before, updated, err)
	}
	got, err := decode(fuzzTable, after)
	if err != nil || !got.same(answer) || !got.belongs(a.grant) || !got.belongs(a.id) || got.owner != a.req.Owner {
		t.Fatalf("%v became %v: %+v, %v; answer %+v", before, after, got, err, answer)
	}
	if a.opts.Mode != FailClosed && slices.ContainsFunc(sharedAttributes, func(name string) bool { return after[name] != nil }) {
		t.Fatalf("%v became %v, and is shared", before, after)
	}
	millis := now.Wall.UnixMilli()
	want := item{form: leased, lease: a.opts.Lease, data: a.req.Data, touched: now.Wall, since: now.Wall, token: driver.Token(max(millis, 1))}
	if old, _ := decode(fuzzTable, conditionally(before)); old != nil && before[attrToken] != nil {
		want.token = old.token + 1
	}
	switch a.opts.Mode {
	case FailClosedFenced:
		want.form, want.lease = closed, 0
	case FailClosed:
		want.form, want.lease, want.token, want.data = tokenless, 0, 0, nil
		want.touched, want.since = time.Time{}, time.Time{}
	}
	if got.form != want.form || got.lease != want.lease || got.token != want.token {
		t.Fatalf("%v became %+v, want %+v", before, got, want)
	}
	if a.opts.Mode != FailClosed && (!bytes.Equal(got.data, want.data) || !got.touched.Equal(want.touched) || !got.since.Equal(want.since)) {
		t.Fatalf("%v became %+v, want %+v", before, got, want)
	}
	if info := got.info("k"); !info.Held || info.Owner != a.req.Owner || info.Token != want.token {
		t.Fatalf("%v became %+v", before, info)
	}
}

// checkOwn checks that heartbeats and releases change the grant's own item, and no other.
func checkOwn(t *testing.T, a *contender, db *dynamofake.DB, now driver.Instant) {
	taken := db.Item(fuzzTable, a.key)
	first, _ := decode(fuzzTable, taken)
	own := &hold{engine: a.engine, key: a.key, grant: a.grant, token: first.token, touches: a.touches}
	others := []*hold{{engine: a.engine, key: a.key, grant: newGrant(a.id), token: first.token, touches: a.touches}}
	if a.opts.Mode != FailClosed {
		others = append(others, &hold{engine: a.engine, key: a.key, grant: a.grant, token: first.token + 1, touches: a.touches})
	}
	for _, h := range others {
		if old, err := h.giveBack(t.Context(), h.key, h.unchanged); old == nil || err != nil || !reflect.DeepEqual(db.Item(fuzzTable, a.key), taken) {
			t.Fatalf("another grant's release met %+v, %v, and left %v", old, err, db.Item(fuzzTable, a.key))
		}
	}
	if a.opts.Mode == FailOpen {
		for _, h := range append(others, own) {
			_, old, err := h.update(t.Context(), h.key, h.renewal(now, nil))
			i, bad := decode(fuzzTable, db.Item(fuzzTable, a.key))
			if err != nil || bad != nil || (old == nil) != (h == own) || i.same(first) != (old != nil) || !i.sameGrant(first.token) || !i.belongs(a.grant) {
				t.Fatalf("a heartbeat met %+v, %v, and made %+v of %+v", old, err, i, first)
			}
		}
	}
	if old, err := own.giveBack(t.Context(), own.key, own.unchanged); old != nil || err != nil {
		t.Fatalf("the release met %+v, %v", old, err)
	}
	left := db.Item(fuzzTable, a.key)
	i, err := decode(fuzzTable, left)
	want := released
	if a.opts.Mode == FailClosed {
		want = absent
	}
	if err != nil || i.form != want || i.token != first.token || want == released && !i.belongs(a.grant) || i.data != nil {
		t.Fatalf("the release of %v left %v: %+v, %v", taken, left, i, err)
	}
}
