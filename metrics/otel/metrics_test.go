package holdfastotel_test

import (
	"context"
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
	"github.com/holdfast-go/holdfast/internal/metricstest"
	holdfastotel "github.com/holdfast-go/holdfast/metrics/otel"
)

// world is a store, a client of it with metrics, and who reads these.
type world struct {
	*metricstest.World

	reader *metric.ManualReader
}

func newWorld(t testing.TB, o *holdfastotel.Options) *world {
	t.Helper()
	reader := metric.NewManualReader()
	metrics, err := holdfastotel.New(metric.NewMeterProvider(metric.WithReader(reader)), o)
	if err != nil {
		t.Fatal(err)
	}
	return &world{metricstest.New(t, metrics.OnEvent()), reader}
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
		case metricdata.Gauge[float64]:
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

func TestMetrics(t *testing.T) {
	const attributes = "holdfast.client=a,holdfast.engine=memory"
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, &holdfastotel.Options{Engine: "memory", Client: "a"})
		w.Story(t, func(step string) {
			want, ok := map[string]string{
				"nothing has happened": `
					holdfast.acquire.oldest_wait{OWN} 0
					holdfast.lock.oldest_hold{OWN} 0
					holdfast.lock.count{OWN} 0
					holdfast.lock.ttl_expired{OWN} 0
					holdfast.lock.asked{OWN} 0
					holdfast.observed.count{OWN} 0
					holdfast.observed.changes{OWN} 0
					holdfast.lock.lost{holdfast.cause=session_expired,OWN} 0
					holdfast.connection.count{OWN} 1`,
				"two wait": `
					holdfast.acquire.pending_requests{OWN} 2
					holdfast.queue.length{OWN} 2 3`,
				"one holds, one waits": `
					holdfast.acquire.pending_requests{OWN} 1
					holdfast.acquire.oldest_wait{OWN} 2
					holdfast.lock.count{OWN} 1`,
				"both have released": `
					holdfast.acquire.oldest_wait{OWN} 0
					holdfast.lock.oldest_hold{OWN} 0
					holdfast.acquire.duration{OWN} 2 5
					holdfast.lock.held_duration{OWN} 2 2`,
				"refused, expired, broken, lost": `
					holdfast.acquire.duration{OWN} 6 5
					holdfast.acquire.duration{error.type=held,OWN} 2 1
					holdfast.acquire.duration{error.type=canceled,OWN} 1 2
					holdfast.acquire.pending_requests{OWN} 0
					holdfast.lock.count{OWN} 0
					holdfast.lock.held_duration{OWN} 6 22
					holdfast.lock.ttl_expired{OWN} 1
					holdfast.lock.asked{OWN} 1
					holdfast.observed.count{OWN} 1
					holdfast.observed.changes{OWN} 2
					holdfast.lock.lost{holdfast.cause=broken,OWN} 1
					holdfast.lock.lost{holdfast.cause=session_expired,OWN} 2
					holdfast.connection.count{OWN} 0`,
			}[step]
			if !ok {
				t.Errorf("%s: there is no such step", step)
			}
			w.shows(t, strings.ReplaceAll(want, "OWN", attributes))
		})
	})
}

func TestHeartbeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		w.Heartbeats()
		w.shows(t, `
			holdfast.heartbeat.duration{} 2 2
			holdfast.heartbeat.duration{error.type=disconnected} 1 1`)
	})
}

func TestTerms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		metricstest.Lead(t, w.Client, "k", time.Second, func() { w.shows(t, `holdfast.term.count{} 1`) })
		synctest.Wait()
		w.shows(t, `
			holdfast.term.count{} 0
			holdfast.term.duration{holdfast.cause=withdrawn} 1 1`)
	})
}

// However many keys there are, the number of series stays what it is; unless there
// is an attribute for the kind of key.
func TestKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		metricstest.Release(t, metricstest.Acquire(t, w.Client, "first"))
		synctest.Wait()
		before := len(w.series(t))
		for i := range 100 {
			metricstest.Release(t, metricstest.Acquire(t, w.Client, fmt.Sprintf("orders/%d", i)))
		}
		synctest.Wait()
		if after := len(w.series(t)); after != before {
			t.Errorf("100 keys have made %d series of %d", after, before)
		}

		w = newWorld(t, &holdfastotel.Options{KeyAttribute: func(key string) string {
			kind, _, _ := strings.Cut(key, "/")
			return kind
		}})
		metricstest.Acquire(t, w.Client, "orders/1")
		metricstest.Acquire(t, w.Client, "orders/2")
		if _, err := w.Client.AcquireAny(t.Context(), []string{"orders/1", "reports/1"}, holdfast.WithWait(time.Second)); err != nil {
			t.Fatal(err)
		}
		go func() { _, _ = w.Client.Acquire(t.Context(), "orders/2") }()
		time.Sleep(time.Second)
		synctest.Wait()
		w.shows(t, `
			holdfast.lock.oldest_hold{holdfast.key=orders} 1
			holdfast.lock.oldest_hold{holdfast.key=reports} 1
			holdfast.acquire.oldest_wait{holdfast.key=} 0
			holdfast.acquire.oldest_wait{holdfast.key=orders} 1
			holdfast.lock.count{holdfast.key=orders} 2
			holdfast.lock.count{holdfast.key=reports} 1
			holdfast.acquire.pending_requests{holdfast.key=} 0
			holdfast.acquire.pending_requests{holdfast.key=orders} 1`)
	})
}

// Instruments are as the table in the documentation says: kind, unit, attributes.
func TestDocumentation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		w.Host.Heartbeat("k", w.Host.Now(), holdfast.ErrDisconnected)
		held := metricstest.Acquire(t, w.Client, "k")
		if _, err := w.Client.Acquire(t.Context(), "k", holdfast.WithWait(time.Second)); err == nil {
			t.Error("granted twice")
		}
		metricstest.Release(t, held)
		metricstest.Lead(t, w.Client, "k", time.Second, nil)
		synctest.Wait()
		doc, err := os.ReadFile("doc.go")
		if err != nil {
			t.Fatal(err)
		}
		documented := regexp.MustCompile(`(?m)^//\t(holdfast\.\S+) +(Histogram|UpDownCounter|Counter|Gauge) +(\S+) .*?(error\.type|holdfast\.cause)?$`).
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
			case metricdata.Gauge[float64]:
				kind = "Gauge"
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

// Without a provider, the global one is used. The zero value has no instruments.
func TestGlobalProvider(t *testing.T) {
	if new(holdfastotel.Metrics).OnEvent() != nil {
		t.Error("the zero value has an OnEvent function")
	}
	reader := metric.NewManualReader()
	otel.SetMeterProvider(metric.NewMeterProvider(metric.WithReader(reader)))
	if _, err := holdfastotel.New(nil, nil); err != nil {
		t.Fatal(err)
	}
	w := &world{reader: reader}
	w.shows(t, `holdfast.lock.count{} 0`)
}
