package dynamolock

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/strict"
)

// A timeToLive is what a client knows about the table's Time to Live, which deletes the
// items of held locks as well as others. A client with other settings may have written a
// time to live into an item. Whoever takes such an item must postpone that time or remove
// it, and has to know the attribute for that.
//
// The client looks when it is made, and from time to time while there are locks: Time to
// Live may be switched on later. The times that holdfast writes are at least MinTTL
// ahead, so the next look is soon enough.
type timeToLive struct {
	mu        strict.Mutex[strict.TimeToLive]
	attribute string // of the table, to be removed; "" if there is none that is known
	again     driver.Instant
	looking   bool

	told atomic.Bool // something was logged
}

const (
	// ttlLook is the time from one look to the next.
	ttlLook = 15 * time.Minute
	// ttlRetry is the same after a look that failed on the way.
	ttlRetry = time.Minute
)

// foreignTTL returns the attribute that the table's Time to Live uses, if it is not the
// client's own and can be removed; "" if there is none.
func (s *store) foreignTTL() string {
	s.ttl.mu.Lock()
	defer s.ttl.mu.Unlock()
	return s.ttl.attribute
}

// lookAtTTL looks at the table's Time to Live in the background, if a look is due.
func (s *store) lookAtTTL() {
	now := s.host.Now()
	s.ttl.mu.Lock()
	defer s.ttl.mu.Unlock()
	if !s.ttl.looking && now.Sub(s.ttl.again) >= 0 {
		s.ttl.looking = s.tasks.Go(func(context.Context) { s.learnTTL(s.tasks.Open()) })
	}
}

// learnTTL looks at the table's Time to Live, by one request. If that fails, locking goes
// on.
func (s *store) learnTTL(ctx context.Context) {
	attempt, cancel := context.WithTimeout(ctx, s.opts.Timeout)
	out, err := s.api.DescribeTimeToLive(attempt, &dynamodb.DescribeTimeToLiveInput{TableName: &s.opts.Table}, s.reach.once)
	cancel()
	if err == nil {
		s.dated(out)
	}
	name := ""
	if err == nil && out.TimeToLiveDescription != nil && out.TimeToLiveDescription.TimeToLiveStatus != types.TimeToLiveStatusDisabled {
		name = aws.ToString(out.TimeToLiveDescription.AttributeName)
	}
	if name == s.opts.TTLAttribute {
		name = ""
	}
	needed := name != "" && s.opts.Keys.checkFree("", name) != nil
	news := needed || err != nil && ctx.Err() == nil
	removable := name
	if needed {
		removable = ""
	}
	s.ttl.learned(s.host.Now(), removable, err)
	switch {
	case !news || s.ttl.told.Swap(true):
	case needed:
		s.host.Logger().Warn("Time to Live goes by an attribute that locks need", "table", s.opts.Table, "attribute", name)
	default:
		level := slog.LevelWarn
		var api smithy.APIError
		if errors.As(err, &api) && api.ErrorCode() == "UnknownOperationException" {
			level = slog.LevelDebug // a server without Time to Live is no danger
		}
		s.host.Logger().Log(ctx, level, "Time to Live is not known", "table", s.opts.Table, "error", err)
	}
}

// learned notes what a look has shown: an attribute to be removed, "" if there is none.
func (t *timeToLive) learned(now driver.Instant, attribute string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.looking = false
	t.again = now.Add(ttlLook)
	if err != nil && transient(&callError{kind: classify(err)}) {
		t.again = now.Add(ttlRetry)
	}
	// One that was known before is removed for as long as the client lives: Time to Live may be
	// switched on again, and other clients may write it.
	if attribute != "" {
		t.attribute = attribute
	}
}

// expire sets when Time to Live may delete the item, or removes that time if it never
// may. It removes a time that another client wrote to another attribute.
func (s *store) expire(x *expression, now driver.Instant, ever bool) {
	switch own := s.opts.TTLAttribute; {
	case own == "":
	case ever:
		x.sets = append(x.sets, x.alias(aliasTTL, own)+" = "+x.value(seconds(s.calendar.now(now).Add(s.opts.TTL))))
	default:
		x.removes = append(x.removes, x.alias(aliasTTL, own))
	}
	if foreign := s.foreignTTL(); foreign != "" {
		x.removes = append(x.removes, x.alias(aliasForeignTTL, foreign))
	}
}

// expirable reports whether an item of a lock that never expires has an attribute by which Time to Live may delete it.
func (s *store) expirable(attrs attributes) bool {
	if s.opts.Mode == FailOpen {
		return false
	}
	foreign := s.foreignTTL()
	return foreign != "" && attrs[foreign] != nil || s.opts.TTLAttribute != "" && attrs[s.opts.TTLAttribute] != nil
}
