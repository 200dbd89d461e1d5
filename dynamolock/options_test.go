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
	for field, all := range map[string][]dynamolock.Options{
		"Options.Table": {
			{},
		},
		"Options.Mode": {{Mode: 3}, {Mode: -1}},
		"Options.Lease": {
			{Lease: -1}, {Lease: dynamolock.MinLease - 1}, {Lease: dynamolock.MaxLease + time.Second}, {Lease: 2*time.Second + 1},
		},
		"Options.Heartbeat":   {{Lease: 3 * time.Second, Heartbeat: time.Second}, {Heartbeat: -1}},
		"Options.Poll":        {{Poll: -1}, {Poll: dynamolock.MinPoll - 1}, {Poll: dynamolock.DefaultLease + 1}},
		"Options.Timeout":     {{Timeout: -1}, {Timeout: 7 * time.Second}, {Margin: 10 * time.Second}},
		"Options.RetryDelay":  {{RetryDelay: -1}, {RetryDelay: 6 * time.Second}},
		"Options.Margin":      {{Margin: -1}},
		"Options.OpenTimeout": {{OpenTimeout: -1}},
		"Options.Owner":       {{Owner: "a\x00b"}},
		"Options.TTL": {
			{TTL: time.Hour},
			{TTLAttribute: "ttl", TTL: time.Hour},
			{TTLAttribute: "ttl", TTL: 9 * dynamolock.MaxLease, Lease: dynamolock.MaxLease},
		},
		"Options.TTLAttribute": {{TTLAttribute: "id"}, {TTLAttribute: "guid"}, {TTLAttribute: strings.Repeat("t", 256)}},
		"Options.Keys.Partition.Name": {
			keys("owner", "", "", "", ""), keys("fencingToken", "", "", "", ""),
			keys(strings.Repeat("k", 256), "", "", "", ""), keys("", typeN, "", "", ""),
		},
		"Options.Keys.Partition.Type": {keys("k", "BOOL", "", "", "")},
		"Options.Keys.Sort.Name": {
			keys("k", "", "k", "", ""), keys("k", "", "guid", "", ""), keys("k", "", "", typeS, ""), keys("k", "", "", "", "/"),
		},
		"Options.Keys.Sort.Type": {keys("k", "", "s", "X", "")},
	} {
		for _, o := range all {
			if field != "Options.Table" {
				o.Table = "table"
			}
			_, errNew := dynamolock.New(t.Context(), conn, &o)
			errs := []error{errNew}
			if field != "Options.Owner" && o.Margin >= 0 {
				errs = append(errs, dynamolock.CreateTable(t.Context(), conn, &o))
			}
			for _, err := range errs {
				var invalid *holdfast.InvalidError
				if !errors.As(err, &invalid) || invalid.Field != field {
					t.Errorf("%+v: %v, want an InvalidError for %s", o, err, field)
				}
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
	alone(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		a := h.client(t)
		o := a.Options()
		if o.Lease != 20*time.Second || o.Heartbeat != 5*time.Second || o.Poll != time.Second || o.Keys.Partition.Name != "id" ||
			o.Keys.Partition.Type != typeS || o.Timeout >= o.Lease/4 || o.RetryDelay != 100*time.Millisecond {
			t.Errorf("%+v", o)
		}
	})
	for _, l := range []time.Duration{dynamolock.MinLease, dynamolock.MaxLease} {
		alone(t, dynamolock.Options{Lease: l}, func(t *testing.T, h *harness) {
			a := h.client(t)
			lock := a.hold(t, "k")
			time.Sleep(3 * l)
			mustLive(t, lock)
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

// New and later calls report whatever is wrong with the access to the service, with the call and the table.
func TestNewFails(t *testing.T) {
	type test struct {
		fault      dynamofake.Fault
		want       error
		unanswered bool
	}
	forEach(t, map[string]test{
		"denied":     {dynamofake.Fail(dynamofake.Denied()), holdfast.ErrDenied, false},
		"500":        {dynamofake.Fail(dynamofake.ServerError()), holdfast.ErrDisconnected, false},
		"throttled":  {dynamofake.Fail(dynamofake.Throttled()), holdfast.ErrDisconnected, false},
		"throttling": {dynamofake.Fail(dynamofake.Throttling()), holdfast.ErrDisconnected, false},
		"reset":      {dynamofake.Fail(dynamofake.Reset()), holdfast.ErrDisconnected, true},
		"silence":    {dynamofake.Drop(), holdfast.ErrDisconnected, false}, // each request lasts for Options.Timeout
		"no credentials": {
			dynamofake.Fail(errors.New("get identity: get credentials: failed to refresh cached credentials")), holdfast.ErrDenied, false,
		},
	}, func(t *testing.T, h *harness, c test) {
		a := h.client(t)
		a.conn.SetFault(always(c.fault))
		retried := c.want == holdfast.ErrDisconnected
		for name, call := range map[string]func(context.Context) error{
			"DescribeTable": func(context.Context) error {
				_, err := dynamolock.New(t.Context(), a.conn, &dynamolock.Options{Table: tableName})
				return err
			},
			"Item":    func(ctx context.Context) error { _, err := a.Acquire(ctx, "k"); return err },
			"GetItem": func(ctx context.Context) error { _, err := a.Inspect(ctx, "k"); return err },
		} {
			var err error
			d := took(func() { err = call(within(t, lease)) })
			if !errors.Is(err, c.want) || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), tableName) {
				t.Errorf("%s: %v", name, err)
			}
			retried := retried && (name != "DescribeTable" || !c.unanswered) // else two rounds, a second apart
			if retried != errors.Is(err, context.DeadlineExceeded) || (d > time.Second) != retried || d > lease {
				t.Errorf("%s: after %v: %v", name, d, err)
			}
		}
		a.conn.SetFault(nil)
	})
}

// Items have a time to live that is far in the future.
func TestTTLAttribute(t *testing.T) {
	for _, mode := range allModes {
		alone(t, dynamolock.Options{TTLAttribute: "ttl", Mode: mode}, func(t *testing.T, h *harness) {
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
			mustRelease(t, lock)
			want("released", mode != dynamolock.FailClosed)
			a.hold(t, "k")
			want("held again", mode == dynamolock.FailOpen)
		})
	}
}

// Several programs create a table at once; the service does not show it everywhere at once.
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
