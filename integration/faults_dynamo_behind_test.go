package integration_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dynamolock"
)

// scale multiplies the load of a test: HOLDFAST_BEHIND sets it, for measurements.
func scale(t *testing.T, usual int) int {
	t.Helper()
	n, err := strconv.Atoi(cmp.Or(os.Getenv("HOLDFAST_BEHIND"), strconv.Itoa(usual)))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// D20, D21. Calls are cancelled after some milliseconds, wherever they are. Their cleanup
// in the background is bounded at any time, and costs about as much as the calls did; no
// key stays held.
func TestDynamoCancelledCalls(t *testing.T) {
	t.Parallel()
	const callers = 10
	calls := scale(t, 300)
	for _, keys := range []int{1, calls} {
		t.Run(fmt.Sprint(keys, " keys"), func(t *testing.T) {
			start(t)
			d := newDynamo(t)
			client := d.client(t, longLease)
			sent := func() int { return client.net.Count("UpdateItem") + client.net.Count("GetItem") }
			name := newKey(t)
			before, base := sent(), goroutineCount(t.Name())
			var granted, most atomic.Int64
			var all sync.WaitGroup
			for g := range callers {
				all.Go(func() {
					for i := range calls / callers {
						ctx, cancel := context.WithTimeout(limited(t), rand.N(12*time.Millisecond))
						lock, err := client.Acquire(ctx, fmt.Sprint(name, (g*calls/callers+i)%keys))
						cancel()
						if err == nil {
							granted.Add(1)
							_ = lock.Release(limited(t))
						}
						most.Store(max(most.Load(), int64(goroutineCount(t.Name())-base)))
					}
				})
			}
			all.Wait()
			closing := time.Now()
			if err := client.Close(limited(t)); err != nil {
				t.Error(err)
			}
			requests := sent() - before - int(granted.Load())
			t.Logf("%d calls, %d granted: %d requests, %.1f each, %d more goroutines at the most; closed after %v",
				calls, granted.Load(), requests, float64(requests)/float64(calls), most.Load(), time.Since(closing))
			if requests > 3*calls {
				t.Errorf("%d requests for %d calls", requests, calls)
			}
			if most.Load() > 1000 {
				t.Errorf("%d more goroutines", most.Load())
			}
			other := d.client(t, longLease)
			for i := range keys {
				if keys > 1 && i%10 != 0 {
					continue
				}
				lock, err := other.TryAcquire(limited(t), fmt.Sprint(name, i))
				if err != nil {
					t.Fatalf("held without a holder: %v", err)
				}
				release(t, lock)
			}
		})
	}
}

// D19. The endpoint refuses connections. A request that never had a connection leaves
// nothing to undo.
func TestDynamoRefusedLeavesNothing(t *testing.T) {
	start(t)
	d := newDynamo(t)
	var refuse atomic.Bool
	var dials atomic.Int64
	transport := d.target.Transport().Clone()
	dialer := &net.Dialer{}
	transport.DisableKeepAlives = true
	transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		dials.Add(1)
		if refuse.Load() {
			address = "127.0.0.1:1" // nobody listens there
		}
		return dialer.DialContext(ctx, network, address)
	}
	client := d.clientBy(t, transport, longLease, func(o *dynamolock.Options) {
		o.Mode = dynamolock.FailClosed
		o.Timeout = 10 * time.Second // a ctx that ends before the dial leaves the outcome in doubt
	})
	key := newKey(t)
	refuse.Store(true)
	base, before := goroutineCount(t.Name()), dials.Load()
	const calls = 200
	for range calls {
		_, err := client.TryAcquire(limited(t), key, holdfast.WithRetry(holdfast.Retry{Attempts: 1}))
		if !errors.Is(err, holdfast.ErrDisconnected) {
			t.Fatalf("error is %v, want it to match %v", err, holdfast.ErrDisconnected)
		}
	}
	if n := goroutineCount(t.Name()) - base; n > 60 {
		t.Errorf("%d more goroutines", n)
	}
	time.Sleep(shortLease)
	if n := dials.Load() - before; n > calls+40 {
		t.Errorf("%d connections were tried for %d calls", n, calls)
	}
	refuse.Store(false)
	// A FailClosed client that still had doubtful grants would say so.
	if err := client.Close(limited(t)); err != nil {
		t.Error(err)
	}
	if _, err := d.server.GetItem(limited(t), &dynamodb.GetItemInput{TableName: aws.String(d.table), Key: d.key(key)}); err != nil {
		t.Error(err)
	}
}

// D22. A client that holds many locks closes. It has no more requests under way than
// connections.
func TestDynamoCloseWithManyLocks(t *testing.T) {
	start(t)
	d := newDynamo(t)
	locks := scale(t, 500)
	client := d.client(t, longLease, func(o *dynamolock.Options) { o.Timeout = 5 * time.Second }) // machines are busy
	name := newKey(t)
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			for i := g; i < locks; i += 8 {
				client.take(t, fmt.Sprint(name, i))
			}
		})
	}
	all.Wait()
	began, sent := time.Now(), client.net.Count("UpdateItem")
	if err := client.Close(limited(t)); err != nil {
		t.Error(err)
	}
	took := time.Since(began)
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	t.Logf("%d locks: closed after %v, with %d requests; %d MB from the system", locks, took, client.net.Count("UpdateItem")-sent, m.Sys>>20)
	for i := 0; i < locks; i += 50 {
		d.isReleased(t, fmt.Sprint(name, i))
	}
}
