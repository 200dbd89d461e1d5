package dynamofake

import (
	"context"
	"maps"
	"net/http"
	"net/http/httptrace"
	"reflect"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	smithy "github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// A Client has the methods of [dynamodb.Client] that package dynamolock needs. It is one
// connection, with its own faults.
type Client struct {
	db *DB

	mu    sync.Mutex
	cut   bool
	held  chan struct{} // closed when what Stall holds back arrives; nil: nothing is held back
	kept  []func()      // requests that are
	fault func(Op) Fault
	calls map[string]int
	used  usage

	underWay, peak int // requests that were sent and have not come back
}

// Client returns a new client of the service.
func (db *DB) Client() *Client { return &Client{db: db, calls: make(map[string]int)} }

// Cut partitions the client: no request and no reply arrives from now on, not even of
// calls under way, which block until their ctx ends.
func (c *Client) Cut() { c.setCut(true) }

// Stall is a Cut that loses nothing: all requests and replies are held back until Heal, and arrive then, also if nobody waits
// for them any more.
func (c *Client) Stall() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held == nil {
		c.held = make(chan struct{})
	}
}

// Heal ends a Cut for the calls after it, and a Stall.
func (c *Client) Heal() {
	c.setCut(false)
	c.mu.Lock()
	held, kept := c.held, c.kept
	c.held, c.kept = nil, nil
	c.mu.Unlock()
	for _, arrive := range kept {
		arrive()
	}
	if held != nil {
		close(held)
	}
}

// pass carries a request on, or keeps it while the client is stalled.
func (c *Client) pass(arrive func()) {
	c.mu.Lock()
	held := c.held != nil
	if held {
		c.kept = append(c.kept, arrive)
	}
	c.mu.Unlock()
	if !held {
		arrive()
	}
}

// back waits until a reply can pass.
func (c *Client) back(ctx context.Context) error {
	c.mu.Lock()
	held := c.held
	c.mu.Unlock()
	if held == nil {
		return nil
	}
	select {
	case <-held:
		return nil
	case <-ctx.Done():
		return canceled(ctx.Err())
	}
}

func (c *Client) setCut(cut bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cut = cut; cut {
		c.kept = nil
	}
}

func (c *Client) isCut() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cut
}

// SetFault makes f choose the fault of each request; nil removes it. f may be called
// concurrently. It is asked also while the client is cut off, and then nothing comes of it.
func (c *Client) SetFault(f func(Op) Fault) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fault = f
}

// Peak returns the largest number of requests under way at once.
func (c *Client) Peak() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.peak
}

// Calls returns the number of requests sent, by operation, arrived or not.
func (c *Client) Calls() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.calls)
}

// Consumed returns the capacity units of all requests that arrived.
func (c *Client) Consumed() (read, write float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.used.read, c.used.write
}

// ResetCounts starts Calls, Consumed and Peak from zero.
func (c *Client) ResetCounts() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.calls)
	c.used = usage{}
	c.peak = c.underWay
}

// begin returns the fault of a request.
func (c *Client) begin(op Op) Fault {
	c.mu.Lock()
	choose, cut := c.fault, c.cut
	c.mu.Unlock()
	fault := Fault{}
	if choose != nil {
		op.Input = clone(op.Input)
		fault = choose(op)
	}
	if cut {
		return Drop()
	}
	return fault
}

// connect waits for the connection of a request, and notifies an [httptrace.ClientTrace]
// as net/http does.
func (c *Client) connect(ctx context.Context, fault Fault) error {
	trace := httptrace.ContextClientTrace(ctx)
	if trace != nil && trace.GetConn != nil {
		trace.GetConn("dynamofake:443")
	}
	if fault.connect < 0 {
		return fault.err
	}
	if err := pause(ctx, fault.connect); err != nil {
		return err
	}
	if trace != nil && trace.GotConn != nil {
		trace.GotConn(httptrace.GotConnInfo{})
	}
	return nil
}

// sent counts a request, and returns a function that counts its end.
func (c *Client) sent(name string) (back func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls[name]++
	c.underWay++
	c.peak = max(c.peak, c.underWay)
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.underWay--
	}
}

func (c *Client) consume(u usage) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.used.read += u.read
	c.used.write += u.write
}

// do is one operation from input to output, with errors wrapped as by the SDK.
func do[In, Out any](
	ctx context.Context, c *Client, name string, in *In, options []func(*dynamodb.Options),
	serve func(*In, *usage) (*Out, error), fields ...string,
) (*Out, error) {
	for _, option := range options {
		option(new(dynamodb.Options))
	}
	if in == nil {
		in = new(In)
	}
	if err := required(in, fields...); err != nil {
		return nil, operationError(name, err)
	}
	in = clone(in)
	out, err := send(ctx, c, Op{Name: name, Input: in}, func() (*Out, error) {
		var used usage
		out, err := serve(in, &used)
		c.consume(used)
		return out, err
	})
	if err != nil {
		return nil, operationError(name, err)
	}
	out = clone(out)
	reflect.ValueOf(out).Elem().FieldByName("ResultMetadata").Set(reflect.ValueOf(dated(ctx)))
	return out, nil
}

// dated is the metadata of an answer that was sent now, as the SDK reads it from the header Date.
func dated(ctx context.Context) smithy.Metadata {
	reply := &smithyhttp.Response{Response: &http.Response{Header: http.Header{}}}
	reply.Header.Set("Date", time.Now().UTC().Format(http.TimeFormat))
	received := smithy.DeserializeHandlerFunc(func(context.Context, smithy.DeserializeInput) (smithy.DeserializeOutput, smithy.Metadata, error) {
		return smithy.DeserializeOutput{RawResponse: reply}, smithy.Metadata{}, nil
	})
	_, metadata, _ := middleware.RecordResponseTiming{}.HandleDeserialize(ctx, smithy.DeserializeInput{}, received) // received cannot fail
	return metadata
}

type answer[Out any] struct {
	out *Out
	err error
}

// send carries a request to the service and its reply back.
func send[Out any](ctx context.Context, c *Client, op Op, serve func() (*Out, error)) (*Out, error) {
	if err := ctx.Err(); err != nil {
		return nil, canceled(err)
	}
	fault := c.begin(op)
	if err := c.connect(ctx, fault); err != nil {
		return nil, err
	}
	defer c.sent(op.Name)()
	if fault.lost {
		if fault.late {
			time.AfterFunc(fault.delay, func() { serve() })
		}
		return nil, silence(ctx, fault.err)
	}
	answers := make(chan answer[Out], 1)
	arrive := func() {
		if c.isCut() {
			return
		}
		out, err := serve()
		answers <- answer[Out]{out, err}
	}
	// Once sent, a request arrives whether or not the call still waits.
	if delay := c.db.Latency/2 + fault.delay; delay > 0 {
		time.AfterFunc(delay, func() { c.pass(arrive) })
	} else {
		c.pass(arrive)
	}
	var a answer[Out]
	select {
	case a = <-answers:
	case <-ctx.Done():
		return nil, canceled(ctx.Err())
	}
	if err := pause(ctx, c.db.Latency/2+fault.backDelay); err != nil {
		return nil, err
	}
	if err := c.back(ctx); err != nil {
		return nil, err
	}
	if fault.mute {
		return nil, silence(ctx, fault.err)
	}
	if c.isCut() {
		return nil, silence(ctx, nil)
	}
	return a.out, a.err
}

// silence ends a call that gets no reply.
func silence(ctx context.Context, err error) error {
	if err != nil {
		return err
	}
	<-ctx.Done()
	return canceled(ctx.Err())
}

// pause waits for d to pass.
func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return canceled(ctx.Err())
	}
}
