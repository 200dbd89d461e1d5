package dynamolock

import (
	"context"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/strict"
)

// A timeToLive is what a client knows about the table's Time to Live, which deletes items of held locks too. A client with other
// settings may have written a time to live into an item. The next write of the item must postpone or remove that time, so the client has
// to know the attribute.
//
// The client looks when it is made, and again while there are locks. The times that holdfast writes are at least MinTTL ahead, so the
// next look is soon enough if Time to Live is switched on later.
type timeToLive struct {
	mu        strict.Mutex[strict.TimeToLive]
	attribute string // of the table, to be removed; "" if there is none that is known
	again     driver.Instant
	looking   bool
	told      bool // something was logged

	date time.Time      // the server's time at a moment; zero if it is not known
	at   driver.Instant // not before that moment
}

const (
	ttlLook  = 15 * time.Minute // from one look to the next
	ttlRetry = time.Minute      // the same after a look that may soon succeed: a free item may be deleted at any moment
)

// heard notes the server's time in an answer. DynamoDB deletes items by it, and a client's own wall clock may be days slow: the SDK signs
// requests by the server's time.
func (t *timeToLive) heard(answer middleware.Metadata, now driver.Instant) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if date, ok := awsmiddleware.GetServerTime(answer); ok {
		t.date, t.at = date, now
	}
}

// now is the server's time, or the client's if that is later: with a fast clock items live longer. since measures the time from the
// latest answer: now.Since, which is too much if the wall clock was set, or now.Sub, which is too little if the machine was suspended.
func (t *timeToLive) now(now driver.Instant, since func(driver.Instant) time.Duration) time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	if server := t.date.Add(since(t.at)); !t.date.IsZero() && server.After(now.Wall) {
		return server
	}
	return now.Wall
}

// foreign returns the attribute that the table's Time to Live uses, if it is not the client's own and can be removed, or "".
func (t *timeToLive) foreign() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.attribute
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

// learnTTL looks at the table's Time to Live, by one request. If that fails, locking goes on. An attribute that was known before is
// removed for as long as the client lives: other clients may write it, and Time to Live may be switched on again.
func (s *store) learnTTL(ctx context.Context) {
	attempt, cancel := context.WithTimeout(ctx, s.opts.Timeout)
	var out *dynamodb.DescribeTimeToLiveOutput
	err := request(attempt, s.host, "DescribeTimeToLive", s.opts.Table, func() (err error) {
		out, err = s.api.DescribeTimeToLive(attempt, &dynamodb.DescribeTimeToLiveInput{TableName: &s.opts.Table}, s.reach.once)
		return err
	})
	cancel()
	name, now := "", s.host.Now()
	if err == nil {
		s.ttl.heard(out.ResultMetadata, now)
		if d := out.TimeToLiveDescription; d != nil && d.TimeToLiveStatus != types.TimeToLiveStatusDisabled {
			name = aws.ToString(d.AttributeName)
		}
	}
	needed := name != "" && name != s.opts.TTLAttribute && s.opts.Keys.checkFree("", name) != nil

	s.ttl.mu.Lock()
	s.ttl.looking, s.ttl.again = false, now.Add(ttlLook)
	if transient(err) {
		s.ttl.again = now.Add(ttlRetry)
	}
	if name != "" && name != s.opts.TTLAttribute && !needed {
		s.ttl.attribute = name
	}
	news := !s.ttl.told && (needed || err != nil && ctx.Err() == nil)
	s.ttl.told = s.ttl.told || news
	s.ttl.mu.Unlock()
	var api smithy.APIError
	switch {
	case !news:
	case needed:
		s.host.Logger().Warn("Time to Live goes by an attribute that locks need", "table", s.opts.Table, "attribute", name)
	case errors.As(err, &api) && api.ErrorCode() == "UnknownOperationException": // a server without Time to Live is no danger
	default:
		s.host.Logger().Warn("Time to Live is not known", "table", s.opts.Table, "error", err)
	}
}

// expire sets when Time to Live may delete the item, or removes that time if it never
// may. It removes a time that another client wrote to another attribute.
func (s *store) expire(x *expression, now driver.Instant, ever bool) {
	switch own := s.opts.TTLAttribute; {
	case own == "":
	case ever:
		x.sets = append(x.sets, x.expr(x.alias(aliasTTL, own)+" = ?", s.ttl.now(now, now.Since).Add(s.opts.TTL).Unix()))
	default:
		x.removes = append(x.removes, x.alias(aliasTTL, own))
	}
	if foreign := s.ttl.foreign(); foreign != "" {
		x.removes = append(x.removes, x.alias(aliasForeignTTL, foreign))
	}
}

// expirable reports whether an item of a lock that never expires has an attribute by which Time to Live may delete it.
func (s *store) expirable(attrs attributes) bool {
	if s.opts.Mode == FailOpen {
		return false
	}
	foreign := s.ttl.foreign()
	return foreign != "" && attrs[foreign] != nil || s.opts.TTLAttribute != "" && attrs[s.opts.TTLAttribute] != nil
}
