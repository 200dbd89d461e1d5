package dynamolock

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/backoff"
)

// Observe implements driver.Driver. It reads the item once per Poll. The reads are
// consistent: one that is not may show a grant that is over, after one that has shown
// the next.
func (e *engine) Observe(ctx context.Context, key string, tell func(driver.Info)) error {
	attrs, err := e.opts.Keys.encode(key)
	if err != nil {
		return err
	}
	// Only the first period is shortened, at random, so that clients that have begun at
	// the same time do not stay in step.
	delay := time.Duration(rand.Int64N(int64(e.opts.Poll))) + 1
	var seen observation
	var newest driver.Token // of the item: it never falls, unless the table was wiped or restored
	for lower := false; ; {
		var sent driver.Instant
		var i *item
		err := e.persist(ctx, func() (err error) {
			sent = e.host.Now()
			i, err = e.get(ctx, attrs, true)
			return err
		})
		if err != nil {
			return err
		}
		if i.token != 0 && i.token < newest {
			if lower {
				return driver.ErrHistoryLost
			}
			lower = true // a second read has to show the same
			continue
		}
		lower, newest = false, max(newest, i.token)
		e.lines.record(key, i) // first: when it is told that nobody holds the key, a try is to get it
		seen.update(i, e.host.Now())
		info := i.info(key)
		left, ends := e.leftAt(&seen, sent)
		if i.sharing != nil {
			holders, soonest := e.aliveAt(&seen, sent)
			info = i.sharedInfo(key, holders)
			if len(holders) > 0 {
				left = soonest.Sub(sent) // when one of them may be over
			}
		}
		if ends && left <= 0 {
			// It was the same at the end of its lease: whoever had it knows that it is over.
			info, ends = driver.Info{Key: key}, false
		}
		tell(info)
		if ends {
			delay = min(delay, left) // to tell of the end when it comes
		}
		if !backoff.Sleep(ctx, delay, nil) {
			return driver.ContextError(ctx)
		}
		delay = e.opts.Poll
	}
}
