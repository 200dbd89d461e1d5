package dynamolock_test

import (
	"context"
	"errors"
	"maps"
	"reflect"
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
		defer a.close(t)
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
		if err := lock.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
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
		defer a.close(t)
		var last holdfast.Token
		for range 50 {
			lock := a.hold(t, "k")
			if lock.Token() <= last || lock.Token() >= 1<<53 {
				t.Fatalf("token %v after %v", lock.Token(), last)
			}
			last = lock.Token()
			if err := lock.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
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

// A client neither acquires nor changes corrupt or foreign items, whatever they look
// like; the error names the attribute.
func TestForeignItems(t *testing.T) {
	change := func(name string, v types.AttributeValue) item {
		i := npm("7", "20000", "g")
		if v == nil {
			delete(i, name)
		} else {
			i[name] = v
		}
		return i
	}
	null := &types.AttributeValueMemberNULL{Value: true}
	list := &types.AttributeValueMemberL{Value: []types.AttributeValue{n("1")}}
	cases := []struct {
		attribute string // the one that is named
		item      item
	}{
		{"guid", item{}},
		{"guid", item{"something": s("else")}},
		{"guid", change("guid", nil)},
		{"guid", change("guid", n("5"))},
		{"guid", change("guid", null)},
		{"fencingToken", change("fencingToken", nil)},
		{"fencingToken", change("fencingToken", s("7"))},
		{"fencingToken", change("fencingToken", n("-7"))},
		{"fencingToken", change("fencingToken", n("18446744073709551616"))},
		{"fencingToken", change("fencingToken", n("4611686018427387905"))},
		{"leaseDurationMs", change("leaseDurationMs", n("4611686018427387905"))},
		{"leaseDurationMs", change("leaseDurationMs", nil)},
		{"leaseDurationMs", change("leaseDurationMs", s("20000"))},
		{"leaseDurationMs", change("leaseDurationMs", n("-1"))},
		{"leaseDurationMs", change("leaseDurationMs", list)},
		{"owner", change("owner", n("1"))},
		{"owner", change("owner", null)},
		{"lockAcquiredTimeUnixMs", change("lockAcquiredTimeUnixMs", s("now"))},
		{"holdfastData", change("holdfastData", s("text"))},
		{"holdfastSinceUnixMs", change("holdfastSinceUnixMs", b("then"))},
	}
	for _, c := range cases {
		// Released ones, too: the other attributes may mean anything.
		for _, released := range []bool{false, true} {
			foreign := maps.Clone(c.item)
			if released {
				if c.attribute == "leaseDurationMs" || len(foreign) < 2 || strings.HasPrefix(c.attribute, "holdfast") {
					continue
				}
				foreign["leaseDurationMs"] = n("1")
			}
			bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
				a := h.client(t)
				defer a.close(t)
				h.set("k", foreign)
				before := h.item("k")
				ctx, cancel := context.WithTimeout(t.Context(), 3*lease)
				defer cancel()
				_, errAcquire := a.Acquire(ctx, "k")
				_, errTry := a.TryAcquire(ctx, "k")
				_, errInspect := a.Inspect(ctx, "k")
				errs := map[string]error{"Acquire": errAcquire, "TryAcquire": errTry, "Inspect": errInspect}
				if !strings.HasPrefix(c.attribute, "holdfast") { // lost at the end of a hold
					_, errs["WithReclaim"] = a.Acquire(ctx, "k", holdfast.WithOwner("node"), holdfast.WithReclaim())
				}
				for call, err := range errs {
					var foreign *dynamolock.ItemError
					if !errors.As(err, &foreign) || !errors.Is(err, dynamolock.ErrItem) || foreign.Attribute != c.attribute {
						t.Errorf("%v, released %v: %s: %v; want an ItemError for %s", c.item, released, call, err, c.attribute)
					}
				}
				if after := h.item("k"); !reflect.DeepEqual(after, before) {
					t.Errorf("%v was changed to %v", before, after)
				}
			})
		}
	}
}

// Other programs change the item of a holder.
func TestItemChangedUnderAHolder(t *testing.T) {
	for name, c := range map[string]struct {
		change func(h *harness)
		want   error
	}{
		"deleted":        {func(h *harness) { h.db.RemoveItem(tableName, item{"id": s("k")}) }, holdfast.ErrBroken},
		"ill-typed":      {func(h *harness) { h.set("k", item{"guid": n("1")}) }, holdfast.ErrBroken},
		"another's":      {func(h *harness) { h.set("k", npm("9999999999999", "20000", "g")) }, holdfast.ErrTakenOver},
		"started over":   {func(h *harness) { h.set("k", npm("1", "20000", "g")) }, holdfast.ErrTakenOver},
		"released by me": {func(h *harness) { i := h.item("k"); i["leaseDurationMs"] = n("1"); h.set("k", i) }, holdfast.ErrBroken},
		"fail-closed":    {func(h *harness) { h.set("k", item{"guid": b("g"), "owner": s("node")}) }, holdfast.ErrTakenOver},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
				a := h.client(t)
				defer a.close(t)
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
		})
	}
}

// The npm client's other forms of the same things: guid as text, a lease of 0.
func TestOtherForms(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		a := h.client(t)
		defer a.close(t)
		text := npm("7", "5000", "g")
		text["guid"] = s("some text")
		h.set("text", text)
		if lock := a.hold(t, "text"); lock.Token() != 8 {
			t.Errorf("token %v", lock.Token())
		}
		h.set("zero", npm("7", "0", "g"))
		if d := took(func() { a.hold(t, "zero") }); d > time.Second {
			t.Errorf("a lease of 0 ms was watched for %v", d)
		}
		info, err := a.Inspect(t.Context(), "missing")
		if err != nil || info.Held {
			t.Errorf("%+v, %v", info, err)
		}
		h.set("theirs", npm("7", "5000", "g"))
		info, err = a.Inspect(t.Context(), "theirs")
		if err != nil || !info.Held || info.Owner != "node" || info.Token != 7 || info.Lease != 5*time.Second || !info.Since.IsZero() {
			t.Errorf("%+v, %v", info, err)
		}
	})
}

// An item of nearly 400 KB may block its own key, but no other.
func TestHugeForeignItem(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		a := h.client(t)
		defer a.close(t)
		huge := npm("7", "5000", "g")
		huge["ballast"] = b(strings.Repeat("x", 390<<10))
		h.set("huge", huge)
		lock := a.hold(t, "huge", holdfast.WithOwner("o"))
		if err := lock.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		_, err := a.Acquire(t.Context(), "huge", holdfast.WithData(make([]byte, holdfast.MaxData)))
		if err == nil || errors.Is(err, holdfast.ErrDisconnected) {
			t.Errorf("no room for the data: %v", err)
		}
		for i := range 5 {
			huge := item{"ballast": b(strings.Repeat("x", 390<<10))}
			h.set(strings.Repeat("x", i+1), huge)
		}
		a.hold(t, "small")
		seen := 0
		for info, err := range a.List(t.Context(), "") {
			if err != nil || info.Key != "small" {
				t.Errorf("%+v, %v", info, err)
			}
			seen++
		}
		if seen != 1 || a.conn.Calls()["Scan"] < 3 {
			t.Errorf("%d keys, %d pages", seen, a.conn.Calls()["Scan"])
		}
	})
}
