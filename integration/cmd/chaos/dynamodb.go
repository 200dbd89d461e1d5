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
	// slow is a delay that clients tolerate but must account for: it exceeds the margin of a lease.
	slow = dynamoLease / 8
)

// openDynamo opens a client of DynamoDB, in a client process.
//
// TrustLocalTime stays off: it is safe only while the clocks of all machines agree, and here they are set.
func openDynamo(ctx context.Context, config clientConfig) (locker, error) {
	client, err := dynamolock.New(ctx, dynamoserver.At(config.Login.Endpoint).Client(), &dynamolock.Options{
		Table: config.Login.Table,
		Lease: config.Login.Lease,
		Poll:  dynamoPoll,
		Owner: config.Owner,
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
}

func startDynamo(ctx context.Context, c casting) (stage, error) {
	target, err := dynamoserver.Open(ctx)
	if err != nil {
		return nil, err
	}
	if target.Source() == dynamoserver.AWS {
		return nil, errors.New("AWS's signatures would not match the address of a proxy: unset DYNAMODB_ENDPOINT")
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

// dynamoDeck is the faults that are possible everywhere.
var dynamoDeck = []nemesis.Kind{
	nemesis.LostReply, nemesis.LostRequest, nemesis.LateRequest,
	nemesis.Cut, nemesis.BlackHole, nemesis.OneWayIn, nemesis.OneWayOut, nemesis.HalfOpen, nemesis.Stall,
	nemesis.Throttled, nemesis.Broken,
	nemesis.ClientPaused, nemesis.ClientKilled, nemesis.ClientClosed, nemesis.BreakHolder, nemesis.ClockJump,
}

func (s *dynamoStage) deck() []nemesis.Kind {
	deck := slices.Clone(dynamoDeck)
	if s.target.Process() != nil {
		deck = append(deck, nemesis.ServerPaused)
	}
	return deck
}

func (s *dynamoStage) servers() int { return 1 }

func (s *dynamoStage) login(slot int) login { return s.loginBy(s.wires[slot].proxy.URL()) }

func (s *dynamoStage) direct() login { return s.loginBy(s.target.Endpoint()) }

func (s *dynamoStage) loginBy(endpoint string) login {
	return login{Engine: "dynamodb", Endpoint: endpoint, Table: s.table, Lease: dynamoLease}
}

func (s *dynamoStage) strike(_ context.Context, f nemesis.Fault) (string, func(context.Context) error, error) {
	if f.Kind == nemesis.ServerPaused {
		server := s.target.Process()
		return "server", func(context.Context) error { return server.Resume() }, server.Pause()
	}
	return s.wires[f.Client].strike(f)
}

// healPatience bounds one check whether the servers have recovered.
const healPatience = 5 * time.Second

func (s *dynamoStage) heal(ctx context.Context) error {
	var errs []error
	if server := s.target.Process(); server != nil {
		errs = append(errs, server.Resume())
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
func (s *dynamoStage) residue(ctx context.Context, keys []string) (left []string, err error) {
	missing := slices.Clone(keys)
	pages := dynamodb.NewScanPaginator(s.client, &dynamodb.ScanInput{TableName: &s.table, ConsistentRead: aws.Bool(true)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, item := range page.Items {
			key := attribute(item, dynamoserver.DefaultKey)
			missing = slices.DeleteFunc(missing, func(other string) bool { return other == key })
			if lease := attribute(item, "leaseDurationMs"); lease != "1" {
				left = append(left, fmt.Sprintf("%s: held by %s with token %s, lease %q ms",
					key, attribute(item, "owner"), attribute(item, "fencingToken"), lease))
			}
		}
	}
	for _, key := range missing {
		left = append(left, key+": no item, so the next token need not be greater")
	}
	return left, nil
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
	for _, w := range s.wires {
		w.proxy.Close()
	}
	if server := s.target.Process(); server != nil {
		_ = server.Resume() // it may have ended on its own
	}
	var errs []error
	if s.drop != nil {
		ctx, cancel := context.WithTimeout(context.Background(), healPatience)
		defer cancel()
		errs = append(errs, s.drop(ctx))
	}
	if tail := s.target.LogTail(); s.dir != "" && tail != "" {
		errs = append(errs, os.WriteFile(filepath.Join(s.dir, "dynamodb.log"), []byte(tail), 0o644))
	}
	if err := errors.Join(errs...); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	s.target.Close()
}
