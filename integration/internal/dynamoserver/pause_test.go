package dynamoserver

import (
	"context"
	"errors"
	"net/http/httptrace"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// TestPause guards that a paused server is silent and loses nothing: once resumed, it serves the requests that arrived
// meanwhile, even from a client that has given up.
func TestPause(t *testing.T) {
	t.Parallel()
	target, err := Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(target.Close) // after the table has been deleted
	if err := At(target.Endpoint()).Pause(); !errors.Is(err, ErrNoProcess) {
		t.Errorf("Pause of a server that Open did not start: %v, want ErrNoProcess", err)
	}
	if !target.Process() {
		return
	}
	table, c := target.Table(t), target.Client(noRetry)
	key := map[string]types.AttributeValue{DefaultKey: text("a")}
	if err := target.Pause(); err != nil {
		t.Fatal(err)
	}
	written := make(chan struct{})
	ctx, cancel := context.WithCancel(httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
		WroteRequest: func(httptrace.WroteRequestInfo) { close(written) },
	}))
	defer cancel()
	done := make(chan error, 1)
	go func() {
		_, err := c.PutItem(ctx, &dynamodb.PutItemInput{TableName: aws.String(table), Item: key})
		done <- err
	}()
	<-written
	select {
	case err := <-done:
		t.Errorf("an answer of a paused server: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("the request that was given up: %v, want context.Canceled", err)
	}
	if err := target.Resume(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		got, err := c.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String(table), Key: key, ConsistentRead: aws.Bool(true)})
		if err == nil && len(got.Item) > 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("after Resume: %v, %v; want the item", got, err)
		}
	}
}

// TestAt guards that a target made of a URL reaches the tables of the server behind it.
func TestAt(t *testing.T) {
	t.Parallel()
	target := Find(t)
	if target.Source() == AWS {
		t.Log("AWS does not take any credentials")
		return
	}
	table := target.Table(t)
	_, err := At(target.Endpoint()).Client().DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: aws.String(table)})
	if err != nil {
		t.Error(err)
	}
}
