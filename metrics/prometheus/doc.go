// Package holdfastprom provides Prometheus metrics of a holdfast client, on any engine.
//
//	metrics, err := holdfastprom.New(&holdfastprom.Options{Engine: "zookeeper"})
//	if err != nil {
//		return err
//	}
//	prometheus.MustRegister(metrics)
//	client, err := zklock.Dial(ctx, servers, &zklock.Options{OnEvent: metrics.OnEvent()})
//
// The metrics are:
//
//	holdfast_acquire_duration_seconds    histogram  how long acquisitions took, by result
//	holdfast_waiting                     gauge      acquisitions under way that wait for holders
//	holdfast_oldest_wait_seconds         gauge      how long the oldest of them has waited
//	holdfast_queue_length                histogram  how many were ahead when a waiter learned its place
//	holdfast_held_locks                  gauge      locks held
//	holdfast_oldest_hold_seconds         gauge      how long the oldest lock has been held
//	holdfast_held_seconds                histogram  how long locks were held
//	holdfast_lost_total                  counter    locks lost, by cause
//	holdfast_ttl_expired_total           counter    locks that reached their TTL
//	holdfast_leading                     gauge      terms of elections under way
//	holdfast_term_duration_seconds       histogram  how long terms took, by result
//	holdfast_asked_total                 counter    locks that somebody has asked for
//	holdfast_observed_keys               gauge      keys that are observed
//	holdfast_observed_changes_total      counter    states of keys that observers were told of
//	holdfast_heartbeat_duration_seconds  histogram  how long heartbeats took, by result
//	holdfast_connected                   gauge      1 while the engine can be reached, else 0
//
// All have the labels engine and client, as set by [Options]. The results of acquisitions are granted, closed, denied,
// invalid, names, disconnected, canceled (ctx), reclaimed, held, timeout (ctx) and error; of heartbeats ok,
// disconnected, denied, lost and error. The causes of lost locks are session_expired, lease_expired, broken, reclaimed,
// taken_over, clock_jump and lost. The results of terms are those causes, stepped_down, withdrawn, failed, resigned, asked,
// unfit, closed, released, ttl_expired and canceled. The key of a lock is no label, unless [Options.KeyLabel] makes it one:
// keys may contain order numbers, and each label value is a time series that Prometheus
// stores.
//
// Metrics do not include what an engine does not report: DynamoDB has no queue, and
// memlock sends no heartbeats.
//
// # Alarms
//
// metrics/prometheus/rules.yml has alerting rules: adapt their thresholds. With elections, add sum(holdfast_leading) == 0, for
// longer than a hand-over takes: no candidate leads. A dashboard for Grafana is in metrics/grafana.
package holdfastprom
