// Package holdfastotel provides OpenTelemetry metrics of a holdfast client, on any
// engine.
//
//	metrics, err := holdfastotel.New(provider, &holdfastotel.Options{Engine: "zookeeper"})
//	if err != nil {
//		return err
//	}
//	client, err := zklock.Dial(ctx, servers, &zklock.Options{OnEvent: metrics.OnEvent()})
//
// The instruments are:
//
//	name                               kind           unit          of what                                attributes
//	---------------------------------  -------------  ------------  -------------------------------------  ---------------
//	holdfast.acquire.duration          Histogram      s             acquisitions, to the lock or error     error.type
//	holdfast.acquire.pending_requests  UpDownCounter  {request}     those under way that wait for holders
//	holdfast.acquire.oldest_wait       Gauge          s             how long the oldest of them has waited
//	holdfast.queue.length              Histogram      {request}     how many were ahead of a waiter
//	holdfast.lock.count                UpDownCounter  {lock}        locks held
//	holdfast.lock.oldest_hold          Gauge          s             how long the oldest has been held
//	holdfast.lock.held_duration        Histogram      s             from the grant to the end
//	holdfast.lock.lost                 Counter        {lock}        locks lost                             holdfast.cause
//	holdfast.lock.ttl_expired          Counter        {lock}        locks that reached their TTL
//	holdfast.term.count                UpDownCounter  {term}        terms of elections under way
//	holdfast.term.duration             Histogram      s             terms, from lead's call to its return  holdfast.cause
//	holdfast.lock.asked                Counter        {lock}        locks that somebody has asked for
//	holdfast.observed.count            UpDownCounter  {key}         keys that are observed
//	holdfast.observed.changes          Counter        {change}      states of keys that observers were told of
//	holdfast.heartbeat.duration        Histogram      s             heartbeats                             error.type
//	holdfast.connection.count          UpDownCounter  {connection}  1 while the engine can be reached
//
// All have the attributes holdfast.engine and holdfast.client, if set by [Options].
// error.type is there if the operation failed, as in OpenTelemetry's conventions. Its values for acquisitions are closed,
// denied, invalid, names, disconnected, canceled (ctx), reclaimed, held, timeout (ctx) and error; for heartbeats
// disconnected, denied, lost and error. The values of holdfast.cause for lost locks are session_expired, lease_expired,
// broken, reclaimed, taken_over, clock_jump and lost; terms add stepped_down, withdrawn, failed, resigned, asked, unfit,
// closed, released, ttl_expired and canceled. The key of a lock is no attribute,
// unless [Options.KeyAttribute] makes it one: keys may contain order numbers, and each
// value is a time series to store.
//
// Metrics do not include what an engine does not report: DynamoDB has no queue, and
// memlock sends no heartbeats.
package holdfastotel
