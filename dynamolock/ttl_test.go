package dynamolock_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dynamolock"
	"github.com/holdfast-go/holdfast/internal/dynamofake"
	"github.com/holdfast-go/holdfast/internal/logtest"
)

// day makes virtual days cheap: few heartbeats, and the shortest time to
// live.
var day = dynamolock.Options{Lease: 2 * time.Hour, TTL: dynamolock.MinTTL}

// leave makes a client with a TTL attribute use a key and end: its item stays, with a
// time to live.
func (h *harness) leave(t *testing.T, key, attribute string) {
	t.Helper()
	old := h.client(t, func(o *dynamolock.Options) { o.TTLAttribute, o.Mode = attribute, dynamolock.FailOpen })
	if err := old.hold(t, key).Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	old.close(t)
	if h.item(key)[attribute] == nil {
		t.Fatalf("%v has no time to live", h.item(key))
	}
}

// without is for a client without the Time to Live setting: a redeployment dropped it, or
// it is the command line tool without the flag.
func without(o *dynamolock.Options) { o.TTLAttribute, o.TTL = "", 0 }

// other is for a client with another attribute than the table's.
func other(o *dynamolock.Options) { o.TTLAttribute = "other" }

// ttlHarness is a table with Time to Live by "ttl".
func ttlHarness(t *testing.T, mode dynamolock.Mode) *harness {
	o := day
	o.TTLAttribute, o.Mode = "ttl", mode
	return newHarness(t, &o)
}

// staysAlone tries the key of a held lock for two days, and checks that the holder holds
// it all the time.
func (h *harness) staysAlone(t *testing.T, lock *holdfast.Lock) {
	t.Helper()
	b := h.client(t, func(o *dynamolock.Options) { without(o); o.Mode = h.options.Mode })
	defer b.close(t)
	for range 8 * 6 {
		time.Sleep(time.Hour)
		if err := lock.Err(); err != nil {
			t.Fatalf("the lock was lost: %v", err)
		}
		var held *holdfast.HeldError
		switch second, err := b.TryAcquire(t.Context(), lock.Key()); {
		case err == nil:
			t.Fatalf("two holders: token %v while the first says %v; its item was %v", second.Token(), lock.Err(), h.item(lock.Key()))
		case !errors.As(err, &held):
			t.Fatal(err)
		}
	}
	if i := h.item(lock.Key()); h.options.Mode != dynamolock.FailOpen && (i["ttl"] != nil || i["other"] != nil) {
		t.Errorf("a lock that never expires has a time to live: %v", i)
	}
}

// No client leaves the time to live of another on a live item, whatever its own Time to
// Live setting.
func TestStaleTimeToLive(t *testing.T) {
	for name, change := range map[string]func(*dynamolock.Options){"without": without, "other": other} {
		for _, mode := range []dynamolock.Mode{dynamolock.FailOpen, dynamolock.FailClosedFenced} {
			t.Run(name+"/"+mode.String(), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					h := ttlHarness(t, mode)
					h.leave(t, "k", "ttl")
					a := h.client(t, change)
					defer a.close(t)
					h.staysAlone(t, a.hold(t, "k"))
				})
			})
		}
	}
}

// ... nor when it takes over from a holder that has died, or reclaims.
func TestStaleTimeToLiveTakenOver(t *testing.T) {
	for _, reclaim := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			h := ttlHarness(t, dynamolock.FailOpen)
			dead, a := h.client(t), h.client(t, without)
			defer func() { dead.conn.Heal(); _ = dead.Close(t.Context()) }()
			defer a.close(t)
			dead.hold(t, "k", holdfast.WithOwner("o"))
			dead.conn.Cut()
			options := []holdfast.Option{holdfast.WithOwner("o")}
			if reclaim {
				options = append(options, holdfast.WithReclaim())
			}
			h.staysAlone(t, a.hold(t, "k", options...))
		})
	}
}

// A client may have started before Time to Live was enabled, or before it was allowed to
// read the setting. It checks again from time to time; the item's time to live is farther
// away than that.
func TestTimeToLiveIsLookedAtAgain(t *testing.T) {
	denied := func(op dynamofake.Op) dynamofake.Fault {
		if op.Name == "DescribeTimeToLive" {
			return dynamofake.Fail(dynamofake.Denied())
		}
		return dynamofake.Fault{}
	}
	for _, mode := range []dynamolock.Mode{dynamolock.FailOpen, dynamolock.FailClosedFenced} {
		t.Run("switched on/"+mode.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := day
				o.TTL, o.Mode = 0, mode
				h := newHarness(t, &o)
				h.options.TTL = dynamolock.MinTTL
				h.leave(t, "k", "ttl") // it goes first in a rollout
				a := h.client(t, without)
				defer a.close(t)
				lock := a.hold(t, "k")
				time.Sleep(time.Minute)
				h.switchOn(t, "ttl")
				h.staysAlone(t, lock)
			})
		})
		t.Run("allowed/"+mode.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := ttlHarness(t, mode)
				h.leave(t, "k", "ttl")
				logs := &logtest.Recorder{}
				conn := h.db.Client()
				conn.SetFault(denied)
				o := h.options
				without(&o)
				o.Logger = logs.Logger()
				a, err := dynamolock.New(t.Context(), conn, &o)
				if err != nil {
					t.Fatalf("New, without a permission that it can do without: %v", err)
				}
				lock, err := a.Acquire(t.Context(), "k")
				if err != nil {
					t.Fatal(err)
				}
				conn.SetFault(nil)
				h.staysAlone(t, lock)
				if err := a.Close(context.Background()); err != nil {
					t.Error(err)
				}
				logs.Check(t, nil, logtest.Want{Text: "Time to Live is not known", Level: slog.LevelWarn, Attrs: "table error"})
			})
		})
	}
}

// switchOn enables Time to Live, as an operator does.
func (h *harness) switchOn(t *testing.T, attribute string) {
	t.Helper()
	if _, err := h.db.Client().UpdateTimeToLive(t.Context(), &dynamodb.UpdateTimeToLiveInput{
		TableName:               aws.String(tableName),
		TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: &attribute, Enabled: aws.Bool(true)},
	}); err != nil {
		t.Fatal(err)
	}
}

// A failed check costs New only its time limit. The client reports an attribute that it
// cannot clear because it is one of the lock's own or a key.
func TestTimeToLiveIsTold(t *testing.T) {
	for _, attribute := range []string{"guid", "id"} {
		synctest.Test(t, func(t *testing.T) {
			h := newHarness(t, &dynamolock.Options{})
			h.switchOn(t, attribute)
			logs := &logtest.Recorder{}
			a := h.client(t, func(o *dynamolock.Options) { o.Logger = logs.Logger() })
			if err := a.hold(t, "k").Release(t.Context()); err != nil {
				t.Error(err)
			}
			a.close(t)
			logs.Check(t, nil, logtest.Want{
				Text: "Time to Live goes by an attribute that locks need", Level: slog.LevelWarn, Attrs: "table attribute",
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, &dynamolock.Options{})
		conn := h.db.Client()
		conn.SetFault(func(op dynamofake.Op) dynamofake.Fault {
			if op.Name == "DescribeTimeToLive" {
				return dynamofake.Drop()
			}
			return dynamofake.Fault{}
		})
		o := h.options
		began := time.Now()
		a, err := dynamolock.New(t.Context(), conn, &o)
		if err != nil {
			t.Fatal(err)
		}
		if d := time.Since(began); d > a.Options().Timeout+time.Second {
			t.Errorf("New took %v", d)
		}
		if err := a.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
}
