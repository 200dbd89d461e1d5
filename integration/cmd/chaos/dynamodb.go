package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdfast-go/holdfast/dynamolock"
	"github.com/holdfast-go/holdfast/integration/internal/dynamoserver"
	"github.com/holdfast-go/holdfast/integration/internal/nemesis"
)

const (
	// dynamoLease is short, so that a run spans many leases, and long enough for a busy machine to renew it.
	dynamoLease = 2 * time.Second
	dynamoPoll  = dynamoLease / 8
)

// openDynamo opens a client of DynamoDB, in a client process.
//
// TrustLocalTime stays off: it is safe only while the clocks of all machines agree, and here they are set.
func openDynamo(ctx context.Context, config clientConfig) (locker, error) {
	api := described{dynamoserver.At(config.Login.Endpoint).Client(), config.Login.TTL}
	if config.Sabotage == blindToTTL {
		api.attribute = ""
	}
	client, err := dynamolock.New(ctx, api, &dynamolock.Options{
		Table:        config.Login.Table,
		Mode:         config.Login.Mode,
		Lease:        config.Login.Lease,
		Poll:         dynamoPoll,
		TTLAttribute: config.Login.Expiry,
		Owner:        config.Owner,
	})
	if err != nil {
		return locker{}, err
	}
	return locker{Client: client.Client, breakNow: client.BreakNow}, nil
}

// dynamoStage is a server with DynamoDB's API, a new table, and a wire to it for each slot.
type dynamoStage struct {
	dir    string
	target *dynamoserver.Target
	client *dynamodb.Client // the stage's own, which only faults of the server affect
	table  string
	drop   func(context.Context) error
	wires  []*wire
	reaper *reaper // nil: nothing expires
	mode   dynamolock.Mode
}

// startClosed is startDynamo for clients whose locks do not expire.
func startClosed(ctx context.Context, c casting) (stage, error) {
	s, err := startDynamo(ctx, c)
	if err == nil {
		s.(*dynamoStage).mode = dynamolock.FailClosedFenced
	}
	return s, err
}

func startDynamo(ctx context.Context, c casting) (stage, error) {
	target, err := dynamoserver.Open(ctx)
	if err != nil {
		return nil, err
	}
	if target.Source() == dynamoserver.AWS {
		return nil, errors.New("a chaos run puts proxies before the server, whose address AWS's signatures would not match: unset DYNAMODB_ENDPOINT")
	}
	s := &dynamoStage{dir: c.Dir, target: target, client: target.Client()}
	if s.table, s.drop, err = target.CreateTable(ctx); err != nil {
		s.close()
		return nil, err
	}
	for slot := range c.Slots {
		w, err := newWire("client "+strconv.Itoa(slot), target.Endpoint())
		if err != nil {
			s.close()
			return nil, err
		}
		s.wires = append(s.wires, w)
	}
	return s, nil
}

// dynamoDeck is the faults that are possible always and everywhere.
var dynamoDeck = []nemesis.Kind{
	nemesis.LostReply, nemesis.LostRequest, nemesis.LateRequest,
	nemesis.Cut, nemesis.BlackHole, nemesis.OneWayIn, nemesis.OneWayOut, nemesis.HalfOpen, nemesis.Stall,
	nemesis.Throttled, nemesis.Broken,
	nemesis.ClientPaused, nemesis.ClientKilled, nemesis.ClientClosed, nemesis.BreakHolder,
}

func (s *dynamoStage) deck() []nemesis.Kind {
	deck := slices.Clone(dynamoDeck)
	if s.reaper == nil {
		// The successor of an expired item takes its token from a clock. That is days ahead of earlier tokens, but not here,
		// where items expire within seconds.
		deck = append(deck, nemesis.ClockJump)
	}
	if s.target.Process() {
		deck = append(deck, nemesis.ServerPaused)
	}
	return deck
}

func (s *dynamoStage) servers() int { return 1 }

func (s *dynamoStage) login(slot int) login {
	l := s.loginBy(s.wires[slot].proxy.URL())
	if s.reaper != nil && slot%3 == 0 {
		l.Expiry = ttlAttribute // the others only remove it
	}
	return l
}

func (s *dynamoStage) direct() login { return s.loginBy(s.target.Endpoint()) }

func (s *dynamoStage) loginBy(endpoint string) login {
	l := login{Engine: "dynamodb", Endpoint: endpoint, Table: s.table, Lease: dynamoLease, Mode: s.mode}
	if s.reaper != nil {
		l.TTL = ttlAttribute
	}
	return l
}

func (s *dynamoStage) strike(_ context.Context, f nemesis.Fault) (string, func(context.Context) error, error) {
	if f.Kind == nemesis.ServerPaused {
		resume := func(context.Context) error { return s.target.Resume() }
		return "server", resume, s.target.Pause()
	}
	return s.wires[f.Client].strike(f.Kind, pickOf(f.Pick))
}

// healPatience bounds one check whether the servers have recovered.
const healPatience = 5 * time.Second

func (s *dynamoStage) heal(ctx context.Context) error {
	var errs []error
	if s.target.Process() {
		errs = append(errs, s.target.Resume())
	}
	ways := []*dynamodb.Client{s.client}
	for _, w := range s.wires {
		errs = append(errs, w.heal())
		ways = append(ways, dynamoserver.At(w.proxy.URL()).Client())
	}
	for _, way := range ways {
		errs = append(errs, s.serves(ctx, way))
	}
	return errors.Join(errs...)
}

// serves returns when the table answers. The SDK waits between tries.
func (s *dynamoStage) serves(ctx context.Context, way *dynamodb.Client) error {
	for {
		attempt, cancel := context.WithTimeout(ctx, healPatience)
		_, err := way.DescribeTable(attempt, &dynamodb.DescribeTableInput{TableName: &s.table})
		cancel()
		if err == nil || ctx.Err() != nil {
			return err
		}
	}
}

// stall is zero: an item is read where it is written.
func (s *dynamoStage) stall() time.Duration { return 0 }

// residue reads all items. A released key keeps its item, to preserve its token, with a lease of 1 ms.
func (s *dynamoStage) residue(ctx context.Context, keys []string) (left, diverged []string, err error) {
	var items []map[string]types.AttributeValue
	pages := dynamodb.NewScanPaginator(s.client, &dynamodb.ScanInput{TableName: &s.table, ConsistentRead: aws.Bool(true)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, nil, err
		}
		items = append(items, page.Items...)
	}
	return leftItems(items, keys, s.reaper != nil), nil, nil
}

// leftItems says what is wrong with the items of a table when nobody holds anything. If items expire, some may be missing.
func leftItems(items []map[string]types.AttributeValue, keys []string, expire bool) (left []string) {
	missing := slices.Clone(keys)
	for _, item := range items {
		key := attribute(item, dynamoserver.DefaultKey)
		at := slices.Index(missing, key)
		if at < 0 {
			left = append(left, fmt.Sprintf("%s: an item whose key is not in the run", key))
			continue
		}
		missing = slices.Delete(missing, at, at+1)
		if lease := attribute(item, "leaseDurationMs"); lease != "1" {
			left = append(left, fmt.Sprintf("%s: held by %s with token %s, lease %q ms",
				key, attribute(item, "owner"), attribute(item, "fencingToken"), lease))
		}
	}
	for _, key := range missing {
		if !expire {
			left = append(left, key+": no item, so the next token need not be greater")
		}
	}
	return left
}

// attribute is a string or a number of an item, as text.
func attribute(item map[string]types.AttributeValue, name string) string {
	switch v := item[name].(type) {
	case *types.AttributeValueMemberS:
		return v.Value
	case *types.AttributeValueMemberN:
		return v.Value
	}
	return ""
}

// close saves the server's log for failed runs.
func (s *dynamoStage) close() {
	if s.reaper != nil {
		s.reaper.stop()
	}
	for _, w := range s.wires {
		w.close()
	}
	if s.target.Process() {
		_ = s.target.Resume() // it may have ended on its own
	}
	if s.drop != nil {
		ctx, cancel := context.WithTimeout(context.Background(), healPatience)
		defer cancel()
		if err := s.drop(ctx); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	if tail := s.target.LogTail(); s.dir != "" && tail != "" {
		if err := os.WriteFile(filepath.Join(s.dir, "dynamodb.log"), []byte(tail), 0o644); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	s.target.Close()
}
