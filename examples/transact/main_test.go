package main

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/holdfast-go/holdfast/examples/internal/engine"
)

// The example needs DynamoDB, and says so. (What it shows there is tested with a server, in integration.)
func TestNotWithoutDynamoDB(t *testing.T) {
	var out bytes.Buffer
	for _, e := range []*engine.Engine{engine.Memory(), engine.ZooKeeper("127.0.0.1:1")} {
		if err := run(t.Context(), &out, e); err == nil || !strings.Contains(err.Error(), "-endpoint") || out.Len() > 0 {
			t.Errorf("%s: %v, %q", e.Name, err, out.String())
		}
	}
}

func TestCommit(t *testing.T) {
	cancelled := func(codes ...string) error {
		e := &types.TransactionCanceledException{}
		for _, code := range codes {
			e.CancellationReasons = append(e.CancellationReasons, types.CancellationReason{Code: aws.String(code)})
		}
		return e
	}
	other := errors.New("something else")
	unknown := &smithy.GenericAPIError{Code: "UnknownOperationException"}
	for _, test := range []struct {
		name    string
		answers []error
		want    error
		text    string
	}{
		{"committed", []error{nil}, nil, ""},
		{"lock lost", []error{cancelled("ConditionalCheckFailed", "None")}, errRefused, ""},
		{"met a heartbeat", []error{cancelled("TransactionConflict", "None"), nil}, nil, ""},
		{"met the loss", []error{cancelled("TransactionConflict", "None"), cancelled("ConditionalCheckFailed", "None")}, errRefused, ""},
		{"no transactions", []error{unknown}, unknown, "this server has no transactions"},
		{"other failure", []error{other}, other, ""},
		{"cancelled for no known reason", []error{cancelled()}, nil, "TransactionCanceledException"},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := &answering{answers: test.answers}
				err := commit(t.Context(), api, nil)
				if test.want != nil && !errors.Is(err, test.want) || test.want == nil && test.text == "" && err != nil {
					t.Errorf("%v, want %v", err, test.want)
				}
				if test.text != "" && (err == nil || !strings.Contains(err.Error(), test.text)) {
					t.Errorf("%v, want something with %q", err, test.text)
				}
				if len(api.answers) > 0 {
					t.Errorf("%d answers were not asked for", len(api.answers))
				}
			})
		})
	}
}

// answering is a service with prepared answers.
type answering struct {
	engine.DynamoAPI

	answers []error
}

func (a *answering) TransactWriteItems(context.Context, *dynamodb.TransactWriteItemsInput, ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	err := a.answers[0]
	a.answers = a.answers[1:]
	return nil, err
}
