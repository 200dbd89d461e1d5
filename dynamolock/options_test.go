package dynamolock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dynamolock"
	"github.com/holdfast-go/holdfast/internal/dynamofake"
)

func TestBadOptions(t *testing.T) {
	db := dynamofake.New()
	conn := db.Client()
	for _, c := range []struct {
		field string
		o     dynamolock.Options
	}{
		{"Options.Table", dynamolock.Options{}},
		{"Options.Table", dynamolock.Options{Table: "a b"}},
		{"Options.Table", dynamolock.Options{Table: "ab"}},
		{"Options.Table", dynamolock.Options{Table: strings.Repeat("t", 256)}},
		{"Options.Table", dynamolock.Options{Table: "arn:" + strings.Repeat("t", 1024)}},
		{"Options.Mode", dynamolock.Options{Table: "table", Mode: 3}},
		{"Options.Mode", dynamolock.Options{Table: "table", Mode: -1}},
		{"Options.Lease", dynamolock.Options{Table: "table", Lease: -1}},
		{"Options.Lease", dynamolock.Options{Table: "table", Lease: dynamolock.MinLease - 1}},
		{"Options.Lease", dynamolock.Options{Table: "table", Lease: dynamolock.MaxLease + time.Second}},
		{"Options.Lease", dynamolock.Options{Table: "table", Lease: 2*time.Second + 1}},
		{"Options.Heartbeat", dynamolock.Options{Table: "table", Lease: 3 * time.Second, Heartbeat: time.Second}},
		{"Options.Heartbeat", dynamolock.Options{Table: "table", Heartbeat: -1}},
		{"Options.Poll", dynamolock.Options{Table: "table", Poll: -1}},
		{"Options.Poll", dynamolock.Options{Table: "table", Poll: dynamolock.MinPoll - 1}},
		{"Options.Poll", dynamolock.Options{Table: "table", Poll: dynamolock.DefaultLease + 1}},
		{"Options.Timeout", dynamolock.Options{Table: "table", Timeout: -1}},
		{"Options.Timeout", dynamolock.Options{Table: "table", Timeout: 7 * time.Second}},
		{"Options.Timeout", dynamolock.Options{Table: "table", Margin: 10 * time.Second}},
		{"Options.RetryDelay", dynamolock.Options{Table: "table", RetryDelay: -1}},
		{"Options.RetryDelay", dynamolock.Options{Table: "table", RetryDelay: 6 * time.Second}},
		{"Options.Margin", dynamolock.Options{Table: "table", Margin: -1}},
		{"Options.OpenTimeout", dynamolock.Options{Table: "table", OpenTimeout: -1}},
		{"Options.Owner", dynamolock.Options{Table: "table", Owner: "a\x00b"}},
		{"Options.TTL", dynamolock.Options{Table: "table", TTL: time.Hour}},
		{"Options.TTL", dynamolock.Options{Table: "table", TTLAttribute: "ttl", TTL: time.Hour}},
		{"Options.TTL", dynamolock.Options{Table: "table", TTLAttribute: "ttl", TTL: 9 * dynamolock.MaxLease, Lease: dynamolock.MaxLease}},
		{"Options.TTLAttribute", dynamolock.Options{Table: "table", TTLAttribute: "id"}},
		{"Options.TTLAttribute", dynamolock.Options{Table: "table", TTLAttribute: "guid"}},
		{"Options.TTLAttribute", dynamolock.Options{Table: "table", TTLAttribute: strings.Repeat("t", 256)}},
		{"Options.Keys.Partition.Name", keys("owner", "", "", "", "")},
		{"Options.Keys.Partition.Name", keys("fencingToken", "", "", "", "")},
		{"Options.Keys.Partition.Name", keys(strings.Repeat("k", 256), "", "", "", "")},
		{"Options.Keys.Partition.Name", keys("", typeN, "", "", "")},
		{"Options.Keys.Partition.Type", keys("k", "BOOL", "", "", "")},
		{"Options.Keys.Sort.Name", keys("k", "", "k", "", "")},
		{"Options.Keys.Sort.Name", keys("k", "", "guid", "", "")},
		{"Options.Keys.Sort.Name", keys("k", "", "", typeS, "")},
		{"Options.Keys.Sort.Name", keys("k", "", "", "", "/")},
		{"Options.Keys.Sort.Type", keys("k", "", "s", "X", "")},
	} {
		_, errNew := dynamolock.New(t.Context(), conn, &c.o)
		errs := []error{errNew}
		if c.field != "Options.Owner" && c.o.Margin >= 0 {
			errs = append(errs, dynamolock.CreateTable(t.Context(), conn, &c.o))
		}
		for _, err := range errs {
			var invalid *holdfast.InvalidError
			if !errors.As(err, &invalid) || invalid.Field != c.field {
				t.Errorf("%+v: %v, want an InvalidError for %s", c.o, err, c.field)
			}
		}
	}
	if _, err := dynamolock.New(t.Context(), nil, &dynamolock.Options{Table: "table"}); !errors.Is(err, holdfast.ErrInvalid) {
		t.Error(err)
	}
	if calls := conn.Calls(); len(calls) != 0 {
		t.Errorf("something was sent: %v", calls)
	}
}

func keys(p string, pt types.ScalarAttributeType, sort string, st types.ScalarAttributeType, separator string) dynamolock.Options {
	return dynamolock.Options{Table: "table", Keys: dynamolock.Keys{
		Partition: dynamolock.KeyAttr{Name: p, Type: pt}, Sort: dynamolock.KeyAttr{Name: sort, Type: st}, Separator: separator,
	}}
}

func TestDefaults(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		a := h.client(t)
		defer a.close(t)
		o := a.Options()
		if o.Lease != 20*time.Second || o.Heartbeat != 5*time.Second || o.Poll != time.Second || o.Keys.Partition.Name != "id" ||
			o.Keys.Partition.Type != typeS || o.Timeout >= o.Lease/4 || o.RetryDelay != 100*time.Millisecond {
			t.Errorf("%+v", o)
		}
	})
	for _, l := range []time.Duration{dynamolock.MinLease, dynamolock.MaxLease} {
		bubble(t, dynamolock.Options{Lease: l}, func(t *testing.T, h *harness) {
			a := h.client(t)
			defer a.close(t)
			lock := a.hold(t, "k")
			time.Sleep(3 * l)
			if err := lock.Err(); err != nil {
				t.Errorf("a lease of %v: %v", l, err)
			}
		})
	}
}

func TestTable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := dynamofake.New()
		conn := db.Client()
		open := func(o dynamolock.Options) error {
			o.Table = tableName
			c, err := dynamolock.New(t.Context(), conn, &o)
			if err != nil {
				return err
			}
			return c.Close(t.Context())
		}
		unfit := func(err error, words ...string) {
			t.Helper()
			if !errors.Is(err, dynamolock.ErrTable) || !strings.Contains(err.Error(), `"`+tableName+`"`) {
				t.Errorf("%v, want ErrTable, and the name of the table", err)
			}
			for _, word := range words {
				if err != nil && !strings.Contains(err.Error(), word) {
					t.Errorf("%v; it says nothing of %s", err, word)
				}
			}
		}
		unfit(open(dynamolock.Options{}), "DescribeTable")

		// A table that is being created: New waits for it, for a limited time.
		db.CreateDelay = 5 * time.Second
		begun := time.Now()
		go func() {
			if err := dynamolock.CreateTable(t.Context(), conn, &dynamolock.Options{Table: tableName}); err != nil {
				t.Error(err)
			}
		}()
		synctest.Wait()
		err := open(dynamolock.Options{OpenTimeout: time.Second})
		unfit(err, "being created")
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if err := open(dynamolock.Options{}); err != nil || time.Since(begun) < db.CreateDelay {
			t.Errorf("%v, after %v", err, time.Since(begun))
		}

		// A table that already exists: the same again, and with other keys.
		if err := dynamolock.CreateTable(t.Context(), conn, &dynamolock.Options{Table: tableName}); err != nil {
			t.Error(err)
		}
		for _, c := range []struct {
			keys  dynamolock.Keys
			words []string
		}{
			{dynamolock.Keys{Partition: dynamolock.KeyAttr{Name: "key"}}, []string{`"id"`, `"key"`}},
			{dynamolock.Keys{Partition: dynamolock.KeyAttr{Name: "id", Type: typeN}}, []string{"type S", "not N"}},
			{dynamolock.Keys{Sort: dynamolock.KeyAttr{Name: "sort"}}, []string{"no RANGE key", `"sort"`}},
		} {
			unfit(open(dynamolock.Options{Keys: c.keys}), c.words...)
			unfit(dynamolock.CreateTable(t.Context(), conn, &dynamolock.Options{Table: tableName, Keys: c.keys}), c.words...)
		}
		sorted := dynamolock.Options{Table: "sorted", Keys: dynamolock.Keys{Sort: dynamolock.KeyAttr{Name: "sort", Type: typeB}}}
		if err := dynamolock.CreateTable(t.Context(), conn, &sorted); err != nil {
			t.Error(err)
		}
		if _, err := dynamolock.New(t.Context(), conn, &dynamolock.Options{Table: "sorted"}); !errors.Is(err, dynamolock.ErrTable) {
			t.Error(err)
		}
		out, err := conn.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: aws.String(tableName)})
		if err != nil || out.Table.BillingModeSummary == nil || out.Table.BillingModeSummary.BillingMode != types.BillingModePayPerRequest {
			t.Errorf("%+v, %v", out, err)
		}
	})
}

// New reports whatever is wrong with the access to the service.
func TestNewFails(t *testing.T) {
	for name, c := range map[string]struct {
		fault dynamofake.Fault
		want  error
	}{
		"denied":    {dynamofake.Fail(dynamofake.Denied()), holdfast.ErrDenied},
		"500":       {dynamofake.Fail(dynamofake.ServerError()), holdfast.ErrDisconnected},
		"throttled": {dynamofake.Fail(dynamofake.Throttling()), holdfast.ErrDisconnected},
		"reset":     {dynamofake.Fail(dynamofake.Reset()), holdfast.ErrDisconnected},
		"silence":   {dynamofake.Drop(), holdfast.ErrDisconnected},
		"no credentials": {
			dynamofake.Fail(errors.New("get identity: get credentials: failed to refresh cached credentials")), holdfast.ErrDenied,
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
				conn := h.db.Client()
				conn.SetFault(func(dynamofake.Op) dynamofake.Fault { return c.fault })
				var err error
				d := took(func() { _, err = dynamolock.New(t.Context(), conn, &dynamolock.Options{Table: tableName}) })
				if !errors.Is(err, c.want) || !strings.Contains(err.Error(), "DescribeTable") || !strings.Contains(err.Error(), tableName) {
					t.Errorf("%v", err)
				}
				retried := errors.Is(err, holdfast.ErrDisconnected)
				if retried != errors.Is(err, context.DeadlineExceeded) || (d > time.Second) != retried || d > 16*time.Second {
					t.Errorf("after %v: %v", d, err)
				}
			})
		})
	}
}

// Errors of the service, and the errors of Acquire for them.
func TestAcquireFails(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want error
	}{
		"denied":    {dynamofake.Denied(), holdfast.ErrDenied},
		"500":       {dynamofake.ServerError(), holdfast.ErrDisconnected},
		"throttled": {dynamofake.Throttled(), holdfast.ErrDisconnected},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
				a := h.client(t)
				defer a.close(t)
				a.conn.SetFault(func(dynamofake.Op) dynamofake.Fault { return dynamofake.Fail(c.err) })
				for call, f := range map[string]func(context.Context) error{
					"UpdateItem": func(ctx context.Context) error { _, err := a.Acquire(ctx, "k"); return err },
					"GetItem":    func(ctx context.Context) error { _, err := a.Inspect(ctx, "k"); return err },
				} {
					ctx, cancel := context.WithTimeout(t.Context(), lease)
					defer cancel()
					err := f(ctx)
					if !errors.Is(err, c.want) || errors.Is(err, context.DeadlineExceeded) != (c.want == holdfast.ErrDisconnected) {
						t.Errorf("%s: %v", call, err)
					}
					if !(strings.Contains(err.Error(), call) && strings.Contains(err.Error(), tableName)) {
						t.Errorf("%v does not tell the call and the table", err)
					}
				}
				a.conn.SetFault(nil)
			})
		})
	}
}

// Items have a time to live that is far in the future.
func TestTTLAttribute(t *testing.T) {
	for _, mode := range []dynamolock.Mode{dynamolock.FailOpen, dynamolock.FailClosedFenced, dynamolock.FailClosed} {
		bubble(t, dynamolock.Options{TTLAttribute: "ttl", Mode: mode}, func(t *testing.T, h *harness) {
			conn := h.db.Client()
			out, err := conn.DescribeTimeToLive(t.Context(), &dynamodb.DescribeTimeToLiveInput{TableName: aws.String(tableName)})
			if err != nil || aws.ToString(out.TimeToLiveDescription.AttributeName) != "ttl" {
				t.Errorf("%+v, %v", out, err)
			}
			again := h.options
			if err := dynamolock.CreateTable(t.Context(), conn, &again); err != nil {
				t.Error(err)
			}
			again.TTLAttribute = "other"
			if err := dynamolock.CreateTable(t.Context(), conn, &again); !errors.Is(err, dynamolock.ErrTable) {
				t.Error(err)
			}

			a := h.client(t)
			defer a.close(t)
			lock := a.hold(t, "k")
			want := func(when string, has bool) {
				t.Helper()
				i := h.item("k")
				left := time.Until(time.Unix(number(i["ttl"]), 0))
				if has != (i["ttl"] != nil) || has && (left > dynamolock.DefaultTTL || left < dynamolock.DefaultTTL-time.Minute) {
					t.Errorf("%v, %s: %v is left of %v", mode, when, left, i)
				}
			}
			want("held", mode == dynamolock.FailOpen)
			time.Sleep(3 * lease)
			want("renewed", mode == dynamolock.FailOpen)
			if err := lock.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
			want("released", mode != dynamolock.FailClosed)
			a.hold(t, "k")
			want("held again", mode == dynamolock.FailOpen)
		})
	}
}

// Several programs create a table at once, and each may be the first to see it; the
// service does not show a new table everywhere at once.
func TestCreateTableTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := dynamofake.New()
		db.Latency, db.CreateDelay, db.TellDelay = time.Second, 4*time.Second, 2*time.Second
		errs := make(chan error)
		const programs = 5
		for range programs {
			go func() {
				errs <- dynamolock.CreateTable(t.Context(), db.Client(), &dynamolock.Options{Table: tableName, TTLAttribute: "ttl"})
			}()
		}
		for range programs {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
		_, err := dynamolock.New(t.Context(), db.Client(), &dynamolock.Options{Table: "none"})
		if !errors.Is(err, dynamolock.ErrTable) {
			t.Errorf("%v, want ErrTable", err)
		}
		began := time.Now()
		db.Latency, db.TellDelay = 0, time.Hour
		err = dynamolock.CreateTable(t.Context(), db.Client(), &dynamolock.Options{Table: "other", OpenTimeout: time.Minute})
		if d := time.Since(began); !errors.Is(err, dynamolock.ErrTable) || !errors.Is(err, context.DeadlineExceeded) || d > time.Minute+time.Second {
			t.Errorf("a table that never comes to be: %v after %v", err, d)
		}
	})
}
