package holdfastprom_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/common/expfmt"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/metricstest"
	holdfastprom "github.com/holdfast-go/holdfast/metrics/prometheus"
)

// world is a store, and a client of it with metrics.
type world struct {
	*metricstest.World

	metrics *holdfastprom.Collector
}

func newWorld(t testing.TB, o *holdfastprom.Options) *world {
	t.Helper()
	metrics, err := holdfastprom.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return &world{metricstest.New(t, metrics.OnEvent()), metrics}
}

// shows fails the test unless the metrics with these names are as told, buckets and
// help left out.
func shows(t testing.TB, c prometheus.Collector, want string) {
	t.Helper()
	var lines []string
	for line := range strings.SplitSeq(exposition(t, c), "\n") {
		if line != "" && !strings.HasPrefix(line, "#") && !strings.Contains(line, "_bucket{") {
			lines = append(lines, line)
		}
	}
	for line := range strings.SplitSeq(strings.TrimSpace(want), "\n") {
		line = strings.TrimSpace(line)
		if name, _, _ := strings.Cut(line, " "); !slices.Contains(lines, line) {
			var near []string
			for _, got := range lines {
				if metric, _, _ := strings.Cut(name, "{"); strings.HasPrefix(got, metric) {
					near = append(near, got)
				}
			}
			t.Errorf("no %s\nthere are:\n\t%s", line, strings.Join(near, "\n\t"))
		}
	}
}

// exposition is what a scrape would get.
func exposition(t testing.TB, c prometheus.Collector) string {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(c)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, family := range families {
		if _, err := expfmt.MetricFamilyToText(&text, family); err != nil {
			t.Fatal(err)
		}
	}
	return text.String()
}

func TestMetrics(t *testing.T) {
	const labels = `client="a",engine="memory"`
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, &holdfastprom.Options{Engine: "memory", Client: "a"})
		w.Story(t, func(step string) {
			want, ok := map[string]string{
				"nothing has happened": `
					holdfast_waiting{LABELS} 0
					holdfast_oldest_wait_seconds{LABELS} 0
					holdfast_oldest_hold_seconds{LABELS} 0
					holdfast_held_locks{LABELS} 0
					holdfast_lost_total{cause="session_expired",LABELS} 0
					holdfast_ttl_expired_total{LABELS} 0
					holdfast_asked_total{LABELS} 0
					holdfast_observed_keys{LABELS} 0
					holdfast_observed_changes_total{LABELS} 0
					holdfast_acquire_duration_seconds_count{LABELS,result="held"} 0
					holdfast_connected{LABELS} 1`,
				"two wait": `
					holdfast_waiting{LABELS} 2
					holdfast_queue_length_count{LABELS} 2
					holdfast_queue_length_sum{LABELS} 3`,
				"one holds, one waits": `
					holdfast_waiting{LABELS} 1
					holdfast_oldest_wait_seconds{LABELS} 2
					holdfast_held_locks{LABELS} 1`,
				"both have released": `
					holdfast_waiting{LABELS} 0
					holdfast_oldest_wait_seconds{LABELS} 0
					holdfast_oldest_hold_seconds{LABELS} 0
					holdfast_held_locks{LABELS} 0
					holdfast_held_seconds_count{LABELS} 2
					holdfast_held_seconds_sum{LABELS} 2
					holdfast_acquire_duration_seconds_count{LABELS,result="granted"} 2
					holdfast_acquire_duration_seconds_sum{LABELS,result="granted"} 5`,
				"refused, expired, broken, lost": `
					holdfast_acquire_duration_seconds_count{LABELS,result="held"} 2
					holdfast_acquire_duration_seconds_sum{LABELS,result="held"} 1
					holdfast_acquire_duration_seconds_count{LABELS,result="canceled"} 1
					holdfast_acquire_duration_seconds_sum{LABELS,result="canceled"} 2
					holdfast_acquire_duration_seconds_count{LABELS,result="granted"} 6
					holdfast_waiting{LABELS} 0
					holdfast_held_locks{LABELS} 0
					holdfast_lost_total{cause="broken",LABELS} 1
					holdfast_lost_total{cause="session_expired",LABELS} 2
					holdfast_lost_total{cause="lease_expired",LABELS} 0
					holdfast_ttl_expired_total{LABELS} 1
					holdfast_asked_total{LABELS} 1
					holdfast_observed_keys{LABELS} 1
					holdfast_observed_changes_total{LABELS} 2
					holdfast_held_seconds_count{LABELS} 6
					holdfast_connected{LABELS} 0`,
			}[step]
			if !ok {
				t.Errorf("%s: there is no such step", step)
			}
			shows(t, w.metrics, strings.ReplaceAll(want, "LABELS", labels))
		})
	})
}

func TestHeartbeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		if n := testutil.CollectAndCount(w.metrics, "holdfast_heartbeat_duration_seconds"); n != 0 {
			t.Errorf("%d series of heartbeats before the first", n)
		}
		w.Heartbeats()
		shows(t, w.metrics, `
			holdfast_heartbeat_duration_seconds_count{client="",engine="",result="ok"} 2
			holdfast_heartbeat_duration_seconds_sum{client="",engine="",result="ok"} 2
			holdfast_heartbeat_duration_seconds_count{client="",engine="",result="disconnected"} 1`)
	})
}

func TestTerms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		metricstest.Lead(t, w.Client, "k", time.Second, func() { shows(t, w.metrics, `holdfast_leading{client="",engine=""} 1`) })
		synctest.Wait()
		shows(t, w.metrics, `
			holdfast_leading{client="",engine=""} 0
			holdfast_term_duration_seconds_count{client="",engine="",result="withdrawn"} 1
			holdfast_term_duration_seconds_sum{client="",engine="",result="withdrawn"} 1
			holdfast_term_duration_seconds_count{client="",engine="",result="failed"} 0`)
	})
}

// Names, units and help are as Prometheus would have them, and everything that is
// collected is what was described.
func TestConventions(t *testing.T) {
	w := newWorld(t, nil)
	w.Host.Heartbeat("k", w.Host.Now(), nil)
	metricstest.Release(t, metricstest.Acquire(t, w.Client, "k"))
	if err := w.Client.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	problems, err := testutil.CollectAndLint(w.metrics)
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range problems {
		t.Errorf("%s: %s", problem.Metric, problem.Text)
	}
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(w.metrics)
	if _, err := registry.Gather(); err != nil {
		t.Error(err)
	}
}

// Several clients in one process are told apart by their labels, or summed up in
// one Collector.
func TestSeveralClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		registry := prometheus.NewPedanticRegistry()
		var worlds []*world
		for _, o := range []holdfastprom.Options{
			{Engine: "memory", Client: "a"}, {Engine: "memory", Client: "b"}, {Engine: "zookeeper", Client: "a"},
		} {
			w := newWorld(t, &o)
			if err := registry.Register(w.metrics); err != nil {
				t.Fatal(err)
			}
			worlds = append(worlds, w)
			again, err := holdfastprom.New(&o)
			if err != nil {
				t.Fatal(err)
			}
			if err := registry.Register(again); err == nil {
				t.Errorf("two with the labels %+v share a registry", o)
			}
		}
		metricstest.Release(t, metricstest.Acquire(t, worlds[1].Client, "k"))
		synctest.Wait()
		for i, w := range worlds {
			want := [...]string{`client="a",engine="memory"} 0`, `client="b",engine="memory"} 1`, `client="a",engine="zookeeper"} 0`}[i]
			shows(t, w.metrics, "holdfast_held_seconds_count{"+want)
		}

		sum := worlds[0]
		second := sum.Open(t, sum.metrics.OnEvent())
		metricstest.Acquire(t, sum.Client, "one")
		metricstest.Acquire(t, second, "two")
		synctest.Wait()
		shows(t, sum.metrics, `
			holdfast_held_locks{client="a",engine="memory"} 2
			holdfast_connected{client="a",engine="memory"} 2`)
		sum.Store.Cut(second)
		synctest.Wait()
		shows(t, sum.metrics, `holdfast_connected{client="a",engine="memory"} 1`)
		sum.Store.Heal(second)
		if _, err := registry.Gather(); err != nil {
			t.Error(err)
		}
	})
}

// However many keys there are, the number of series stays what it is.
func TestKeysAreNoLabels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		count := func() int {
			synctest.Wait()
			return testutil.CollectAndCount(w.metrics)
		}
		metricstest.Release(t, metricstest.Acquire(t, w.Client, "first"))
		before := count()
		for i := range 100 {
			metricstest.Release(t, metricstest.Acquire(t, w.Client, fmt.Sprintf("orders/%d", i)))
		}
		if after := count(); after != before {
			t.Errorf("100 keys have made %d series of %d", after, before)
		}
	})
}

// A label for the kind of key, if that is wanted.
func TestKeyLabel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, &holdfastprom.Options{KeyLabel: func(key string) string {
			kind, _, _ := strings.Cut(key, "/")
			if kind == "broken" {
				return "\xff"
			}
			return kind
		}})
		for _, key := range []string{"orders/1", "orders/2", "reports/1", "broken"} {
			metricstest.Acquire(t, w.Client, key)
		}
		any, err := w.Client.AcquireAny(t.Context(), []string{"orders/1", "orders/3"}, holdfast.WithWait(time.Second))
		if err != nil {
			t.Fatal(err)
		}
		metricstest.Release(t, any)
		metricstest.Release(t, metricstest.Acquire(t, w.Client, "reports/2", holdfast.WithTTL(time.Hour)))
		time.Sleep(time.Second)
		metricstest.Acquire(t, w.Client, "orders/4")
		go func() { _, _ = w.Client.Acquire(t.Context(), "orders/4") }()
		time.Sleep(time.Second)
		synctest.Wait()
		shows(t, w.metrics, `
			holdfast_oldest_hold_seconds{client="",engine="",key="orders"} 2
			holdfast_oldest_wait_seconds{client="",engine="",key="orders"} 1
			holdfast_oldest_wait_seconds{client="",engine="",key=""} 0
			holdfast_held_locks{client="",engine="",key="orders"} 3
			holdfast_held_locks{client="",engine="",key="reports"} 1
			holdfast_held_locks{client="",engine="",key="`+"\uFFFD"+`"} 1
			holdfast_waiting{client="",engine="",key=""} 0
			holdfast_waiting{client="",engine="",key="orders"} 1
			holdfast_held_seconds_count{client="",engine="",key="orders"} 1
			holdfast_acquire_duration_seconds_count{client="",engine="",key="orders",result="granted"} 4`)
	})
}

// Options that make no sense are refused, with the field that they are in. A collector without options has no metrics.
func TestBadOptions(t *testing.T) {
	for field, o := range map[string]holdfastprom.Options{
		"Options.Engine":           {Engine: "\xff"},
		"Options.Client":           {Client: "\xff"},
		"Options.AcquireBuckets":   {AcquireBuckets: []float64{1, 1}},
		"Options.HeldBuckets":      {HeldBuckets: []float64{2, 1}},
		"Options.HeartbeatBuckets": {HeartbeatBuckets: []float64{1, 0}},
		"Options.QueueBuckets":     {QueueBuckets: []float64{1, 2, 2}},
	} {
		var invalid *holdfast.InvalidError
		if _, err := holdfastprom.New(&o); !errors.As(err, &invalid) || invalid.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
	if _, err := holdfastprom.New(&holdfastprom.Options{HeldBuckets: []float64{1}}); err != nil {
		t.Error(err)
	}
	if zero := new(holdfastprom.Collector); testutil.CollectAndCount(zero) != 0 || zero.OnEvent() != nil {
		t.Error("the zero value has metrics")
	}
}
