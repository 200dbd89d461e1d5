package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdfast-go/holdfast/integration/internal/dynamoserver"
	"github.com/holdfast-go/holdfast/integration/internal/faulthttp"
	"github.com/holdfast-go/holdfast/integration/internal/nemesis"
	"github.com/holdfast-go/holdfast/internal/dynamofake"
)

// tableLine is the simulated network between one slot and DynamoDB: what wire is to a real one.
type tableLine struct {
	name    string
	client  *dynamofake.Client
	latency time.Duration

	requests meter

	mu       sync.Mutex
	troubles []*tableTrouble // the newest first
	live     context.Context // ends when all connections are reset
	reset    context.CancelFunc
}

// tableTrouble is what one fault does to a line.
type tableTrouble struct {
	rule  func(dynamofake.Op) (fault dynamofake.Fault, hit bool) // nil: none
	cut   bool                                                   // what is under way is lost, too
	reset bool                                                   // connections are reset when it begins
}

// mostTableRequests is what a client of DynamoDB may ask for within a lease.
const mostTableRequests = 1_000

func newTableLine(name string, db *dynamofake.DB) *tableLine {
	l := &tableLine{
		name: name, client: db.Client(), latency: db.Latency,
		requests: meter{what: "requests", lease: dynamoLease, most: mostTableRequests},
	}
	l.live, l.reset = context.WithCancel(context.Background())
	l.client.SetFault(l.fault)
	return l
}

// fault is what happens to a request. Most only take their time, and so overtake each other.
func (l *tableLine) fault(op dynamofake.Op) dynamofake.Fault {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, t := range l.troubles {
		if t.rule == nil {
			continue
		}
		if fault, hit := t.rule(op); hit {
			return fault
		}
	}
	delay := rand.N(2 * l.latency)
	if rand.IntN(2) == 0 {
		return dynamofake.Delay(delay)
	}
	return dynamofake.DelayReply(delay)
}

func (l *tableLine) strike(f nemesis.Fault) (target string, end func(context.Context) error, err error) {
	t, detail, err := tableTroubleOf(f.Kind, pickOf(f.Pick), f.For)
	if err != nil {
		return "", nil, err
	}
	if t.rule != nil && !t.reset && f.Pick/picks%2 == 0 {
		t.confine()
		detail += " one key"
	}
	if detail != "" {
		detail = ": " + detail
	}
	return l.name + detail, l.afflict(t), nil
}

// afflict puts a trouble in force, and returns what ends it.
func (l *tableLine) afflict(t *tableTrouble) (end func(context.Context) error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.troubles = slices.Insert(l.troubles, 0, t)
	l.applyLocked()
	if t.reset {
		l.reset()
		l.live, l.reset = context.WithCancel(context.Background())
	}
	return func(context.Context) error {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.troubles = slices.DeleteFunc(l.troubles, func(other *tableTrouble) bool { return other == t })
		l.applyLocked()
		return nil
	}
}

func (l *tableLine) heal() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.troubles = nil
	l.applyLocked()
}

// confine has a trouble affect one key only, as when its partition fails, or has too much to do: the first that it meets.
func (t *tableTrouble) confine() {
	rule, key := t.rule, ""
	t.rule = func(op dynamofake.Op) (dynamofake.Fault, bool) {
		asked := keyOfOp(op)
		if key == "" {
			key = asked
		}
		if asked == "" || asked != key {
			return dynamofake.Fault{}, false
		}
		return rule(op)
	}
}

// applyLocked cuts the line if any trouble does.
func (l *tableLine) applyLocked() {
	if slices.ContainsFunc(l.troubles, func(t *tableTrouble) bool { return t.cut }) {
		l.client.Cut()
	} else {
		l.client.Heal()
	}
}

// connection ends when the connections of now are reset.
func (l *tableLine) connection() context.Context {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.live
}

// always is a rule for all requests.
func always(fault dynamofake.Fault) *tableTrouble {
	return &tableTrouble{rule: func(dynamofake.Op) (dynamofake.Fault, bool) { return fault, true }}
}

// stalled holds all requests in flight until the trouble has ended, after d.
func stalled(d time.Duration) *tableTrouble {
	until := time.Now().Add(d)
	return &tableTrouble{rule: func(dynamofake.Op) (dynamofake.Fault, bool) {
		return dynamofake.Delay(max(0, time.Until(until))), true
	}}
}

// fadingLine first delays replies, and then loses requests: see fading.
func fadingLine() *tableTrouble {
	began := time.Now()
	return &tableTrouble{rule: func(dynamofake.Op) (dynamofake.Fault, bool) {
		if time.Since(began) < fade {
			return dynamofake.DelayReply(slow), true
		}
		return dynamofake.Drop(), true
	}}
}

// refusing refuses all new connections. Unless they are reset, a request or two still use one that was there before, and
// are lost.
func refusing(reset bool) *tableTrouble {
	left := 0
	if !reset {
		left = 2
	}
	return &tableTrouble{reset: reset, rule: func(dynamofake.Op) (dynamofake.Fault, bool) {
		if left > 0 { // rules run under the line's mutex
			left--
			return dynamofake.Drop(), true
		}
		return dynamofake.Refuse(), true
	}}
}

// tableTroubleOf is what troubleOf is for a wire, for as long as the fault lasts.
func tableTroubleOf(kind nemesis.Kind, p pick, lasts time.Duration) (t *tableTrouble, detail string, err error) {
	until := time.Now().Add(lasts)
	switch kind {
	case nemesis.LostReply:
		return p.someOps(func() dynamofake.Fault { return dynamofake.LoseReply(seenBy(p)) }), p.String(), nil
	case nemesis.LostRequest:
		return p.someOps(func() dynamofake.Fault { return lost(seenBy(p)) }), p.String(), nil
	case nemesis.LateRequest:
		return p.someOps(func() dynamofake.Fault {
			return dynamofake.DeliverLate(max(0, time.Until(until)), seenBy(p))
		}), p.String(), nil
	case nemesis.Cut:
		return refusing(p.notice), map[bool]string{true: "reset", false: "silent"}[p.notice], nil
	case nemesis.BlackHole:
		if p.gently {
			return fadingLine(), "fading", nil
		}
		return &tableTrouble{cut: true}, "", nil
	case nemesis.OneWayIn:
		return always(dynamofake.LoseReply(nil)), "", nil
	case nemesis.OneWayOut:
		if p.gently {
			return fadingLine(), "fading", nil
		}
		return always(dynamofake.Drop()), "", nil
	case nemesis.HalfOpen:
		t := always(dynamofake.Drop())
		t.reset = true
		return t, "", nil
	case nemesis.Stall:
		if p.gently {
			return always(dynamofake.Delay(slow)), "slow", nil
		}
		return stalled(lasts), "", nil
	case nemesis.Throttled:
		return p.mostOps([]error{dynamofake.Throttled(), dynamofake.Throttling()}[p.which]), "", nil
	case nemesis.Broken:
		return p.mostOps(dynamofake.ServerError()), "", nil
	}
	return nil, "", fmt.Errorf("%s: not known here", kind)
}

// seenBy is what a client sees instead of a reply, as the fake has it: nil is silence.
func seenBy(p pick) error {
	switch p.seen {
	case faulthttp.Reset:
		return dynamofake.Reset()
	case faulthttp.EOF:
		return io.ErrUnexpectedEOF
	}
	return nil
}

func lost(seen error) dynamofake.Fault {
	if seen == nil {
		return dynamofake.Drop()
	}
	return dynamofake.Fail(seen)
}

// someOps is some, of a line.
func (p pick) someOps(fault func() dynamofake.Fault) *tableTrouble {
	hits := p.hits()
	return &tableTrouble{rule: func(op dynamofake.Op) (dynamofake.Fault, bool) {
		if !hits(purposeOfOp(op)) {
			return dynamofake.Fault{}, false
		}
		return fault(), true
	}}
}

// mostOps is most, of a line.
func (p pick) mostOps(answer error) *tableTrouble {
	n := 0
	return &tableTrouble{rule: func(dynamofake.Op) (dynamofake.Fault, bool) {
		n++
		return dynamofake.Fail(answer), p.every || n%4 != 0
	}}
}

// keyOfOp is the key that a request is for; "" if it is for many.
func keyOfOp(op dynamofake.Op) string {
	var key map[string]types.AttributeValue
	switch in := op.Input.(type) {
	case *dynamodb.UpdateItemInput:
		key = in.Key
	case *dynamodb.GetItemInput:
		key = in.Key
	case *dynamodb.DeleteItemInput:
		key = in.Key
	}
	id, _ := key[dynamoserver.DefaultKey].(*types.AttributeValueMemberS)
	if id == nil {
		return ""
	}
	return id.Value
}

func purposeOfOp(op dynamofake.Op) string {
	if in, ok := op.Input.(*dynamodb.UpdateItemInput); ok && in.UpdateExpression != nil {
		return purposeOfUpdate(*in.UpdateExpression)
	}
	return op.Name
}
