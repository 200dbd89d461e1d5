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

func (m *Metrics) of(key string, more ...attribute.KeyValue) metric.MeasurementOption {
	return metric.WithAttributeSet(m.setOf(key, more...))
}

// failure is the attribute of a failure.
func failure(err error, result string) []attribute.KeyValue {
	if err == nil {
		return nil
	}
	return []attribute.KeyValue{errorKey.String(result)}
}

// valid is a text that exporters accept.
func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// Hooks returns the hooks for a client. Call it once for each client; if several share
// Metrics, the metrics are their sums.
func (m *Metrics) Hooks() holdfast.Hooks {
	w := &watcher{Metrics: m, waiters: make(map[uint64]attribute.Set)}
	return holdfast.Hooks{
		Started:    w.started,
		Queued:     w.queued,
		Granted:    w.granted,
		Failed:     w.over,
		Asked:      w.wish,
		Ended:      w.ended,
		TermBegan:  w.termBegan,
		TermEnded:  w.termEnded,
		Observing:  w.observing,
		Observed:   w.observed,
		Heartbeat:  w.beat,
		Connection: w.connection,
	}
}

// A watcher turns the events of one client into metrics. Hook calls have no ctx of their
// own.
type watcher struct {
	*Metrics

	mu      sync.Mutex // for callers other than a client
	waiters map[uint64]attribute.Set
	ready   bool
}

func (w *watcher) started(a holdfast.Acquisition) {
	if !a.Wait {
		return
	}
	// Its end has the same attributes: AcquireAny has no key before it is granted.
	set := w.setOf(a.Key)
	w.pending.Add(context.Background(), 1, metric.WithAttributeSet(set))
	w.waits.Note(set, w.span(a.ID), a.Time)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiters[a.ID] = set
}

// span is the ID of a wait or a hold among those of all clients.
func (w *watcher) span(acquisition uint64) any { return [2]any{w, acquisition} }

func (w *watcher) queued(p holdfast.Place) {
	w.queue.Record(context.Background(), int64(p.Ahead), w.of(p.Key))
}

func (w *watcher) granted(a holdfast.Acquisition) {
	w.over(a)
	w.locks.Add(context.Background(), 1, w.of(a.Key))
	w.holds.Note(w.setOf(a.Key), w.span(a.ID), a.Time)
}

func (w *watcher) over(a holdfast.Acquisition) {
	w.mu.Lock()
	if set, ok := w.waiters[a.ID]; ok {
		w.pending.Add(context.Background(), -1, metric.WithAttributeSet(set))
		w.waits.Note(set, w.span(a.ID), time.Time{})
		delete(w.waiters, a.ID)
	}
	w.mu.Unlock()
	w.acquire.Record(context.Background(), a.Took.Seconds(), w.of(a.Key, failure(a.Err, a.Result())...))
}

func (w *watcher) wish(about holdfast.Wish) {
	w.asked.Add(context.Background(), 1, w.of(about.Key))
}

func (w *watcher) ended(e holdfast.Ending) {
	ctx := context.Background()
	w.locks.Add(ctx, -1, w.of(e.Key))
	w.holds.Note(w.setOf(e.Key), w.span(e.ID), time.Time{})
	w.held.Record(ctx, e.Held.Seconds(), w.of(e.Key))
	switch result := e.Result(); result {
	case "released":
	case "ttl_expired":
		w.ttlExpired.Add(ctx, 1, w.of(e.Key))
	default:
		w.lost.Add(ctx, 1, w.of(e.Key, causeKey.String(result)))
	}
}

func (w *watcher) termBegan(t holdfast.Term) {
	w.leading.Add(context.Background(), 1, w.of(t.Key))
}

func (w *watcher) termEnded(t holdfast.Term) {
	ctx := context.Background()
	w.leading.Add(ctx, -1, w.of(t.Key))
	w.term.Record(ctx, t.Led.Seconds(), w.of(t.Key, causeKey.String(t.Result())))
}

func (w *watcher) observing(o holdfast.Observing) {
	change := int64(-1)
	if o.On {
		change = 1
	}
	w.keys.Add(context.Background(), change, w.of(o.Key))
}

func (w *watcher) observed(s holdfast.Sight) {
	w.sights.Add(context.Background(), 1, w.of(s.Key))
}

func (w *watcher) beat(h holdfast.Heartbeat) {
	w.heartbeat.Record(context.Background(), h.Took.Seconds(), w.with(failure(h.Err, h.Result())...))
}

func (w *watcher) connection(c holdfast.Connection) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case c.Ready && !w.ready:
		w.connected.Add(context.Background(), 1, w.with())
	case !c.Ready && w.ready:
		w.connected.Add(context.Background(), -1, w.with())
	}
	w.ready = c.Ready
}
