package dynamolock_test

import (
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dynamolock"
)

// The item is that of the npm client, with two more attributes.
func TestItem(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		a := h.client(t)
		began := time.Now()
		lock := a.hold(t, "k", holdfast.WithOwner("o"), holdfast.WithData([]byte("d")))
		i := h.item("k")
		first := guidOf(i)
		if len(first) != 64 || leaseOf(i) != lease.Milliseconds() || i["owner"].(*types.AttributeValueMemberS).Value != "o" ||
			number(i["lockAcquiredTimeUnixMs"]) != began.UnixMilli() || len(i) != 8 {
			t.Errorf("%v", i)
		}
		if tokenOf(i) != lock.Token() || lock.Token() != holdfast.Token(began.UnixMilli()) {
			t.Errorf("the first token of an item is %v, the lock's %v; want the time, %v", tokenOf(i), lock.Token(), began.UnixMilli())
		}

		time.Sleep(lease)
		i = h.item("k")
		if guidOf(i) == first || tokenOf(i) != lock.Token() || number(i["lockAcquiredTimeUnixMs"]) <= began.UnixMilli() {
			t.Errorf("after some heartbeats: %v", i)
		}
		info, err := a.Inspect(t.Context(), "k")
		if err != nil || info.Since.UnixMilli() != began.UnixMilli() || info.Lease != lease || string(info.Data) != "d" {
			t.Errorf("%+v, %v", info, err)
		}

		last := guidOf(i)
		mustRelease(t, lock)
		i = h.item("k")
		if leaseOf(i) != 1 || guidOf(i) != last || tokenOf(i) != lock.Token() || i["holdfastData"] != nil || i["owner"] == nil {
			t.Errorf("released: %v", i)
		}
		if next := a.hold(t, "k"); next.Token() != lock.Token()+1 {
			t.Errorf("token %v after %v", next.Token(), lock.Token())
		}
	})
}

// Tokens continue above the old ones after an item was deleted and created again. A
// client that takes over an item of the npm client adds 1, as the npm client does.
func TestTokenContinuity(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		a := h.client(t)
		var last holdfast.Token
		for range 50 {
			lock := a.hold(t, "k")
			if lock.Token() <= last || lock.Token() >= 1<<53 {
				t.Fatalf("token %v after %v", lock.Token(), last)
			}
			last = lock.Token()
			mustRelease(t, lock)
			if last%3 == 0 {
				h.db.RemoveItem(tableName, item{"id": s("k")})
			}
		}
		h.set("npm", npm("41", "1", "g"))
		if lock := a.hold(t, "npm"); lock.Token() != 42 {
			t.Errorf("token %v, want 42", lock.Token())
		}
	})
}

// A client neither acquires nor changes corrupt or foreign items; the error names the attribute.
func TestForeignItems(t *testing.T) {
	null := &types.AttributeValueMemberNULL{Value: true}
	list := &types.AttributeValueMemberL{Value: []types.AttributeValue{n("1")}}
	items := map[string][]item{"guid": {{}, {"something": s("else")}}} // by the attribute that is named
	for attribute, values := range map[string][]types.AttributeValue{
		"guid":                   {nil, n("5"), null},
		"fencingToken":           {nil, s("7"), n("-7"), n("18446744073709551616"), n("4611686018427387905")},
		"leaseDurationMs":        {nil, s("20000"), n("-1"), n("4611686018427387905"), list},
		"owner":                  {n("1"), null},
		"lockAcquiredTimeUnixMs": {s("now")},
		"holdfastData":           {s("text")},
		"holdfastSinceUnixMs":    {b("then")},
		"holdfastIntent":         {s("text"), b("")},
	} {
		for _, v := range values {
			i := npm("7", "20000", "g")
			if i[attribute] = v; v == nil {
				delete(i, attribute)
			}
			items[attribute] = append(items[attribute], i)
		}
	}
	for attribute, items := range items {
		for _, c := range items {
			// Released ones, too: the other attributes may mean anything.
			for _, released := range []bool{false, true} {
				foreign := maps.Clone(c)
				if released {
					if attribute == "leaseDurationMs" || len(foreign) < 2 || strings.HasPrefix(attribute, "holdfast") {
						continue
					}
					foreign["leaseDurationMs"] = n("1")
				}
				alone(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
					a := h.client(t)
					h.set("k", foreign)
					before := h.item("k")
					ctx := within(t, 3*lease)
					_, errAcquire := a.Acquire(ctx, "k")
					_, errTry := a.TryAcquire(ctx, "k")
					_, errInspect := a.Inspect(ctx, "k")
					errs := map[string]error{"Acquire": errAcquire, "TryAcquire": errTry, "Inspect": errInspect}
					if !strings.HasPrefix(attribute, "holdfast") { // lost at the end of a hold
						_, errs["WithReclaim"] = a.Acquire(ctx, "k", holdfast.WithOwner("node"), holdfast.WithReclaim())
					}
					for call, err := range errs {
						var foreign *dynamolock.ItemError
						if !errors.As(err, &foreign) || !errors.Is(err, dynamolock.ErrItem) || foreign.Attribute != attribute {
							t.Errorf("%v, released %v: %s: %v; want an ItemError for %s", c, released, call, err, attribute)
						}
					}
					if after := h.item("k"); !reflect.DeepEqual(after, before) {
						t.Errorf("%v was changed to %v", before, after)
					}
				})
			}
		}
	}
}

// Rows of other programs are no locks without tokens, whatever else they have in common with those: an owner that is a string,
// and a guid of 64 bytes.
func TestForeignRows(t *testing.T) {
	inEach(t, allModes, func(t *testing.T, h *harness) {
		a := h.client(t)
		guid := b(strings.Repeat("g", 64))
		rows := map[string]item{
			"text":       {"guid": s(strings.Repeat("g", 64)), "owner": s("o"), "email": s("e")},
			"short":      {"guid": b("g"), "owner": s("o")},
			"long":       {"guid": b(strings.Repeat("g", 65)), "owner": s("o")},
			"no owner":   {"guid": guid, "email": s("e")},
			"owner of N": {"guid": guid, "owner": n("1")},
		}
		for key, row := range rows {
			h.set(key, row)
			before := h.item(key)
			_, errInspect := a.Inspect(t.Context(), key)
			_, errTry := a.TryAcquire(t.Context(), key)
			_, errReclaim := a.TryAcquire(t.Context(), key, holdfast.WithOwner("o"), holdfast.WithReclaim())
			for call, err := range map[string]error{"Inspect": errInspect, "TryAcquire": errTry, "WithReclaim": errReclaim} {
				if !errors.Is(err, dynamolock.ErrItem) {
					t.Errorf("%s, %s: %v", key, call, err)
				}
			}
			if after := h.item(key); !reflect.DeepEqual(after, before) {
				t.Errorf("%s: %v was changed to %v", key, before, after)
			}
		}
		h.set("lock", item{"guid": guid, "owner": s("o")})
		if keys, err := a.list(t, ""); err != nil || !slices.Equal(keys, []string{"lock"}) {
			t.Errorf("listed: %q, %v", keys, err)
		}
	})
}

// Other programs change the item of a holder.
func TestItemChangedUnderAHolder(t *testing.T) {
	type test struct {
		change func(h *harness)
		want   error
	}
	forEach(t, map[string]test{
		"deleted":        {func(h *harness) { h.db.RemoveItem(tableName, item{"id": s("k")}) }, holdfast.ErrBroken},
		"ill-typed":      {func(h *harness) { h.set("k", item{"guid": n("1")}) }, holdfast.ErrBroken},
		"another's":      {func(h *harness) { h.set("k", npm("9999999999999", "20000", "g")) }, holdfast.ErrTakenOver},
		"started over":   {func(h *harness) { h.set("k", npm("1", "20000", "g")) }, holdfast.ErrTakenOver},
		"released by me": {func(h *harness) { i := h.item("k"); i["leaseDurationMs"] = n("1"); h.set("k", i) }, holdfast.ErrBroken},
		"fail-closed":    {func(h *harness) { h.set("k", item{"guid": b(strings.Repeat("g", 64)), "owner": s("node")}) }, holdfast.ErrTakenOver},
	}, func(t *testing.T, h *harness, c test) {
		a := h.client(t)
		lock := a.hold(t, "k")
		time.Sleep(lease)
		c.change(h)
		changed := h.item("k")
		if d := took(func() { <-lock.Done() }); d > a.Options().Heartbeat+time.Second {
			t.Errorf("noticed after %v", d)
		}
		if !errors.Is(lock.Err(), c.want) {
			t.Errorf("%v, want %v", lock.Err(), c.want)
		}
		time.Sleep(lease)
		if after := h.item("k"); !reflect.DeepEqual(after, changed) {
			t.Errorf("%v was changed to %v", changed, after)
		}

		lock = a.hold(t, "other")
		i := h.item("other")
		i["guid"] = n("1")
		h.set("other", i)
		if err := lock.Release(t.Context()); !errors.Is(err, holdfast.ErrBroken) {
			t.Errorf("Release of an item that is not one any more: %v", err)
		}
	})
}

// An item of nearly 400 KB may block its own key, but no other.
func TestHugeForeignItem(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		a := h.client(t)
		huge := npm("7", "5000", "g")
		huge["ballast"] = b(strings.Repeat("x", 390<<10))
		h.set("huge", huge)
		lock := a.hold(t, "huge", holdfast.WithOwner("o"))
		mustRelease(t, lock)
		_, err := a.Acquire(t.Context(), "huge", holdfast.WithData(make([]byte, holdfast.MaxData)))
		if err == nil || errors.Is(err, holdfast.ErrDisconnected) {
			t.Errorf("no room for the data: %v", err)
		}
		for i := range 5 {
			huge := item{"ballast": b(strings.Repeat("x", 390<<10))}
			h.set(strings.Repeat("x", i+1), huge)
		}
		a.hold(t, "small")
		if seen, err := a.list(t, ""); err != nil || !slices.Equal(seen, []string{"small"}) || a.conn.Calls()["Scan"] < 3 {
			t.Errorf("%q, %v; %d pages", seen, err, a.conn.Calls()["Scan"])
		}
	})
}
