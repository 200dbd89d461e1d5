package holdfastotel_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/memlock"
	holdfastotel "github.com/holdfast-go/holdfast/metrics/otel"
)

const lease = 10 * time.Second

// world is a store, a client of it with metrics, and who reads these.
type world struct {
	store  *memlock.Store
	client *memlock.Client
	host   driver.Host
	reader *metric.ManualReader
}

func newWorld(t testing.TB, o *holdfastotel.Options) *world {
	t.Helper()
	w := &world{store: memlock.NewStore(), reader: metric.NewManualReader()}
	metrics, err := holdfastotel.New(metric.NewMeterProvider(metric.WithReader(w.reader)), o)
	if err != nil {
		t.Fatal(err)
	}
	w.client = w.open(t, metrics.Hooks())
	return w
}

func (w *world) open(t testing.TB, hooks holdfast.Hooks) *memlock.Client {
	t.Helper()
	client, err := memlock.New(&memlock.Options{
		Store: w.store, Lease: lease, Hooks: hooks,
		Wrap: func(host driver.Host, inner driver.Driver) driver.Driver {
			w.host = host
			return inner
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		w.store.Heal(client)
		if err := client.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return client
}

func acquire(t testing.TB, c *memlock.Client, key string, opts ...holdfast.Option) *holdfast.Lock {
	t.Helper()
	lock, err := c.Acquire(t.Context(), key, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return lock
}

func release(t testing.TB, lock *holdfast.Lock) {
	t.Helper()
	if err := lock.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// series are the lines that a reader gets: name, attributes, and the value, of a
// histogram the count and the sum.
func (w *world) series(t testing.TB) []string {
	t.Helper()
	var lines []string
	for _, m := range w.metrics(t) {
		add := func(attributes attribute.Set, value string) {
			lines = append(lines, fmt.Sprintf("%s{%s} %s", m.Name, attributes.Encoded(attribute.DefaultEncoder()), value))
		}
		switch data := m.Data.(type) {
		case metricdata.Sum[int64]:
			for _, p := range data.DataPoints {
				add(p.Attributes, fmt.Sprint(p.Value))
			}
		case metricdata.Histogram[float64]:
			for _, p := range data.DataPoints {
				add(p.Attributes, fmt.Sprintf("%d %v", p.Count, p.Sum))
			}
		case metricdata.Histogram[int64]:
			for _, p := range data.DataPoints {
				add(p.Attributes, fmt.Sprintf("%d %v", p.Count, p.Sum))
			}
		default:
			t.Errorf("%s is of type %T", m.Name, data)
		}
	}
	return lines
}

func (w *world) metrics(t testing.TB) []metricdata.Metrics {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := w.reader.Collect(context.Background(), &all); err != nil {
		t.Fatal(err)
	}
	if len(all.ScopeMetrics) != 1 {
		t.Fatalf("%d scopes", len(all.ScopeMetrics))
	}
	return all.ScopeMetrics[0].Metrics
}

// shows fails the test unless the lines are among what a reader gets.
func (w *world) shows(t testing.TB, want string) {
	t.Helper()
	got := w.series(t)
	for line := range strings.SplitSeq(strings.TrimSpace(want), "\n") {
		if line = strings.TrimSpace(line); !slices.Contains(got, line) {
			t.Errorf("no %s\nthere are:\n\t%s", line, strings.Join(got, "\n\t"))
		}
	}
}

// What has happened in a client, known to the second, is what its metrics say.
func TestMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, &holdfastotel.Options{Engine: "memory", Client: "a"})
		other := w.open(t, holdfast.Hooks{})
		synctest.Wait()
		w.shows(t, `
			holdfast.lock.count{holdfast.client=a,holdfast.engine=memory} 0
			holdfast.lock.ttl_expired{holdfast.client=a,holdfast.engine=memory} 0
			holdfast.lock.lost{holdfast.cause=session_expired,holdfast.client=a,holdfast.engine=memory} 0
			holdfast.connection.count{holdfast.client=a,holdfast.engine=memory} 1`)

		// Two wait in line behind another client, for two and three seconds.
		held := acquire(t, other, "k")
		for range 2 {
			go func() {
				lock := acquire(t, w.client, "k")
				time.Sleep(time.Second)
				release(t, lock)
			}()
			synctest.Wait()
		}
		w.shows(t, `
			holdfast.acquire.pending_requests{holdfast.client=a,holdfast.engine=memory} 2
			holdfast.queue.length{holdfast.client=a,holdfast.engine=memory} 2 3`)
		time.Sleep(2 * time.Second)
		release(t, held)
		synctest.Wait()
		w.shows(t, `
			holdfast.acquire.pending_requests{holdfast.client=a,holdfast.engine=memory} 1
			holdfast.lock.count{holdfast.client=a,holdfast.engine=memory} 1`)
		time.Sleep(2 * time.Second)
		synctest.Wait()

		// Refused; past its TTL; lost with the session.
		acquire(t, other, "k")
		if _, err := w.client.TryAcquire(t.Context(), "k"); !errors.Is(err, holdfast.ErrHeld) {
			t.Error(err)
		}
		<-acquire(t, w.client, "ttl", holdfast.WithTTL(time.Second)).Done()
		lost := acquire(t, w.client, "lost")
		w.store.Cut(w.client)
		<-lost.Done()
		synctest.Wait()
		w.shows(t, `
			holdfast.acquire.duration{holdfast.client=a,holdfast.engine=memory} 4 5
			holdfast.acquire.duration{error.type=held,holdfast.client=a,holdfast.engine=memory} 1 0
			holdfast.acquire.pending_requests{holdfast.client=a,holdfast.engine=memory} 0
			holdfast.lock.count{holdfast.client=a,holdfast.engine=memory} 0
			holdfast.lock.held_duration{holdfast.client=a,holdfast.engine=memory} 4 12.5
			holdfast.lock.ttl_expired{holdfast.client=a,holdfast.engine=memory} 1
			holdfast.lock.lost{holdfast.cause=session_expired,holdfast.client=a,holdfast.engine=memory} 1
			holdfast.connection.count{holdfast.client=a,holdfast.engine=memory} 0`)
	})
}

// Heartbeats, of which memlock has none of its own.
func TestHeartbeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		for _, err := range []error{nil, nil, holdfast.ErrDisconnected} {
			sent := w.host.Now()
			time.Sleep(time.Second)
			w.host.Heartbeat("k", sent, err)
		}
		synctest.Wait()
		w.shows(t, `
			holdfast.heartbeat.duration{} 2 2
			holdfast.heartbeat.duration{error.type=disconnected} 1 1`)
	})
}

// However many keys there are, the number of series stays what it is; unless there
// is an attribute for the kind of key.
func TestKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		release(t, acquire(t, w.client, "first"))
		synctest.Wait()
		before := len(w.series(t))
		for i := range 100 {
			release(t, acquire(t, w.client, fmt.Sprintf("orders/%d", i)))
		}
		synctest.Wait()
		if after := len(w.series(t)); after != before {
			t.Errorf("100 keys have made %d series of %d", after, before)
		}

		w = newWorld(t, &holdfastotel.Options{KeyAttribute: func(key string) string {
			kind, _, _ := strings.Cut(key, "/")
			return kind
		}})
		acquire(t, w.client, "orders/1")
		acquire(t, w.client, "orders/2")
		if _, err := w.client.AcquireAny(t.Context(), []string{"orders/1", "reports/1"}, holdfast.WithWait(time.Second)); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		w.shows(t, `
			holdfast.lock.count{holdfast.key=orders} 2
			holdfast.lock.count{holdfast.key=reports} 1
			holdfast.acquire.pending_requests{holdfast.key=} 0
			holdfast.acquire.pending_requests{holdfast.key=orders} 0`)
	})
}

// Instruments are as the table in the documentation says: kind, unit, attributes.
func TestDocumentation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		w.host.Heartbeat("k", w.host.Now(), holdfast.ErrDisconnected)
		held := acquire(t, w.client, "k")
		if _, err := w.client.Acquire(t.Context(), "k", holdfast.WithWait(time.Second)); err == nil {
			t.Error("granted twice")
		}
		release(t, held)
		synctest.Wait()
		doc, err := os.ReadFile("doc.go")
		if err != nil {
			t.Fatal(err)
		}
		documented := regexp.MustCompile(`(?m)^//\t(holdfast\.\S+) +(Histogram|UpDownCounter|Counter) +(\S+) .*?(error\.type|holdfast\.cause)?$`).
			FindAllStringSubmatch(string(doc), -1)
		table := make(map[string]string)
		for _, row := range documented {
			table[row[1]] = fmt.Sprint(row[2:])
		}
		metrics := w.metrics(t)
		for _, m := range metrics {
			kind, own := "Histogram", ""
			var sets []attribute.Set
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				if kind = "UpDownCounter"; data.IsMonotonic {
					kind = "Counter"
				}
				for _, p := range data.DataPoints {
					sets = append(sets, p.Attributes)
				}
			case metricdata.Histogram[float64]:
				for _, p := range data.DataPoints {
					sets = append(sets, p.Attributes)
				}
			}
			for _, set := range sets {
				for _, kv := range set.ToSlice() {
					own = string(kv.Key)
				}
			}
			if got := fmt.Sprint([]string{kind, m.Unit, own}); got != table[m.Name] {
				t.Errorf("%s is %s, documented as %q", m.Name, got, table[m.Name])
			}
			if m.Description == "" {
				t.Errorf("%s has no description", m.Name)
			}
		}
		if len(metrics) != len(table) {
			t.Errorf("%d instruments, %d documented", len(metrics), len(table))
		}
	})
}

// Without a provider, the global one is used.
func TestGlobalProvider(t *testing.T) {
	reader := metric.NewManualReader()
	otel.SetMeterProvider(metric.NewMeterProvider(metric.WithReader(reader)))
	if _, err := holdfastotel.New(nil, nil); err != nil {
		t.Fatal(err)
	}
	w := &world{reader: reader}
	w.shows(t, `holdfast.lock.count{} 0`)
}
