package main

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/internal/history"
)

// observer observes keys, and reports the states that it is told.
type observer struct {
	*client
	random *rand.Rand
}

// run observes a key until the client is closed. The last observer observes one key after the other, for a while each,
// until the process is to stop.
func (o *observer) run(i int) {
	keys := o.config.Keys
	first := int(o.config.Seed>>8) % len(keys)
	if i < o.config.Observers-1 {
		o.observe(o.ctx, keys[(first+i)%len(keys)])
		return
	}
	for o.stopping.Err() == nil {
		ctx, cancel := context.WithTimeout(o.stopping, o.upTo(5*o.config.Login.Lease))
		o.observe(ctx, keys[o.random.IntN(len(keys))])
		cancel()
	}
}

func (o *observer) upTo(d time.Duration) time.Duration {
	return time.Duration(o.random.Int64N(int64(d)))
}

// observe reports the states of a key. Now and then it is slow.
func (o *observer) observe(ctx context.Context, key string) {
	invoked := o.report.invoke(history.Record{Call: history.Observe, Key: key})
	var last *holdfast.Info
	for info, err := range o.locker.Observe(ctx, key) {
		if err != nil {
			invoked.returned(err, 0, "")
			sleep(ctx, o.config.Login.Lease/20) // a program that is refused does not ask again at once
			return
		}
		if info.Stale || last != nil && info.Same(*last) {
			continue // the history of a key knows no outages
		}
		last = &info
		o.told(invoked, info)
		if o.random.IntN(10) == 0 {
			sleep(ctx, o.upTo(o.config.Login.Lease/4))
		}
	}
}

// told reports a state.
func (o *observer) told(c *call, info holdfast.Info) {
	rec := history.Record{
		At: o.now(), What: history.Told, Key: info.Key, Op: c.record.Op,
		Token: uint64(info.Token), Owner: info.Owner, Data: string(info.Data), Mode: history.Mode{Shared: info.Shared, Limit: info.Limit},
	}
	for i, h := range info.Holders {
		if i > 0 {
			rec.Others = append(rec.Others, history.Holder{Token: uint64(h.Token), Owner: h.Owner, Data: string(h.Data)})
		}
	}
	o.report.write(rec)
}
