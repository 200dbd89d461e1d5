package dynamolock_test

import (
	"context"
	"errors"
	"io"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dynamolock"
)

func TestBadOptions(t *testing.T) {
	s := &script{}
	conn := s.sdk(someCredentials)
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
			keys(strings.Repeat("k", 256), "", "", "", ""), keys("", types.ScalarAttributeTypeN, "", "", ""),
		},
		"Options.Keys.Partition.Type": {keys("k", "BOOL", "", "", "")},
		"Options.Keys.Sort.Name": {
			keys("k", "", "k", "", ""), keys("k", "", "guid", "", ""), keys("k", "", "", types.ScalarAttributeTypeS, ""), keys("k", "", "", "", "/"),
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
	if calls := s.calls(); len(calls) != 0 {
		t.Errorf("something was sent: %v", calls)
	}
}

func keys(p string, pt types.ScalarAttributeType, sort string, st types.ScalarAttributeType, separator string) dynamolock.Options {
	return dynamolock.Options{Table: "table", Keys: dynamolock.Keys{
		Partition: dynamolock.KeyAttr{Name: p, Type: pt}, Sort: dynamolock.KeyAttr{Name: sort, Type: st}, Separator: separator,
	}}
}

func TestDefaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := (&script{}).open(t, nil, dynamolock.Options{}).Options()
		if o.Lease != 20*time.Second || o.Heartbeat != 5*time.Second || o.Poll != time.Second || o.Keys.Partition.Name != "id" ||
			o.Keys.Partition.Type != types.ScalarAttributeTypeS || o.Timeout >= o.Lease/4 || o.RetryDelay != 100*time.Millisecond {
			t.Errorf("%+v", o)
		}
	})
}

// A key is one that the table takes; a key that is refused is not sent.
func TestBadKeys(t *testing.T) {
	const s, n, b = types.ScalarAttributeTypeS, types.ScalarAttributeTypeN, types.ScalarAttributeTypeB
	long := func(n int) string { return strings.Repeat("k", n) }
	type test struct {
		keys     dynamolock.Options
		bad      []string
		prefixes []string // that cannot be listed
	}
	each(t, map[string]test{
		"N": {
			keys("id", n, "", "", ""),
			[]string{"07", "7.0", "1e3", "+7", "-0", ".5", "5.", "a", "-", "0x1", "١", strings.Repeat("1", 39)},
			nil,
		},
		"S":       {keys("id", s, "", "", ""), []string{"", "\xff", long(2049)}, []string{"\xff", long(2049)}},
		"B":       {keys("id", b, "", "", ""), []string{"", long(2049)}, nil},
		"S and B": {keys("id", s, "b", b, ""), []string{"/a", "a/", "", "a", "\xff/a", "b/" + long(1025)}, []string{"\xff/", "b/" + long(1025)}},
		"S and N": {keys("id", s, "n", n, "#"), []string{"a/b", "a#x", "a#01", "#1", "a#"}, nil},
		"N and B": {keys("id", n, "b", b, "::"), []string{"a::1", "1:a"}, []string{"a::"}},
	}, func(t *testing.T, test test) {
		more := ""
		k := test.keys.Keys
		if k.Sort.Name != "" {
			more = `, {"AttributeName": "` + k.Sort.Name + `", "KeyType": "RANGE"}`
		}
		script := &script{answer: in("DescribeTable", reply{body: `{"Table": {"TableStatus": "ACTIVE",
			"KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}` + more + `], "AttributeDefinitions": [
				{"AttributeName": "id", "AttributeType": "` + string(k.Partition.Type) + `"},
				{"AttributeName": "` + k.Sort.Name + `", "AttributeType": "` + string(k.Sort.Type) + `"}]}}`})}
		c := script.open(t, nil, test.keys)
		script.calls()
		for _, key := range test.bad {
			var invalid *holdfast.InvalidError
			if _, err := c.TryAcquire(t.Context(), key); !errors.As(err, &invalid) || invalid.Field != "key" {
				t.Errorf("%q: %v", key, err)
			}
			if _, err := c.Inspect(t.Context(), key); !errors.Is(err, holdfast.ErrInvalid) {
				t.Errorf("Inspect %q: %v", key, err)
			}
		}
		for _, prefix := range test.prefixes {
			for _, err := range c.List(t.Context(), prefix) {
				if !errors.Is(err, holdfast.ErrInvalid) {
					t.Errorf("List %q: %v", prefix, err)
				}
			}
		}
		if calls := script.calls(); len(calls) != 0 {
			t.Errorf("something was sent: %v", calls)
		}
	})
}

// New and CreateTable wait for a table and for the service, for a limited time, and say what is wrong with either.
func TestTable(t *testing.T) {
	const describe, look, update = "DescribeTable", "DescribeTimeToLive", "UpdateTimeToLive"
	creating, missing := described("CREATING", ""), fail("ResourceNotFoundException")
	reset, silence := reply{err: io.EOF}, reply{silent: true}
	denied, broken := fail("AccessDeniedException"), fail("InternalServerError")
	late := []error{dynamolock.ErrTable, context.DeadlineExceeded}
	type test struct {
		create  bool // CreateTable in place of New
		answers map[string]func(request) reply
		open    time.Duration
		want    []error
		words   string
		took    time.Duration
	}
	each(t, map[string]test{
		"no table":           {false, replies(describe, missing), 0, []error{dynamolock.ErrTable}, describe, 0},
		"is created soon":    {false, replies(describe, creating, creating, described("ACTIVE", "")), 0, nil, "", 0},
		"is created late":    {false, replies(describe, creating), time.Second, late, "being created", time.Second},
		"is deleted":         {false, replies(describe, described("DELETING", "")), 0, []error{dynamolock.ErrTable}, "DELETING", 0},
		"has no description": {false, replies(describe, reply{body: "{}"}), 0, []error{dynamolock.ErrTable}, "no description", 0},
		"denied":             {false, replies(describe, denied), 0, []error{holdfast.ErrDenied}, describe, 0},
		"500": {
			false, replies(describe, broken), time.Minute,
			[]error{holdfast.ErrDisconnected, context.DeadlineExceeded},
			describe, time.Minute,
		},
		"reset twice":  {false, replies(describe, reset), time.Minute, []error{holdfast.ErrDisconnected}, describe, time.Second},
		"silent twice": {false, replies(describe, silence), time.Minute, []error{holdfast.ErrDisconnected}, describe, 7 * time.Second},
		"reset once":   {false, replies(describe, reset, reply{}), time.Minute, nil, "", time.Second},

		"create":                  {true, nil, 0, nil, "", 0},
		"create, denied":          {true, replies("CreateTable", denied), 0, []error{holdfast.ErrDenied}, "CreateTable", 0},
		"create, exists":          {true, replies("CreateTable", fail("ResourceInUseException")), 0, nil, "", 0},
		"create, not known yet":   {true, replies(describe, missing, missing, creating, reply{}), 0, nil, "", 0},
		"create, not known later": {true, replies(describe, missing), time.Minute, late, "", time.Minute},
		"create, TTL of another program at once": {true, with(
			replies(update, fail("ValidationException")), replies(look, missing, reply{body: "{}"}, timeToLive("ttl")),
		), 0, nil, "", 0},
		"create, TTL refused":     {true, replies(update, fail("ValidationException")), 0, []error{nil}, update, 0},
		"create, another TTL":     {true, replies(look, timeToLive("other")), 0, []error{dynamolock.ErrTable}, `"other"`, 0},
		"create, TTL denied":      {true, replies(update, denied), 0, []error{holdfast.ErrDenied}, update, 0},
		"create, TTL throttled":   {true, replies(update, fail("ThrottlingException"), reply{}), 0, nil, "", 0},
		"create, TTL not in time": {true, replies(look, reset), 0, []error{holdfast.ErrDisconnected}, look, time.Second},
	}, func(t *testing.T, test test) {
		s := &script{answer: func(r request) (a reply) {
			if answer := test.answers[r.Op]; answer != nil {
				a = answer(r)
			}
			return a
		}}
		o := dynamolock.Options{Table: tableName, TTLAttribute: "ttl", OpenTimeout: test.open}
		var err error
		d := took(func() {
			if test.create {
				err = dynamolock.CreateTable(t.Context(), s.sdk(someCredentials), &o)
			} else if c, failed := dynamolock.New(t.Context(), s.sdk(someCredentials), &o); failed != nil {
				err = failed
			} else {
				err = c.Close(t.Context())
			}
		})
		if (err != nil) != (len(test.want) > 0) || err != nil && !strings.Contains(err.Error(), `"`+tableName+`"`) ||
			err != nil && !strings.Contains(err.Error(), test.words) {
			t.Error(err)
		}
		for _, want := range test.want {
			if want != nil && !errors.Is(err, want) {
				t.Errorf("%v, want %v", err, want)
			}
		}
		if d < test.took || d > test.took+6*time.Second {
			t.Errorf("it took %v", d)
		}
		if calls := s.calls(); test.create && calls["CreateTable"] == 0 {
			t.Errorf("%v", calls)
		}
	})
}

func replies(op string, all ...reply) map[string]func(request) reply {
	return map[string]func(request) reply{op: in(op, all...)}
}

func with(a, b map[string]func(request) reply) map[string]func(request) reply {
	maps.Copy(a, b)
	return a
}
