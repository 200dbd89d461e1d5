package holdfastprom

import (
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/oldest"
	"github.com/holdfast-go/holdfast/internal/outcome"
)

// The values of the labels result and cause, except those for unexpected errors. Their
// series start at 0, because PromQL sees no increase from nothing to 1.
var (
	lossCauses = []string{"session_expired", "lease_expired", "broken", "reclaimed", "taken_over", "clock_jump"}
	results    = []string{"granted", "held", "disconnected", "canceled"}
	terms      = []string{"stepped_down", "failed"}
)

// A Collector has the metrics of one client, or the sums of several. Register it
// with a [prometheus.Registerer], and give its OnEvent to the client. It is safe for
// use by any goroutine.
type Collector struct {
	keyLabel func(key string) string

	acquire    *prometheus.HistogramVec
	waiting    *prometheus.GaugeVec
	oldestWait *prometheus.GaugeVec
	waits      oldest.Spans[prometheus.Gauge]
	queue      *prometheus.HistogramVec
	heldLocks  *prometheus.GaugeVec
	oldestHold *prometheus.GaugeVec
	holds      oldest.Spans[prometheus.Gauge]
	held       *prometheus.HistogramVec
	lost       *prometheus.CounterVec
	ttlExpired *prometheus.CounterVec
	asked      *prometheus.CounterVec
	keys       *prometheus.GaugeVec
	sights     *prometheus.CounterVec
	leading    *prometheus.GaugeVec
	term       *prometheus.HistogramVec
	heartbeat  *prometheus.HistogramVec
	connected  prometheus.Gauge
}

var _ prometheus.Collector = (*Collector)(nil)

// New creates a Collector; options may be nil. It returns holdfast.ErrInvalid if an
// option is out of bounds.
func New(options *Options) (*Collector, error) {
	o, err := options.resolve()
	if err != nil {
		return nil, err
	}
	constant := prometheus.Labels{"engine": o.Engine, "client": o.Client}
	labels := func(names ...string) []string {
		if o.KeyLabel != nil {
			names = append(names, "key")
		}
		return names
	}
	histogram := func(name, help string, buckets []float64, labels []string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: name, Help: help, ConstLabels: constant, Buckets: buckets,
		}, labels)
	}
	gauge := prometheus.GaugeOpts{ConstLabels: constant}
	counter := prometheus.CounterOpts{ConstLabels: constant}
	c := &Collector{
		keyLabel: o.KeyLabel,
		acquire: histogram("holdfast_acquire_duration_seconds",
			"How long acquisitions took, from the call to the lock or the error.", o.AcquireBuckets, labels("result")),
		queue: histogram("holdfast_queue_length",
			"How many were ahead of a waiter, the holder included, when it learned its place.", o.QueueBuckets, labels()),
		held: histogram("holdfast_held_seconds",
			"How long locks were held, from the grant to whatever ended them.", o.HeldBuckets, labels()),
		term: histogram("holdfast_term_duration_seconds",
			"How long terms of elections took, from the call of lead to its return, by how they ended.", o.HeldBuckets, labels("result")),
		heartbeat: histogram("holdfast_heartbeat_duration_seconds",
			"How long the requests took that keep leases alive.", o.HeartbeatBuckets, []string{"result"}),
	}
	gauge.Name, gauge.Help = "holdfast_waiting", "Acquisitions under way that wait for holders."
	c.waiting = prometheus.NewGaugeVec(gauge, labels())
	gauge.Name, gauge.Help = "holdfast_held_locks", "Locks held."
	c.heldLocks = prometheus.NewGaugeVec(gauge, labels())
	gauge.Name, gauge.Help = "holdfast_oldest_wait_seconds", "How long the oldest acquisition under way has waited for holders, or 0."
	c.oldestWait = prometheus.NewGaugeVec(gauge, labels())
	gauge.Name, gauge.Help = "holdfast_oldest_hold_seconds", "How long the oldest lock has been held, or 0."
	c.oldestHold = prometheus.NewGaugeVec(gauge, labels())
	gauge.Name, gauge.Help = "holdfast_leading", "Terms of elections under way."
	c.leading = prometheus.NewGaugeVec(gauge, labels())
	gauge.Name, gauge.Help = "holdfast_observed_keys", "Keys that are observed."
	c.keys = prometheus.NewGaugeVec(gauge, labels())
	gauge.Name, gauge.Help = "holdfast_connected", "Whether the engine can be reached: 1 or 0."
	c.connected = prometheus.NewGauge(gauge)
	counter.Name, counter.Help = "holdfast_lost_total", "Locks lost while they were held, by cause."
	c.lost = prometheus.NewCounterVec(counter, labels("cause"))
	counter.Name, counter.Help = "holdfast_ttl_expired_total", "Locks that reached the TTL that their holder had set."
	c.ttlExpired = prometheus.NewCounterVec(counter, labels())
	counter.Name, counter.Help = "holdfast_asked_total", "Locks that somebody has asked for while they were held."
	c.asked = prometheus.NewCounterVec(counter, labels())
	counter.Name, counter.Help = "holdfast_observed_changes_total", "States of keys that observers were told of."
	c.sights = prometheus.NewCounterVec(counter, labels())
	if o.KeyLabel == nil {
		c.begin()
	}
	return c, nil
}

// begin creates the series that are known in advance.
func (c *Collector) begin() {
	for _, result := range results {
		c.acquire.WithLabelValues(result)
	}
	for _, cause := range lossCauses {
		c.lost.WithLabelValues(cause)
	}
	for _, result := range terms {
		c.term.WithLabelValues(result)
	}
	c.leading.WithLabelValues()
	c.waiting.WithLabelValues()
	c.oldestWait.WithLabelValues()
	c.oldestHold.WithLabelValues()
	c.queue.WithLabelValues()
	c.heldLocks.WithLabelValues()
	c.held.WithLabelValues()
	c.ttlExpired.WithLabelValues()
	c.asked.WithLabelValues()
	c.keys.WithLabelValues()
	c.sights.WithLabelValues()
}

// parts returns the metrics; the zero value has none.
func (c *Collector) parts() []prometheus.Collector {
	if c.acquire == nil {
		return nil
	}
	return []prometheus.Collector{
		c.acquire, c.waiting, c.queue, c.heldLocks, c.held, c.lost, c.ttlExpired, c.asked,
		c.keys, c.sights, c.leading, c.term, c.heartbeat, c.connected, c.oldestWait, c.oldestHold,
	}
}

// Describe implements [prometheus.Collector].
func (c *Collector) Describe(out chan<- *prometheus.Desc) {
	for _, part := range c.parts() {
		part.Describe(out)
	}
}

// Collect implements [prometheus.Collector].
func (c *Collector) Collect(out chan<- prometheus.Metric) {
	set := func(gauge prometheus.Gauge, age time.Duration) { gauge.Set(age.Seconds()) }
	c.waits.Each(set)
	c.holds.Each(set)
	for _, part := range c.parts() {
		part.Collect(out)
	}
}

// labels are the values of a metric's labels: its own, and the key label if there is one.
func (c *Collector) labels(key string, own ...string) []string {
	if c.keyLabel != nil {
		own = append(own, strings.ToValidUTF8(c.keyLabel(key), "\uFFFD"))
	}
	return own
}

// OnEvent returns the OnEvent function for a client. Call it once for each client; if several share a Collector, the
// metrics are their sums, and holdfast_connected is the number of connected clients. For the zero value it returns nil.
func (c *Collector) OnEvent() func(holdfast.Event) {
	if c.acquire == nil {
		return nil
	}
	w := &watcher{Collector: c, waiters: make(map[uint64][]string)}
	return w.event
}

// A watcher turns the events of one client into metrics.
type watcher struct {
	*Collector

	mu      sync.Mutex          // for callers other than a client
	waiters map[uint64][]string // the labels of each
	ready   bool
}

func (w *watcher) event(e holdfast.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch e.Kind {
	case holdfast.Started:
		w.started(e)
	case holdfast.Queued:
		w.queue.WithLabelValues(w.labels(e.Key)...).Observe(float64(e.Ahead))
	case holdfast.Granted, holdfast.Failed:
		w.over(e)
	case holdfast.Asked:
		w.asked.WithLabelValues(w.labels(e.Key)...).Inc()
	case holdfast.Released, holdfast.TTLExpired, holdfast.Lost:
		w.ended(e)
	case holdfast.TermBegan:
		w.leading.WithLabelValues(w.labels(e.Key)...).Inc()
	case holdfast.TermEnded:
		w.leading.WithLabelValues(w.labels(e.Key)...).Dec()
		w.term.WithLabelValues(w.labels(e.Key, outcome.Of(e))...).Observe(e.Took.Seconds())
	case holdfast.ObserveBegan:
		w.keys.WithLabelValues(w.labels(e.Key)...).Inc()
	case holdfast.ObserveEnded:
		w.keys.WithLabelValues(w.labels(e.Key)...).Dec()
	case holdfast.Observed:
		w.sights.WithLabelValues(w.labels(e.Key)...).Inc()
	case holdfast.Heartbeat:
		w.heartbeat.WithLabelValues(outcome.Of(e)).Observe(e.Took.Seconds())
	case holdfast.Ready, holdfast.Disconnected:
		w.connection(e.Kind == holdfast.Ready)
	}
}

func (w *watcher) started(e holdfast.Event) {
	if !e.Wait {
		return
	}
	// Its end has the same labels: AcquireAny has no key before it is granted.
	labels := w.labels(e.Key)
	w.waiting.WithLabelValues(labels...).Inc()
	w.waits.Note(w.oldestWait.WithLabelValues(labels...), w.span(e), e.Time)
	w.waiters[e.ID] = labels
}

// span is the ID of a wait or a hold among those of all clients.
func (w *watcher) span(e holdfast.Event) any { return [2]any{w, e.ID} }

func (w *watcher) over(e holdfast.Event) {
	if labels, ok := w.waiters[e.ID]; ok {
		w.waiting.WithLabelValues(labels...).Dec()
		w.waits.Note(w.oldestWait.WithLabelValues(labels...), w.span(e), time.Time{})
		delete(w.waiters, e.ID)
	}
	w.acquire.WithLabelValues(w.labels(e.Key, outcome.Of(e))...).Observe(e.Took.Seconds())
	if e.Kind == holdfast.Granted {
		w.heldLocks.WithLabelValues(w.labels(e.Key)...).Inc()
		w.holds.Note(w.oldestHold.WithLabelValues(w.labels(e.Key)...), w.span(e), e.Time)
	}
}

func (w *watcher) ended(e holdfast.Event) {
	labels := w.labels(e.Key)
	w.heldLocks.WithLabelValues(labels...).Dec()
	w.holds.Note(w.oldestHold.WithLabelValues(labels...), w.span(e), time.Time{})
	w.held.WithLabelValues(labels...).Observe(e.Took.Seconds())
	switch e.Kind {
	case holdfast.TTLExpired:
		w.ttlExpired.WithLabelValues(labels...).Inc()
	case holdfast.Lost:
		w.lost.WithLabelValues(w.labels(e.Key, outcome.Of(e))...).Inc()
	}
}

func (w *watcher) connection(ready bool) {
	if ready == w.ready {
		return
	}
	if w.ready = ready; ready {
		w.connected.Inc()
	} else {
		w.connected.Dec()
	}
}
