package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdfast-go/holdfast/dynamolock"
	"github.com/holdfast-go/holdfast/integration/internal/dynamoserver"
)

const (
	// ttlAttribute is the attribute by which items of a run expire, if they do.
	ttlAttribute = "expires"
	// ttlPatience is how long an item may stay unchanged before it expires: longer than a holder that does not renew its
	// time to live can hold a lock. It stands for the day or more that items have in DynamoDB.
	ttlPatience = 3 * dynamoLease / 2
)

// startTTL is startDynamo with Time to Live: a reaper deletes expired items in the server's place.
func startTTL(ctx context.Context, c casting) (stage, error) {
	started, err := startDynamo(ctx, c)
	if err != nil {
		return nil, err
	}
	s := started.(*dynamoStage)
	s.reaper = startReaper(s.client, s.table)
	return s, nil
}

// described is a DynamoDB API that says at once by which attribute items expire, or that they do not if it has none. A client has
// a day to learn of it in spite of all faults, as times to live are at least that long; but those of the reaper are not.
type described struct {
	dynamolock.API
	attribute string
}

func (d described) DescribeTimeToLive(context.Context, *dynamodb.DescribeTimeToLiveInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTimeToLiveOutput, error) {
	out := &dynamodb.DescribeTimeToLiveOutput{}
	if d.attribute != "" {
		out.TimeToLiveDescription = &types.TimeToLiveDescription{AttributeName: &d.attribute, TimeToLiveStatus: types.TimeToLiveStatusEnabled}
	}
	return out, nil
}

// reaper deletes items, held or not, whose time to live has long been unchanged by the reaper's own clock.
type reaper struct {
	client dynamolock.API
	table  string
	cancel context.CancelFunc
	done   sync.WaitGroup
	seen   map[string]expiry // by key
}

// expiry is a time to live, and when it was first seen.
type expiry struct {
	value string
	since time.Time
}

func startReaper(client dynamolock.API, table string) *reaper {
	ctx, cancel := context.WithCancel(context.Background())
	r := &reaper{client: client, table: table, cancel: cancel, seen: make(map[string]expiry)}
	r.done.Go(func() {
		for sleep(ctx, dynamoLease/8) {
			if err := r.pass(ctx); err != nil && ctx.Err() == nil {
				fmt.Fprintf(os.Stderr, "reaper: %v\n", err) // the server is paused, most likely
			}
		}
	})
	return r
}

func (r *reaper) stop() {
	r.cancel()
	r.done.Wait()
}

func (r *reaper) pass(ctx context.Context) error {
	began := time.Now()
	out, err := r.client.Scan(ctx, &dynamodb.ScanInput{TableName: &r.table})
	if err != nil {
		return err
	}
	for _, item := range out.Items {
		key, value := attribute(item, dynamoserver.DefaultKey), attribute(item, ttlAttribute)
		if seen := r.seen[key]; seen.value != value {
			r.seen[key] = expiry{value, time.Now()}
			continue
		} else if value == "" || began.Sub(seen.since) < ttlPatience {
			continue
		}
		if err := r.remove(ctx, item); err != nil {
			return err
		}
	}
	return nil
}

// remove deletes an item unless its time to live has changed since.
func (r *reaper) remove(ctx context.Context, item map[string]types.AttributeValue) error {
	condition := "#expires = :seen"
	_, err := r.client.DeleteItem(ctx, &dynamodb.DeleteItemInput{
		TableName:                 &r.table,
		Key:                       map[string]types.AttributeValue{dynamoserver.DefaultKey: item[dynamoserver.DefaultKey]},
		ConditionExpression:       &condition,
		ExpressionAttributeNames:  map[string]string{"#expires": ttlAttribute},
		ExpressionAttributeValues: map[string]types.AttributeValue{":seen": item[ttlAttribute]},
	})
	if refused := new(types.ConditionalCheckFailedException); errors.As(err, &refused) {
		return nil
	}
	return err
}
