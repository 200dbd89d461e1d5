package dynamolock_test

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver/drivertest"
	"github.com/holdfast-go/holdfast/dynamolock"
	"github.com/holdfast-go/holdfast/internal/dynamofake"
	"github.com/holdfast-go/holdfast/internal/logtest"
)

// day makes virtual days cheap: few heartbeats, and the shortest time to live.
var day = dynamolock.Options{Lease: 2 * time.Hour, TTL: dynamolock.MinTTL}

var ttlModes = []dynamolock.Mode{dynamolock.FailOpen, dynamolock.FailClosedFenced}

// leave makes a client with a TTL attribute use a key and end: its item keeps a time to live.
func (h *harness) leave(t *testing.T, key, attribute string) {
	t.Helper()
	old := h.client(t, func(o *dynamolock.Options) { o.TTLAttribute, o.Mode = attribute, dynamolock.FailOpen })
	mustRelease(t, old.hold(t, key))
	old.close(t)
	if h.item(key)[attribute] == nil {
		t.Fatalf("%v has no time to live", h.item(key))
	}
}

// without is for a client without the Time to Live setting, as after a careless redeployment.
func without(o *dynamolock.Options) { o.TTLAttribute, o.TTL = "", 0 }

// other is for a client with another attribute than the table's.
func other(o *dynamolock.Options) { o.TTLAttribute = "other" }

// byTTL are the options of a table with Time to Live by "ttl".
func byTTL(mode dynamolock.Mode) dynamolock.Options {
	return dynamolock.Options{Lease: day.Lease, TTL: day.TTL, TTLAttribute: "ttl", Mode: mode}
}

// A client whose wall clock is a month slow, and set back while it holds locks, writes times to live that are ahead all the
// same: the server says what time it is. Nor does the token of a new item go back with the clock.
func TestTimeToLiveOfASlowClock(t *testing.T) {
	for _, mode := range ttlModes {
		t.Run(mode.String(), func(t *testing.T) {
			bubble(t, byTTL(mode), func(t *testing.T, h *harness) {
				const slow = -31 * 24 * time.Hour
				clk := &drivertest.Clock{}
				clk.Jump(slow)
				a := h.clientOn(t, clk, nil)
				ahead := func(key string) {
					t.Helper()
					i := h.item(key)
					if i["ttl"] == nil && mode == dynamolock.FailClosedFenced && leaseOf(i) > 1 {
						return // it never expires
					}
					if left := time.Until(time.Unix(number(i["ttl"]), 0)); left < dynamolock.MinTTL-a.Options().Heartbeat-time.Minute {
						t.Errorf("%s: the item expires in %v", key, left)
					}
				}
				lock := a.hold(t, "k")
				ahead("k")
				if token := time.UnixMilli(int64(lock.Token())); time.Since(token) > time.Minute {
					t.Errorf("the token of a new item begins at %v", token)
				}
				clk.Jump(slow)
				for range 5 {
					time.Sleep(a.Options().Heartbeat)
					ahead("k")
				}
				mustRelease(t, lock)
				ahead("k")
				other := a.hold(t, "other", holdfast.WithTTL(time.Minute))
				ahead("other")
				mustRelease(t, other)
				clk.Jump(-2 * slow) // it is set right
				right := a.hold(t, "right")
				if token := time.UnixMilli(int64(right.Token())); time.Until(token) > time.Minute {
					t.Errorf("the token of a new item begins at %v, which is to come", token)
				}
				mustRelease(t, right)
			})
		})
	}
}

// onTimeToLive injects a fault into looks at the table's Time to Live.
func onTimeToLive(fault dynamofake.Fault) func(dynamofake.Op) dynamofake.Fault {
	return func(op dynamofake.Op) dynamofake.Fault {
		if op.Name == "DescribeTimeToLive" {
			return fault
		}
		return dynamofake.Fault{}
	}
}

// staysAlone tries the key of a held lock for two days: the holder keeps it.
func (h *harness) staysAlone(t *testing.T, lock *holdfast.Lock) {
	t.Helper()
	b := h.client(t, func(o *dynamolock.Options) { without(o); o.Mode = h.options.Mode })
	for range 8 * 6 {
		time.Sleep(time.Hour)
		mustLive(t, lock)
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

// No client leaves another's time to live on a live item, whatever its own setting.
func TestStaleTimeToLive(t *testing.T) {
	for name, change := range map[string]func(*dynamolock.Options){"without": without, "other": other} {
		for _, mode := range ttlModes {
			t.Run(name+"/"+mode.String(), func(t *testing.T) {
				bubble(t, byTTL(mode), func(t *testing.T, h *harness) {
					h.leave(t, "k", "ttl")
					h.staysAlone(t, h.client(t, change).hold(t, "k"))
				})
			})
		}
	}
}

// ... nor when it takes over from a holder that has died, or reclaims.
func TestStaleTimeToLiveTakenOver(t *testing.T) {
	for _, more := range [][]holdfast.Option{nil, {holdfast.WithReclaim()}} {
		alone(t, byTTL(dynamolock.FailOpen), func(t *testing.T, h *harness) {
			dead, a := h.client(t), h.client(t, without)
			dead.hold(t, "k", holdfast.WithOwner("o"))
			dead.conn.Cut()
			h.staysAlone(t, a.hold(t, "k", append(more, holdfast.WithOwner("o"))...))
			dead.conn.Heal()
			_ = dead.Close(t.Context())
		})
	}
}

// A client may have started before Time to Live was enabled, or before it was allowed to
// read the setting. It checks again from time to time; the item's time to live is farther
// away than that.
func TestTimeToLiveIsLookedAtAgain(t *testing.T) {
	for _, mode := range ttlModes {
		t.Run("enabled/"+mode.String(), func(t *testing.T) {
			bubble(t, dynamolock.Options{Lease: day.Lease, Mode: mode}, func(t *testing.T, h *harness) {
				h.options.TTL = dynamolock.MinTTL
				h.leave(t, "k", "ttl") // it goes first in a rollout
				lock := h.client(t, without).hold(t, "k")
				time.Sleep(time.Minute)
				h.enable(t, "ttl")
				h.staysAlone(t, lock)
			})
		})
		t.Run("allowed/"+mode.String(), func(t *testing.T) {
			bubble(t, byTTL(mode), func(t *testing.T, h *harness) {
				h.leave(t, "k", "ttl")
				logs := h.log()
				a := h.clientOn(t, &drivertest.Clock{}, func(conn *dynamofake.Client) dynamolock.API {
					conn.SetFault(onTimeToLive(dynamofake.Fail(dynamofake.Denied())))
					return conn
				}, without)
				lock := a.hold(t, "k")
				a.conn.SetFault(nil)
				h.staysAlone(t, lock)
				logs.Check(t, nil, logtest.Want{Text: "Time to Live is not known", Level: slog.LevelWarn, Attrs: "table error"})
			})
		})
	}
}

// A release cannot be carried out for so long that the lease ends, and Time to Live deletes the item. Nobody has broken the lock.
func TestReleaseAfterTimeToLive(t *testing.T) {
	for name, opts := range map[string][]holdfast.Option{"alone": nil, "shared": {shared}} {
		t.Run(name, func(t *testing.T) {
			bubble(t, byTTL(dynamolock.FailOpen), func(t *testing.T, h *harness) {
				a := h.client(t)
				lock := a.hold(t, "k", opts...)
				a.conn.SetFault(always(dynamofake.Fail(dynamofake.Throttled())))
				time.AfterFunc(2*(day.Lease+day.TTL), func() { a.conn.SetFault(nil) })
				err := lock.Release(t.Context())
				if i := h.item("k"); !errors.Is(err, holdfast.ErrLost) || !errors.Is(err, holdfast.ErrLeaseExpired) || len(i) > 0 {
					t.Errorf("%v, and the item is %v", err, i)
				}
			})
		})
	}
}

// enable enables Time to Live, as an operator does.
func (h *harness) enable(t *testing.T, attribute string) {
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
		alone(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
			h.enable(t, attribute)
			logs := h.log()
			mustRelease(t, h.client(t).hold(t, "k"))
			logs.Check(t, nil, logtest.Want{
				Text: "Time to Live goes by an attribute that locks need", Level: slog.LevelWarn, Attrs: "table attribute",
			})
		})
	}
	alone(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		var a *client
		d := took(func() {
			a = h.clientOn(t, &drivertest.Clock{}, func(conn *dynamofake.Client) dynamolock.API {
				conn.SetFault(onTimeToLive(dynamofake.Drop()))
				return conn
			})
		})
		if d > a.Options().Timeout+time.Second {
			t.Errorf("New took %v", d)
		}
	})
}
