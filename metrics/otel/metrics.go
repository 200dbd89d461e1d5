package holdfastotel

import (
	"context"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/oldest"
	"github.com/holdfast-go/holdfast/internal/outcome"
)

// scope is the name of the instrumentation.
const scope = "github.com/holdfast-go/holdfast/metrics/otel"

// The names of attributes.
const (
	engineKey = attribute.Key("holdfast.engine")
	clientKey = attribute.Key("holdfast.client")
	lockKey   = attribute.Key("holdfast.key")
	causeKey  = attribute.Key("holdfast.cause")
	errorKey  = attribute.Key("error.type")
)

// lossCauses are the known values of holdfast.cause. Their series start at 0, so that the
// first loss is an increase.
var lossCauses = []string{"session_expired", "lease_expired", "broken", "reclaimed", "taken_over", "clock_jump"}

// Options configure [Metrics]. The zero value, like nil, has the defaults.
type Options struct {
	// Engine and Client are the values of holdfast.engine and holdfast.client, for
	// programs with several clients. Default "": no such attribute.
	Engine, Client string

	// KeyAttribute, if set, gives metrics about locks the attribute holdfast.key: it
	// returns the value for a lock's key. It should have few values, such as the kind of
	// the locked thing without its number. For an AcquireAny that has not been granted the
	// key is "". It is called for one key at a time, if the Metrics serve one client.
	// Default: no such attribute.
	KeyAttribute func(key string) string
}

// Metrics are the instruments of one client, or the sums of several. They are safe for
// use by any goroutine.
type Metrics struct {
	common       []attribute.KeyValue
	keyAttribute func(key string) string

	acquire    metric.Float64Histogram
	pending    metric.Int64UpDownCounter
	queue      metric.Int64Histogram
	locks      metric.Int64UpDownCounter
	held       metric.Float64Histogram
	lost       metric.Int64Counter
	ttlExpired metric.Int64Counter
	asked      metric.Int64Counter
	keys       metric.Int64UpDownCounter
	sights     metric.Int64Counter
	leading    metric.Int64UpDownCounter
	term       metric.Float64Histogram
	heartbeat  metric.Float64Histogram
	connected  metric.Int64UpDownCounter

	waits, holds oldest.Spans[attribute.Set]
}

// New creates the instruments. A nil provider means the global one; options may be nil.
// Errors are those of the provider.
func New(provider metric.MeterProvider, options *Options) (*Metrics, error) {
	var o Options
	if options != nil {
		o = *options
	}
	if provider == nil {
		provider = otel.GetMeterProvider()
	}
	m := &Metrics{keyAttribute: o.KeyAttribute}
	for key, value := range map[attribute.Key]string{engineKey: o.Engine, clientKey: o.Client} {
		if value != "" {
			m.common = append(m.common, key.String(valid(value)))
		}
	}
	if err := m.instruments(provider.Meter(scope)); err != nil {
		return nil, err
	}
	if o.KeyAttribute == nil {
		m.begin()
	}
	return m, nil
}

func (m *Metrics) instruments(meter metric.Meter) (err error) {
	try := func(e error) {
		if err == nil {
			err = e
		}
	}
	var e error
	m.acquire, e = meter.Float64Histogram("holdfast.acquire.duration", metric.WithUnit("s"),
		metric.WithDescription("Duration of acquisitions, from the call to the lock or the error."),
		metric.WithExplicitBucketBoundaries(.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300))
	try(e)
	m.pending, e = meter.Int64UpDownCounter("holdfast.acquire.pending_requests", metric.WithUnit("{request}"),
		metric.WithDescription("Acquisitions under way that wait for holders."))
	try(e)
	m.queue, e = meter.Int64Histogram("holdfast.queue.length", metric.WithUnit("{request}"),
		metric.WithDescription("How many were ahead of a waiter, the holder included, when it learned its place."),
		metric.WithExplicitBucketBoundaries(1, 2, 5, 10, 20, 50, 100, 200, 500, 1000))
	try(e)
	m.locks, e = meter.Int64UpDownCounter("holdfast.lock.count", metric.WithUnit("{lock}"),
		metric.WithDescription("Locks held."))
	try(e)
	m.held, e = meter.Float64Histogram("holdfast.lock.held_duration", metric.WithUnit("s"),
		metric.WithDescription("How long locks were held, from the grant to whatever ended them."),
		metric.WithExplicitBucketBoundaries(.001, .01, .1, .5, 1, 5, 15, 60, 300, 900, 3600, 6*3600, 24*3600))
	try(e)
	m.lost, e = meter.Int64Counter("holdfast.lock.lost", metric.WithUnit("{lock}"),
		metric.WithDescription("Locks lost while they were held, by cause."))
	try(e)
	m.ttlExpired, e = meter.Int64Counter("holdfast.lock.ttl_expired", metric.WithUnit("{lock}"),
		metric.WithDescription("Locks that reached the TTL that their holder had set."))
	try(e)
	m.leading, e = meter.Int64UpDownCounter("holdfast.term.count", metric.WithUnit("{term}"),
		metric.WithDescription("Terms of elections under way."))
	try(e)
	m.term, e = meter.Float64Histogram("holdfast.term.duration", metric.WithUnit("s"),
		metric.WithDescription("Duration of terms of elections, from the call of lead to its return."),
		metric.WithExplicitBucketBoundaries(.001, .01, .1, .5, 1, 5, 15, 60, 300, 900, 3600, 6*3600, 24*3600))
	try(e)
	m.asked, e = meter.Int64Counter("holdfast.lock.asked", metric.WithUnit("{lock}"),
		metric.WithDescription("Locks that somebody has asked for while they were held."))
	try(e)
	m.keys, e = meter.Int64UpDownCounter("holdfast.observed.count", metric.WithUnit("{key}"),
		metric.WithDescription("Keys that are observed."))
	try(e)
	m.sights, e = meter.Int64Counter("holdfast.observed.changes", metric.WithUnit("{change}"),
		metric.WithDescription("States of keys that observers were told of."))
	try(e)
	m.heartbeat, e = meter.Float64Histogram("holdfast.heartbeat.duration", metric.WithUnit("s"),
		metric.WithDescription("Duration of the requests that keep leases alive."),
		metric.WithExplicitBucketBoundaries(.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10))
	try(e)
	m.connected, e = meter.Int64UpDownCounter("holdfast.connection.count", metric.WithUnit("{connection}"),
		metric.WithDescription("Clients whose engine can be reached."))
	try(e)
	_, e = meter.Float64ObservableGauge("holdfast.acquire.oldest_wait", metric.WithUnit("s"),
		metric.WithDescription("How long the oldest acquisition under way has waited for holders, or 0."),
		metric.WithFloat64Callback(ages(&m.waits)))
	try(e)
	_, e = meter.Float64ObservableGauge("holdfast.lock.oldest_hold", metric.WithUnit("s"),
		metric.WithDescription("How long the oldest lock has been held, or 0."),
		metric.WithFloat64Callback(ages(&m.holds)))
	try(e)
	return err
}

// ages observes the age of the oldest span of each series.
func ages(spans *oldest.Spans[attribute.Set]) metric.Float64Callback {
	return func(_ context.Context, o metric.Float64Observer) error {
		spans.Each(func(set attribute.Set, age time.Duration) { o.Observe(age.Seconds(), metric.WithAttributeSet(set)) })
		return nil
	}
}

// begin creates the series that are known in advance.
func (m *Metrics) begin() {
	ctx := context.Background()
	m.waits.Note(m.set(), nil, time.Time{})
	m.holds.Note(m.set(), nil, time.Time{})
	for _, cause := range lossCauses {
		m.lost.Add(ctx, 0, m.with(causeKey.String(cause)))
	}
	m.ttlExpired.Add(ctx, 0, m.with())
	m.asked.Add(ctx, 0, m.with())
	m.keys.Add(ctx, 0, m.with())
	m.sights.Add(ctx, 0, m.with())
	m.locks.Add(ctx, 0, m.with())
	m.leading.Add(ctx, 0, m.with())
	m.pending.Add(ctx, 0, m.with())
	m.connected.Add(ctx, 0, m.with())
}

// set returns the attributes of all metrics, and more.
func (m *Metrics) set(more ...attribute.KeyValue) attribute.Set {
	all := append(make([]attribute.KeyValue, 0, len(m.common)+len(more)), m.common...)
	return attribute.NewSet(append(all, more...)...)
}

func (m *Metrics) with(more ...attribute.KeyValue) metric.MeasurementOption {
	return metric.WithAttributeSet(m.set(more...))
}

// setOf returns the same for metrics about a lock.
func (m *Metrics) setOf(key string, more ...attribute.KeyValue) attribute.Set {
	if m.keyAttribute != nil {
		more = append(more, lockKey.String(valid(m.keyAttribute(key))))
	}
	return m.set(more...)
}

// valid is a text that exporters accept.
func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// OnEvent returns the OnEvent function for a client. Call it once for each client; if several share Metrics, the metrics
// are their sums. For the zero value it returns nil.
func (m *Metrics) OnEvent() func(holdfast.Event) {
	if m.acquire == nil {
		return nil
	}
	w := &watcher{Metrics: m, waiters: make(map[uint64]attribute.Set)}
	return w.event
}

// A watcher turns the events of one client into metrics.
type watcher struct {
	*Metrics

	mu      sync.Mutex // for callers other than a client
	waiters map[uint64]attribute.Set
	ready   bool
}

func (w *watcher) event(e holdfast.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	ctx, of := context.Background(), func(more ...attribute.KeyValue) metric.MeasurementOption {
		return metric.WithAttributeSet(w.setOf(e.Key, more...))
	}
	switch e.Kind {
	case holdfast.Started:
		w.started(e)
	case holdfast.Queued:
		w.queue.Record(ctx, int64(e.Ahead), of())
	case holdfast.Granted, holdfast.Failed:
		w.over(e)
	case holdfast.Asked:
		w.asked.Add(ctx, 1, of())
	case holdfast.Released, holdfast.TTLExpired, holdfast.Lost:
		w.ended(e)
	case holdfast.TermBegan:
		w.leading.Add(ctx, 1, of())
	case holdfast.TermEnded:
		w.leading.Add(ctx, -1, of())
		w.term.Record(ctx, e.Took.Seconds(), of(causeKey.String(outcome.Of(e))))
	case holdfast.ObserveBegan:
		w.keys.Add(ctx, 1, of())
	case holdfast.ObserveEnded:
		w.keys.Add(ctx, -1, of())
	case holdfast.Observed:
		w.sights.Add(ctx, 1, of())
	case holdfast.Heartbeat:
		w.heartbeat.Record(ctx, e.Took.Seconds(), w.with(failure(e)...))
	case holdfast.Ready, holdfast.Disconnected:
		w.connection(e.Kind == holdfast.Ready)
	}
}

// failure is the attribute of a failure.
func failure(e holdfast.Event) []attribute.KeyValue {
	if e.Err == nil {
		return nil
	}
	return []attribute.KeyValue{errorKey.String(outcome.Of(e))}
}

func (w *watcher) started(e holdfast.Event) {
	if !e.Wait {
		return
	}
	// Its end has the same attributes: AcquireAny has no key before it is granted.
	set := w.setOf(e.Key)
	w.pending.Add(context.Background(), 1, metric.WithAttributeSet(set))
	w.waits.Note(set, w.span(e), e.Time)
	w.waiters[e.ID] = set
}

// span is the ID of a wait or a hold among those of all clients.
func (w *watcher) span(e holdfast.Event) any { return [2]any{w, e.ID} }

func (w *watcher) over(e holdfast.Event) {
	ctx := context.Background()
	if set, ok := w.waiters[e.ID]; ok {
		w.pending.Add(ctx, -1, metric.WithAttributeSet(set))
		w.waits.Note(set, w.span(e), time.Time{})
		delete(w.waiters, e.ID)
	}
	w.acquire.Record(ctx, e.Took.Seconds(), metric.WithAttributeSet(w.setOf(e.Key, failure(e)...)))
	if e.Kind == holdfast.Granted {
		set := w.setOf(e.Key)
		w.locks.Add(ctx, 1, metric.WithAttributeSet(set))
		w.holds.Note(set, w.span(e), e.Time)
	}
}

func (w *watcher) ended(e holdfast.Event) {
	ctx, set := context.Background(), w.setOf(e.Key)
	of := metric.WithAttributeSet(set)
	w.locks.Add(ctx, -1, of)
	w.holds.Note(set, w.span(e), time.Time{})
	w.held.Record(ctx, e.Took.Seconds(), of)
	switch e.Kind {
	case holdfast.TTLExpired:
		w.ttlExpired.Add(ctx, 1, of)
	case holdfast.Lost:
		w.lost.Add(ctx, 1, metric.WithAttributeSet(w.setOf(e.Key, causeKey.String(outcome.Of(e)))))
	}
}

func (w *watcher) connection(ready bool) {
	if ready == w.ready {
		return
	}
	w.ready = ready
	change := int64(-1)
	if ready {
		change = 1
	}
	w.connected.Add(context.Background(), change, w.with())
}
