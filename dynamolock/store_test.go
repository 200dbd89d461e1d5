package dynamolock_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/driver/drivertest"
	"github.com/holdfast-go/holdfast/dynamolock"
	"github.com/holdfast-go/holdfast/internal/dynamostore"
	"github.com/holdfast-go/holdfast/internal/recordlock"
	"github.com/holdfast-go/holdfast/locktest/logtest"
)

// A write of a store by its name.
type write struct {
	name string
	send func(ctx context.Context) error
}

const (
	grant = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
	first = "BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBB"
)

// writes are a store's writes of each kind for a grant of a mode.
func writes(t *testing.T, c *dynamolock.Client, m driver.Mode) []write {
	t.Helper()
	st := dynamostore.Of(c)
	own := recordlock.Holder{Grant: grant, Beat: first, Token: 8, Lease: recordlock.Forever, Owner: "o"}
	if c.Options().Mode == dynamolock.FailOpen {
		own.Lease = time.Minute
	}
	old, err := st.Read(t.Context(), "k", true)
	if err != nil {
		t.Fatal(err)
	}
	swap := func(next recordlock.Record) func(context.Context) error {
		return func(ctx context.Context) error {
			_, _, err := st.Swap(ctx, "k", old, next)
			return err
		}
	}
	held, free := old, old
	held.Token, held.Mode, held.Holders = 8, m, []recordlock.Holder{own}
	free.Holders = nil
	return []write{
		{"take", func(ctx context.Context) error { _, _, err := st.Take(ctx, "k", own, m); return err }},
		{"take over", swap(held)},
		{"renew", func(ctx context.Context) error { _, _, err := st.Renew(ctx, "k", own, m); return err }},
		{"release", swap(free)},
	}
}

// A write during a transaction is repeated soon, without a storm, until its time is over: then the store is well.
func TestConflict_RepeatedSoon(t *testing.T) {
	each(t, map[string]string{"transaction": "TransactionConflictException", "replica": "ReplicatedWriteConflictException"},
		func(t *testing.T, code string) {
			var at []time.Time
			conflicts := 5
			s := &script{}
			s.answer = func(r request) reply {
				if r.Op != "UpdateItem" {
					return reply{}
				}
				if at = append(at, time.Now()); len(at) <= conflicts {
					return fail(code)
				}
				return refuse(item(""))
			}
			c := s.open(t, nil, dynamolock.Options{Mode: dynamolock.FailClosed})
			take := writes(t, c, driver.Mode{})[0]
			if err := take.send(t.Context()); err != nil || len(at) != conflicts+1 {
				t.Errorf("%v after %d requests", err, len(at))
			}
			for i := 1; i < len(at); i++ {
				if d := at[i].Sub(at[i-1]); d < 10*time.Millisecond || d > 50*time.Millisecond {
					t.Errorf("repeated after %v", d)
				}
			}
			conflicts = 1 << 30
			var e *recordlock.Error
			if err := take.send(within(t, time.Second)); !errors.As(err, &e) || e.Class != recordlock.Busy {
				t.Errorf("%v, want the class Busy", err)
			}
		})
}

// A server may refuse a write without the item. The read that follows shows what is in the way. If the read fails, the outcome is
// unknown: a wrapper of the SDK may have sent the write twice.
func TestRefusedWithoutTheItem_Reads(t *testing.T) {
	held := `, "fencingToken": {"N": "7"}, "leaseDurationMs": {"N": "20000"}`
	type test struct {
		get  reply
		want recordlock.Class // -1: none
	}
	each(t, map[string]test{
		"read":      {reply{body: `{"Item": ` + item(held) + `}`}, -1},
		"throttled": {fail("ThrottlingException"), recordlock.Unknown},
		"reset":     {reply{err: io.EOF}, recordlock.Unknown},
	}, func(t *testing.T, test test) {
		s := &script{}
		c := s.open(t, nil, dynamolock.Options{})
		s.answer = func(r request) reply { return map[string]reply{"UpdateItem": refuse(""), "GetItem": test.get}[r.Op] }
		rec, done, err := dynamostore.Of(c).Take(t.Context(), "k", recordlock.Holder{Grant: grant, Beat: first}, driver.Mode{})
		var e *recordlock.Error
		switch {
		case done:
			t.Error("done")
		case test.want < 0 && (err != nil || len(rec.Holders) != 1 || rec.Token != 7):
			t.Errorf("%+v, %v", rec, err)
		case test.want >= 0 && (!errors.As(err, &e) || e.Class != test.want):
			t.Errorf("%v, want the class %v", err, test.want)
		}
	})
}

// An item that refuses every write ends a call in an error, without a busy loop. A record that another client held and gave back does not.
func TestRefusedForNoReason_Ends(t *testing.T) {
	vacant, gone := refuse(item(`, "fencingToken": {"N": "7"}, "leaseDurationMs": {"N": "1"}`)), refuse("")
	type test struct {
		answers []reply
		want    error
		most    int // writes
	}
	each(t, map[string]test{
		"a vacant item":               {[]reply{vacant}, dynamolock.ErrItem, 10},
		"no item":                     {[]reply{gone}, dynamolock.ErrItem, 200},
		"items of others, gone again": {append(slices.Repeat([]reply{gone}, 20), fail("AccessDeniedException")), holdfast.ErrDenied, 50},
	}, func(t *testing.T, test test) {
		for what, acquire := range map[string]func(*dynamolock.Client) (*holdfast.Lock, error){
			"Acquire":    func(c *dynamolock.Client) (*holdfast.Lock, error) { return c.Acquire(t.Context(), "k") },
			"TryAcquire": func(c *dynamolock.Client) (*holdfast.Lock, error) { return c.TryAcquire(t.Context(), "k") },
		} {
			s := &script{answer: in("UpdateItem", test.answers...)}
			if _, err := acquire(s.open(t, nil, dynamolock.Options{})); !errors.Is(err, test.want) {
				t.Errorf("%s: %v", what, err)
			}
			if n := s.calls()["UpdateItem"]; n > test.most {
				t.Errorf("%s: %d writes", what, n)
			}
		}
	})
}

var modes = map[string]dynamolock.Mode{
	"FailOpen": dynamolock.FailOpen, "FailClosed": dynamolock.FailClosed, "FailClosedFenced": dynamolock.FailClosedFenced,
}

// Every write sets or removes the client's own time to live, and removes one that another client has written by the table's setting.
func TestTimeToLive_EveryWrite(t *testing.T) {
	each(t, modes, func(t *testing.T, mode dynamolock.Mode) {
		for _, own := range []string{"", "own"} {
			for _, shared := range []bool{false, mode == dynamolock.FailOpen} {
				found := `, "ttl": {"N": "1"}`
				if mode != dynamolock.FailClosed {
					found += `, "fencingToken": {"N": "7"}, "leaseDurationMs": {"N": "20000"}`
				}
				s := &script{answer: func(r request) reply {
					return map[string]reply{"DescribeTimeToLive": timeToLive("ttl"), "GetItem": {body: `{"Item": ` + item(found) + `}`}}[r.Op]
				}}
				c := s.open(t, nil, dynamolock.Options{Mode: mode, TTLAttribute: own})
				if rec, err := dynamostore.Of(c).Read(t.Context(), "k", true); err != nil || rec.Rewrite != (mode != dynamolock.FailOpen) {
					t.Errorf("%v, %v: the holder is to write the item: %v", err, mode, rec.Rewrite)
				}
				for _, w := range writes(t, c, driver.Mode{Shared: shared}) {
					if mode == dynamolock.FailClosed && w.name == "release" { // deletes the item
						continue
					}
					_ = w.send(t.Context()) // the answer has no item
					set, removed, _ := strings.Cut(s.last.UpdateExpression, " REMOVE ")
					expires := mode == dynamolock.FailOpen || w.name == "release"
					if strings.Contains(set, "#ttl = ") != (own != "" && expires) || strings.Contains(removed, "#ttl") != (own != "" && !expires) ||
						!strings.Contains(removed, "#foreignTTL") || s.last.ExpressionAttributeNames["#foreignTTL"] != "ttl" {
						t.Errorf("own %q, shared %v: %s: %+v", own, shared, w.name, s.last)
					}
				}
			}
		}
	})
}

// The server's time counts for the time to live, and for the first token of a new item, if the client's wall clock is slow or set back.
func TestSlowClock_ServerTimeCounts(t *testing.T) {
	const month = 31 * 24 * time.Hour
	synctest.Test(t, func(t *testing.T) {
		clk := &drivertest.Clock{}
		s := &script{}
		c := s.open(t, clk, dynamolock.Options{TTLAttribute: "ttl", TTL: dynamolock.MinTTL})
		s.answer = in("GetItem", reply{body: `{"Item": ` + item(`, "fencingToken": {"N": "7"}, "leaseDurationMs": {"N": "1"}`) + `}`})
		for _, jump := range []time.Duration{-month, -month, 2 * month} { // the last sets it right
			clk.Jump(jump)
			for _, w := range writes(t, c, driver.Mode{}) {
				_ = w.send(t.Context())
				if left := time.Until(s.last.time(t, "#ttl = ", time.Second)); left < dynamolock.MinTTL-time.Minute {
					t.Errorf("after a jump of %v: %s: the item expires in %v", jump, w.name, left)
				}
				if w.name == "take" {
					if d := time.Since(s.last.time(t, "if_not_exists(#fencingToken, ", time.Millisecond)); d.Abs() > time.Minute {
						t.Errorf("after a jump of %v: the first token is %v old", jump, d)
					}
				}
			}
		}
	})
}

// time returns the value that follows a text in the update.
func (r *request) time(t *testing.T, text string, unit time.Duration) time.Time {
	t.Helper()
	_, rest, _ := strings.Cut(r.UpdateExpression, text)
	alias := rest[:strings.IndexAny(rest+",", ",) ")]
	n, err := time.ParseDuration(r.ExpressionAttributeValues[alias]["N"].(string) + "ns")
	if err != nil {
		t.Fatal(err)
	}
	return time.Unix(0, 0).Add(n * unit)
}

// A client learns a time to live that is enabled later, or that it was not allowed to see. Writes until then are at least MinTTL old
// when Time to Live deletes.
func TestTimeToLive_LooksAgain(t *testing.T) {
	const unknown = "Time to Live is not known"
	type test struct {
		first reply
		told  bool
		by    time.Duration
	}
	each(t, map[string]test{
		"enabled later": {reply{}, false, 17 * time.Minute}, "denied": {fail("AccessDeniedException"), true, 17 * time.Minute},
		"throttled":       {fail("ThrottlingException"), true, 3 * time.Minute},
		"not implemented": {fail("UnknownOperationException"), false, 17 * time.Minute},
	}, func(t *testing.T, test test) {
		var logs logtest.Recorder
		s := &script{answer: in("DescribeTimeToLive", test.first, timeToLive("ttl"))}
		c := s.open(t, nil, dynamolock.Options{Logger: logs.Logger()})
		w := writes(t, c, driver.Mode{})[0]
		began := time.Now()
		for !strings.Contains(s.last.UpdateExpression, "#foreignTTL") {
			if time.Since(began) > test.by {
				t.Fatal("not learned")
			}
			time.Sleep(time.Minute)
			_ = w.send(t.Context())
			synctest.Wait()
			_ = w.send(t.Context())
		}
		if logs.Has(unknown) != test.told {
			t.Errorf("logged: %v", logs.Has(unknown))
		}
	})
}

// New reports what an operator should know of the table, and does not wait for Time to Live longer than for one request.
func TestNew_Warns(t *testing.T) {
	const needed = "Time to Live goes by an attribute that locks need"
	const global = "a global table: locks that are taken in one region do not exclude in another"
	type test struct {
		answer func(request) reply
		want   string
	}
	each(t, map[string]test{
		"a lock's attribute": {in("DescribeTimeToLive", timeToLive("guid")), needed},
		"the key":            {in("DescribeTimeToLive", timeToLive("id")), needed},
		"silence":            {in("DescribeTimeToLive", reply{silent: true}), "Time to Live is not known"},
		"replicas":           {in("DescribeTable", described("ACTIVE", `, "Replicas": [{"RegionName": "eu-west-1"}]`)), global},
		"nothing":            {nil, ""},
	}, func(t *testing.T, test test) {
		var logs logtest.Recorder
		s := &script{answer: test.answer}
		var c *dynamolock.Client
		d := took(func() { c = s.open(t, nil, dynamolock.Options{Logger: logs.Logger()}) })
		if d > c.Options().Timeout+time.Second {
			t.Errorf("New took %v", d)
		}
		if err := c.Close(t.Context()); err != nil { // it waits for the log
			t.Error(err)
		}
		for _, text := range []string{needed, global} {
			if logs.Has(text) != (text == test.want) {
				t.Errorf("%q: %v", text, logs.Has(text))
			}
		}
		logs.Check(t, nil)
	})
}

// calls is a log handler that calls the client.
type calls struct {
	slog.Handler
	call func()
}

func (c calls) Enabled(context.Context, slog.Level) bool { return true }

func (c calls) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "Time to Live is not known" {
		c.call()
	}
	return nil
}

// R14. A log handler is called with nothing locked: it may call the client.
func TestLogHandlerCallsTheClient(t *testing.T) {
	called := make(chan error, 1) // in real time: a bubble does not see a goroutine that waits for a mutex
	var c *dynamolock.Client
	s := &script{answer: in("DescribeTimeToLive", reply{}, fail("AccessDeniedException"))}
	clk := &ahead{}
	c = s.open(t, clk, dynamolock.Options{Logger: slog.New(calls{call: sync.OnceFunc(func() {
		_, err := c.Inspect(context.Background(), "other")
		called <- err
	})})})
	clk.by.Store(int64(time.Hour)) // Time to Live is looked at again
	if _, err := c.Inspect(t.Context(), "k"); err != nil {
		t.Error(err)
	}
	select {
	case err := <-called:
		if err != nil {
			t.Errorf("Inspect in the handler: %v", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("Inspect in the handler has not returned within a minute")
	}
}

// ahead is a clock that can be put forward by both of its times.
type ahead struct {
	drivertest.Clock
	by atomic.Int64
}

func (a *ahead) Now() driver.Instant { return a.Clock.Now().Add(time.Duration(a.by.Load())) }
