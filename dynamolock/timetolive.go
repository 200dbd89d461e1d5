package dynamolock

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/holdfast-go/holdfast/driver"
)

// A timeToLive is what a client knows of the table's Time to Live, which deletes
// live items as well as others. An item may have a time to live that a client
// with other settings has written; whoever takes such an item must move it or
// remove it, and to do so has to know the attribute.
//
// It is looked at when the client is made, and again from time to time while
// there are locks: Time to Live may be switched on later. What holdfast writes
// there is at least MinTTL ahead, so there is time.
type timeToLive struct {
	mu        sync.Mutex
	attribute string // of the table, to be removed; "" if there is none that is known
	again     driver.Instant
	looking   bool
	told      bool // something was logged
}

const (
	// ttlLook is the time from one look to the next.
	ttlLook = 15 * time.Minute
	// ttlRetry is the same after a look that failed on the way.
	ttlRetry = time.Minute
)

// foreignTTL returns the attribute that the table's Time to Live goes by, if it
// is not the client's own and can be removed; "" if there is none.
func (b *engine) foreignTTL() string {
	b.ttl.mu.Lock()
	defer b.ttl.mu.Unlock()
	return b.ttl.attribute
}

// lookAtTTL looks at the table's Time to Live in the background, if it is time.
func (b *engine) lookAtTTL() {
	now := b.host.Now()
	b.ttl.mu.Lock()
	due := !b.ttl.looking && now.Sub(b.ttl.again) >= 0 && b.tasks.begin()
	if due {
		b.ttl.looking = true
	}
	b.ttl.mu.Unlock()
	if due {
		go func() {
			defer b.tasks.end()
			b.learnTTL(b.tasks.open)
		}()
	}
}

// learnTTL looks at the table's Time to Live, by one request. A look that fails
// keeps nobody from locking.
func (b *engine) learnTTL(ctx context.Context) {
	attempt, cancel := context.WithTimeout(ctx, b.opts.Timeout)
	out, err := b.api.DescribeTimeToLive(attempt, &dynamodb.DescribeTimeToLiveInput{TableName: &b.opts.Table}, once)
	cancel()
	now := b.host.Now()
	b.ttl.mu.Lock()
	defer b.ttl.mu.Unlock()
	b.ttl.looking = false
	b.ttl.again = now.Add(ttlLook)
	if err != nil {
		if transient(&callError{kind: classify(err)}) {
			b.ttl.again = now.Add(ttlRetry)
		}
		if ctx.Err() == nil {
			b.tellTTLLocked(err)
		}
		return
	}
	d := out.TimeToLiveDescription
	name := ""
	if d != nil && d.TimeToLiveStatus != types.TimeToLiveStatusDisabled {
		name = aws.ToString(d.AttributeName)
	}
	switch {
	case name == "" || name == b.opts.TTLAttribute:
		// What was known before is removed for as long as the client lives:
		// Time to Live may be switched on again, and other clients may write it.
	case b.opts.Keys.checkFree("", name) != nil:
		if !b.ttl.told {
			b.ttl.told = true
			b.host.Logger().Warn("Time to Live goes by an attribute that locks need",
				"table", b.opts.Table, "attribute", name)
		}
	default:
		b.ttl.attribute = name
	}
}

// tellTTLLocked tells, once, that the table's Time to Live cannot be looked at. A
// server that has no such thing cannot delete items by it.
func (b *engine) tellTTLLocked(err error) {
	level := slog.LevelWarn
	var api smithy.APIError
	if errors.As(err, &api) && api.ErrorCode() == "UnknownOperationException" {
		level = slog.LevelDebug
	}
	if !b.ttl.told {
		b.ttl.told = true
		b.host.Logger().Log(context.Background(), level, "Time to Live is not known", "table", b.opts.Table, "error", err)
	}
}

// expire tells Time to Live when the item is of no use any more, or that it is
// for good. No time to live that another client has written stays.
func (b *engine) expire(e *expression, now driver.Instant, ever bool) {
	switch own := b.opts.TTLAttribute; {
	case own == "":
	case ever:
		e.sets = append(e.sets, e.alias(aliasTTL, own)+" = "+e.value(seconds(now.Wall.Add(b.opts.TTL))))
	default:
		e.removes = append(e.removes, e.alias(aliasTTL, own))
	}
	if foreign := b.foreignTTL(); foreign != "" {
		e.removes = append(e.removes, e.alias(aliasForeignTTL, foreign))
	}
}
