package dynamofake_test

import (
	"context"
	"errors"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go"

	"github.com/holdfast-go/holdfast/internal/dynamofake"
)

func TestErrorsAreWrappedAsByTheSDK(t *testing.T) {
	t.Parallel()
	_, c := newDB(t)
	var err error
	fails := func(with error) error {
		c.SetFault(func(dynamofake.Op) dynamofake.Fault { return dynamofake.Fail(with) })
		_, err := increment(t.Context(), c, "x")
		return err
	}
	for what, test := range map[string]struct {
		err       error
		code      string
		retryable aws.Ternary
		status    int // of the HTTP response, 0 without one
	}{
		"throttled":    {dynamofake.Throttled(), "ProvisionedThroughputExceededException", aws.TrueTernary, 400},
		"throttling":   {dynamofake.Throttling(), "ThrottlingException", aws.TrueTernary, 400},
		"server error": {dynamofake.ServerError(), "InternalServerError", aws.TrueTernary, 500},
		"denied":       {dynamofake.Denied(), "AccessDeniedException", aws.UnknownTernary, 400},
		"reset":        {dynamofake.Reset(), "", aws.TrueTernary, 0},
	} {
		err = fails(test.err)
		var operation *smithy.OperationError
		if !errors.As(err, &operation) || operation.ServiceID != "DynamoDB" || operation.OperationName != "UpdateItem" || !errors.Is(err, test.err) {
			t.Errorf("%s: %#v", what, err)
		}
		var api smithy.APIError
		if errors.As(err, &api) != (test.code != "") || api != nil && api.ErrorCode() != test.code {
			t.Errorf("%s: %v", what, err)
		}
		var response interface{ HTTPStatusCode() int }
		if errors.As(err, &response) != (test.status != 0) || response != nil && response.HTTPStatusCode() != test.status {
			t.Errorf("%s: %v", what, err)
		}
		if got := retry.IsErrorRetryables(retry.DefaultRetryables).IsErrorRetryable(err); got != test.retryable {
			t.Errorf("%s: retryable: %v, want %v", what, got, test.retryable)
		}
	}
	if !errors.Is(fails(dynamofake.Reset()), syscall.ECONNRESET) {
		t.Error("a reset is one")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = increment(ctx, c, "x")
	var canceled *aws.RequestCanceledError
	if !errors.Is(err, context.Canceled) || !errors.As(err, &canceled) {
		t.Errorf("%#v", err)
	}
	if calls := c.Calls()["UpdateItem"]; calls != 6 {
		t.Errorf("%d calls; one was over before it began", calls)
	}
}

// TestFaults shows when the service does what was asked, and when the call ends.
func TestFaults(t *testing.T) {
	const never, timeout = time.Duration(-1), 10 * time.Second
	reset := dynamofake.Reset()
	for what, test := range map[string]struct {
		fault dynamofake.Fault
		done  time.Duration // when the item is changed
		end   time.Duration // when the call ends
		err   error
	}{
		"none":                {dynamofake.Fault{}, 0, 0, nil},
		"fail":                {dynamofake.Fail(reset), never, 0, reset},
		"drop":                {dynamofake.Drop(), never, timeout, context.DeadlineExceeded},
		"lose the reply":      {dynamofake.LoseReply(nil), 0, timeout, context.DeadlineExceeded},
		"break for the reply": {dynamofake.LoseReply(reset), 0, 0, reset},
		"delay":               {dynamofake.Delay(3 * time.Second), 3 * time.Second, 3 * time.Second, nil},
		"delay too long":      {dynamofake.Delay(15 * time.Second), 15 * time.Second, timeout, context.DeadlineExceeded},
		"delay the reply":     {dynamofake.DelayReply(3 * time.Second), 0, 3 * time.Second, nil},
		"late reply":          {dynamofake.DelayReply(15 * time.Second), 0, timeout, context.DeadlineExceeded},
		"deliver late":        {dynamofake.DeliverLate(20*time.Second, nil), 20 * time.Second, timeout, context.DeadlineExceeded},
		"break, deliver late": {dynamofake.DeliverLate(20*time.Second, reset), 20 * time.Second, 0, reset},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db, c := newDB(t)
				c.SetFault(func(op dynamofake.Op) dynamofake.Fault {
					in, ok := op.Input.(*dynamodb.UpdateItemInput)
					if op.Name != "UpdateItem" || !ok {
						t.Errorf("%+v", op)
					}
					*in.UpdateExpression = "it is a copy"
					return test.fault
				})
				begin := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), timeout)
				defer cancel()
				var end time.Duration
				var err error
				go func() {
					_, err = increment(ctx, c, "x")
					end = time.Since(begin)
				}()
				done := never
				for range 30 {
					synctest.Wait()
					if done == never && db.Item(plainTable, item{"id": s("x")}) != nil {
						done = time.Since(begin)
					}
					time.Sleep(time.Second)
				}
				if done != test.done || end != test.end || !errors.Is(err, test.err) {
					t.Errorf("done at %v, ended at %v with %v; want %v, %v, %v", done, end, err, test.done, test.end, test.err)
				}
			})
		})
	}
}

func TestCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, c := newDB(t)
		other := db.Client()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		c.Cut()
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := increment(ctx, c, "x"); !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
		})
		if _, err := increment(t.Context(), other, "x"); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Second)
		c.Heal()
		wg.Wait()
		time.Sleep(time.Hour)
		it, err := increment(t.Context(), c, "x")
		if err != nil {
			t.Fatal(err)
		}
		sameItem(t, "what was sent while cut off never arrives", it, item{"id": s("x"), "n": n("2")})
	})
}

// TestCutUnderWay cuts a client off while a request and an answer travel.
func TestCutUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, c := newDB(t)
		db.Latency = 2 * time.Second
		for _, test := range []struct {
			id    string
			after time.Duration
			want  item
		}{
			{"request", 500 * time.Millisecond, nil},
			{"answer", 1500 * time.Millisecond, item{"id": s("answer"), "n": n("1")}},
		} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			timer := time.AfterFunc(test.after, c.Cut)
			_, err := increment(ctx, c, test.id)
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: %v", test.id, err)
			}
			cancel()
			timer.Stop()
			c.Heal()
			sameItem(t, test.id, db.Item(plainTable, item{"id": s(test.id)}), test.want)
		}
		begin := time.Now()
		if _, err := increment(t.Context(), c, "x"); err != nil || time.Since(begin) != db.Latency {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
	})
}

// TestStall holds back a request, and an answer that is under way.
func TestStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, c := newDB(t)
		db.Latency = 2 * time.Second
		for _, test := range []struct {
			id      string
			after   time.Duration // of the stall
			patient bool
			held    item // while it lasts
		}{
			{"request", 0, true, nil},
			{"request on its way", 500 * time.Millisecond, true, nil},
			{"answer", 1500 * time.Millisecond, true, item{"id": s("answer"), "n": n("1")}},
			{"request that was given up", 0, false, nil},
		} {
			ctx, cancel := context.WithTimeout(t.Context(), map[bool]time.Duration{true: time.Hour, false: time.Second}[test.patient])
			time.AfterFunc(test.after, c.Stall)
			time.Sleep(time.Nanosecond)
			var wg sync.WaitGroup
			wg.Go(func() {
				if _, err := increment(ctx, c, test.id); (err == nil) != test.patient {
					t.Errorf("%s: %v", test.id, err)
				}
			})
			time.Sleep(time.Minute)
			key := item{"id": s(test.id)}
			sameItem(t, test.id+", held back", db.Item(plainTable, key), test.held)
			c.Heal()
			wg.Wait()
			cancel()
			sameItem(t, test.id, db.Item(plainTable, key), item{"id": s(test.id), "n": n("1")})
		}
	})
}

func TestLag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, c := newDB(t)
		db.Lag = 10 * time.Second
		key := item{"id": s("x")}
		expect := func(when, consistent, lagging string) {
			t.Helper()
			for i, want := range []string{lagging, consistent} {
				it, err := get(t.Context(), c, plainTable, key, i == 1)
				if err != nil {
					t.Fatal(err)
				}
				scan, err := c.Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String(plainTable), ConsistentRead: aws.Bool(i == 1)})
				if err != nil {
					t.Fatal(err)
				}
				query, err := c.Query(t.Context(), &dynamodb.QueryInput{
					TableName: aws.String(plainTable), ConsistentRead: aws.Bool(i == 1),
					KeyConditionExpression: aws.String("#id = :x"), ExpressionAttributeNames: names("#id"), ExpressionAttributeValues: item{":x": s("x")},
				})
				if err != nil {
					t.Fatal(err)
				}
				if want == "" {
					if it != nil || scan.Count != 0 || query.Count != 0 {
						t.Errorf("%s: there is %v", when, it)
					}
					continue
				}
				for _, got := range append(append(scan.Items, query.Items...), it) {
					sameItem(t, when, got, item{"id": s("x"), "n": n(want)})
				}
			}
		}
		expect("before", "", "")
		db.SetItem(plainTable, item{"id": s("x"), "n": n("1")})
		expect("at once", "1", "")
		time.Sleep(6 * time.Second)
		db.SetItem(plainTable, item{"id": s("x"), "n": n("2")})
		expect("second version", "2", "")
		time.Sleep(4 * time.Second)
		expect("first version arrives", "2", "1")
		time.Sleep(5 * time.Second)
		db.RemoveItem(plainTable, key)
		expect("deleted", "", "1")
		time.Sleep(time.Second)
		expect("second version arrives", "", "2")
		time.Sleep(9 * time.Second)
		expect("deletion arrives", "", "")
	})
}

// TestAtomic counts from many goroutines at once.
func TestAtomic(t *testing.T) {
	t.Parallel()
	db, _ := newDB(t)
	var wg sync.WaitGroup
	for range 10 {
		c := db.Client()
		wg.Go(func() {
			for range 20 {
				if _, err := increment(t.Context(), c, "x"); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	sameItem(t, "the sum", db.Item(plainTable, item{"id": s("x")}), item{"id": s("x"), "n": n("200")})
}
