package holdfastprom_test

import (
	"context"
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
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/memlock"
	holdfastprom "github.com/holdfast-go/holdfast/metrics/prometheus"
)

const lease = 10 * time.Second

// world is a store, and a client of it with metrics.
type world struct {
	store   *memlock.Store
	client  *memlock.Client
	host    driver.Host
	metrics *holdfastprom.Collector
}

func newWorld(t testing.TB, o *holdfastprom.Options) *world {
	t.Helper()
	metrics, err := holdfastprom.New(o)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{store: memlock.NewStore(), metrics: metrics}
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

// What has happened in a client, known to the second, is what its metrics say.
func TestMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, &holdfastprom.Options{Engine: "memory", Client: "a"})
		other := w.open(t, holdfast.Hooks{})
		shows(t, w.metrics, `
			holdfast_waiting{client="a",engine="memory"} 0
			holdfast_held_locks{client="a",engine="memory"} 0
			holdfast_lost_total{cause="session_expired",client="a",engine="memory"} 0
			holdfast_ttl_expired_total{client="a",engine="memory"} 0
			holdfast_acquire_duration_seconds_count{client="a",engine="memory",result="held"} 0`)

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
		shows(t, w.metrics, `
			holdfast_waiting{client="a",engine="memory"} 2
			holdfast_queue_length_count{client="a",engine="memory"} 2
			holdfast_queue_length_sum{client="a",engine="memory"} 3
			holdfast_connected{client="a",engine="memory"} 1`)
		time.Sleep(2 * time.Second)
		release(t, held)
		synctest.Wait()
		shows(t, w.metrics, `
			holdfast_waiting{client="a",engine="memory"} 1
			holdfast_held_locks{client="a",engine="memory"} 1`)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		shows(t, w.metrics, `
			holdfast_waiting{client="a",engine="memory"} 0
			holdfast_held_locks{client="a",engine="memory"} 0
			holdfast_held_seconds_count{client="a",engine="memory"} 2
			holdfast_held_seconds_sum{client="a",engine="memory"} 2
			holdfast_acquire_duration_seconds_count{client="a",engine="memory",result="granted"} 2
			holdfast_acquire_duration_seconds_sum{client="a",engine="memory",result="granted"} 5`)

		// Refused, given up after a second, canceled after a second more.
		acquire(t, other, "k")
		if _, err := w.client.TryAcquire(t.Context(), "k"); !errors.Is(err, holdfast.ErrHeld) {
			t.Error(err)
		}
		if _, err := w.client.Acquire(t.Context(), "k", holdfast.WithWait(time.Second)); !errors.Is(err, holdfast.ErrHeld) {
			t.Error(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(2*time.Second, cancel)
		if _, err := w.client.Acquire(ctx, "k"); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		// One reaches its TTL of a second, one is broken, two are lost with the session.
		acquire(t, w.client, "ttl", holdfast.WithTTL(time.Second))
		broken := acquire(t, w.client, "broken")
		info, err := other.Inspect(t.Context(), "broken")
		if err == nil {
			err = other.Break(t.Context(), info)
		}
		if err != nil {
			t.Fatal(err)
		}
		<-broken.Done()
		acquire(t, w.client, "one")
		two := acquire(t, w.client, "two")
		w.store.Cut(w.client)
		<-two.Done()
		synctest.Wait()
		shows(t, w.metrics, `
			holdfast_acquire_duration_seconds_count{client="a",engine="memory",result="held"} 2
			holdfast_acquire_duration_seconds_sum{client="a",engine="memory",result="held"} 1
			holdfast_acquire_duration_seconds_count{client="a",engine="memory",result="canceled"} 1
			holdfast_acquire_duration_seconds_sum{client="a",engine="memory",result="canceled"} 2
			holdfast_acquire_duration_seconds_count{client="a",engine="memory",result="granted"} 6
			holdfast_waiting{client="a",engine="memory"} 0
			holdfast_held_locks{client="a",engine="memory"} 0
			holdfast_lost_total{cause="broken",client="a",engine="memory"} 1
			holdfast_lost_total{cause="session_expired",client="a",engine="memory"} 2
			holdfast_lost_total{cause="lease_expired",client="a",engine="memory"} 0
			holdfast_ttl_expired_total{client="a",engine="memory"} 1
			holdfast_held_seconds_count{client="a",engine="memory"} 6
			holdfast_connected{client="a",engine="memory"} 0`)
	})
}

// Heartbeats, of which memlock has none of its own.
func TestHeartbeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		if n := testutil.CollectAndCount(w.metrics, "holdfast_heartbeat_duration_seconds"); n != 0 {
			t.Errorf("%d series of heartbeats before the first", n)
		}
		for _, err := range []error{nil, nil, holdfast.ErrDisconnected} {
			sent := w.host.Now()
			time.Sleep(time.Second)
			w.host.Heartbeat("k", sent, err)
		}
		synctest.Wait()
		shows(t, w.metrics, `
			holdfast_heartbeat_duration_seconds_count{client="",engine="",result="ok"} 2
			holdfast_heartbeat_duration_seconds_sum{client="",engine="",result="ok"} 2
			holdfast_heartbeat_duration_seconds_count{client="",engine="",result="disconnected"} 1`)
	})
}

// Names, units and help are as Prometheus would have them, and everything that is
// collected is what was described.
func TestConventions(t *testing.T) {
	w := newWorld(t, nil)
	w.host.Heartbeat("k", w.host.Now(), nil)
	release(t, acquire(t, w.client, "k"))
	if err := w.client.Close(t.Context()); err != nil {
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
		release(t, acquire(t, worlds[1].client, "k"))
		synctest.Wait()
		for i, w := range worlds {
			want := [...]string{`client="a",engine="memory"} 0`, `client="b",engine="memory"} 1`, `client="a",engine="zookeeper"} 0`}[i]
			shows(t, w.metrics, "holdfast_held_seconds_count{"+want)
		}

		sum := worlds[0]
		second := sum.open(t, sum.metrics.Hooks())
		acquire(t, sum.client, "one")
		acquire(t, second, "two")
		synctest.Wait()
		shows(t, sum.metrics, `
			holdfast_held_locks{client="a",engine="memory"} 2
			holdfast_connected{client="a",engine="memory"} 2`)
		sum.store.Cut(second)
		synctest.Wait()
		shows(t, sum.metrics, `holdfast_connected{client="a",engine="memory"} 1`)
		sum.store.Heal(second)
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
		release(t, acquire(t, w.client, "first"))
		before := count()
		for i := range 100 {
			release(t, acquire(t, w.client, fmt.Sprintf("orders/%d", i)))
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
			acquire(t, w.client, key)
		}
		any, err := w.client.AcquireAny(t.Context(), []string{"orders/1", "orders/3"}, holdfast.WithWait(time.Second))
		if err != nil {
			t.Fatal(err)
		}
		release(t, any)
		release(t, acquire(t, w.client, "reports/2", holdfast.WithTTL(time.Hour)))
		synctest.Wait()
		shows(t, w.metrics, `
			holdfast_held_locks{client="",engine="",key="orders"} 2
			holdfast_held_locks{client="",engine="",key="reports"} 1
			holdfast_held_locks{client="",engine="",key="`+"\uFFFD"+`"} 1
			holdfast_waiting{client="",engine="",key=""} 0
			holdfast_waiting{client="",engine="",key="orders"} 0
			holdfast_held_seconds_count{client="",engine="",key="orders"} 1
			holdfast_acquire_duration_seconds_count{client="",engine="",key="orders",result="granted"} 3`)
	})
}

// Options that make no sense are refused, with the field that they are in.
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
}
