// Transact writes to DynamoDB only while a lock is held: one transaction checks the
// lock and writes, so the write cannot commit once the lock is lost, however late
// it arrives. A holder is paused between its last check of the lock and its write,
// which arrives when somebody else holds the lock: first without the check, then
// with it.
//
//	go run ./examples/transact -endpoint http://127.0.0.1:8000      on a server that has transactions, such as DynamoDB Local
//	go run ./examples/transact -engine dynamodb                     on AWS
//
// Example guard is the same on ZooKeeper; for data elsewhere, see the examples
// fenced and fencing.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/examples/internal/engine"
	"github.com/holdfast-go/holdfast/examples/internal/late"
)

const (
	key     = "examples/transact/account-7"
	account = key + "/balance" // an item of its own: a transaction takes each only once
)

// errRefused: the lock was no longer held.
var errRefused = errors.New("refused by DynamoDB, ConditionalCheckFailed: the lock is not held any more")

func main() {
	engine.Main(func(ctx context.Context, e *engine.Engine) error { return run(ctx, os.Stdout, e) })
}

func run(ctx context.Context, out io.Writer, e *engine.Engine) error {
	if e.Name != "dynamodb" {
		return errors.New("this example writes to DynamoDB: give the -endpoint of a server that has transactions, such as DynamoDB Local at" +
			" http://127.0.0.1:8000, or -engine dynamodb for AWS")
	}
	fmt.Fprintf(out, "on %s\n", e.Where)
	accountant, err := e.NewClient(ctx, "accountant")
	if err != nil {
		return err
	}
	defer accountant.Close(ctx)
	table := accountant.Dynamo.Options().Table

	for _, act := range []struct {
		title   string
		turn    late.Turn
		refused bool
		balance int
	}{
		{"no check", unchecked, false, 70},
		{"a check", checked, true, 150},
	} {
		fmt.Fprintf(out, "%s:\n", act.title)
		if err := set(ctx, accountant.API, table, 100); err != nil {
			return err
		}
		refused, err := late.Write(ctx, out, e, key, act.turn)
		if err != nil {
			return err
		}
		balance, err := read(ctx, accountant.API, table)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "       the balance was 100, bob has added 50, and it is %d\n", balance)
		if errors.Is(refused, errRefused) != act.refused || balance != act.balance {
			return fmt.Errorf("the balance was to be %d: %w", act.balance, refused)
		}
	}
	return nil
}

// unchecked writes whatever has happened to the lock since the last check.
func unchecked(ctx context.Context, client *engine.Client, _ *holdfast.Lock) (func(context.Context) error, error) {
	table := client.Dynamo.Options().Table
	balance, err := read(ctx, client.API, table)
	return func(ctx context.Context) error { return set(ctx, client.API, table, balance+amount(client)) }, err
}

// checked writes only if the lock is held at the moment of the write, whenever the
// transaction was made: DynamoDB evaluates the check when it writes.
func checked(ctx context.Context, client *engine.Client, lock *holdfast.Lock) (func(context.Context) error, error) {
	check, err := client.Dynamo.ConditionCheck(lock)
	if err != nil {
		return nil, err
	}
	balance, err := read(ctx, client.API, *check.TableName)
	return func(ctx context.Context) error {
		return commit(ctx, client.API, transaction(check, balance+amount(client)))
	}, err
}

// transaction writes a balance if the check of a lock succeeds. The balance may be
// in another table of the same account and region.
func transaction(check *types.ConditionCheck, balance int) *dynamodb.TransactWriteItemsInput {
	return &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{
		{ConditionCheck: check},
		{Put: &types.Put{TableName: check.TableName, Item: map[string]types.AttributeValue{
			"id":      &types.AttributeValueMemberS{Value: account},
			"balance": &types.AttributeValueMemberN{Value: strconv.Itoa(balance)},
		}}},
	}}
}

// commit sends a transaction whose only condition is the check of a lock.
func commit(ctx context.Context, api engine.DynamoAPI, in *dynamodb.TransactWriteItemsInput) error {
	for {
		_, err := api.TransactWriteItems(ctx, in)
		var cancelled *types.TransactionCanceledException
		var answer smithy.APIError
		switch {
		case errors.As(err, &cancelled) && has(cancelled, "TransactionConflict"):
			// Another write of an item was under way, perhaps a heartbeat of
			// the lock.
			select {
			case <-time.After(50 * time.Millisecond):
			case <-ctx.Done():
				return ctx.Err()
			}
		case errors.As(err, &cancelled) && has(cancelled, "ConditionalCheckFailed"):
			return errRefused
		case errors.As(err, &answer) && answer.ErrorCode() == "UnknownOperationException":
			return fmt.Errorf("this server has no transactions, which this example is about: %w", err)
		default:
			return err
		}
	}
}

func has(cancelled *types.TransactionCanceledException, code string) bool {
	for _, reason := range cancelled.CancellationReasons {
		if aws.ToString(reason.Code) == code {
			return true
		}
	}
	return false
}

func read(ctx context.Context, api engine.DynamoAPI, table string) (int, error) {
	out, err := api.GetItem(ctx, &dynamodb.GetItemInput{
		TableName:      &table,
		Key:            map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: account}},
		ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		return 0, err
	}
	balance, ok := out.Item["balance"].(*types.AttributeValueMemberN)
	if !ok {
		return 0, fmt.Errorf("item %q has no balance", account)
	}
	return strconv.Atoi(balance.Value)
}

// set writes without a check.
func set(ctx context.Context, api engine.DynamoAPI, table string, balance int) error {
	_, err := api.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName:                 &table,
		Key:                       map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: account}},
		UpdateExpression:          aws.String("SET #b = :b"),
		ExpressionAttributeNames:  map[string]string{"#b": "balance"},
		ExpressionAttributeValues: map[string]types.AttributeValue{":b": &types.AttributeValueMemberN{Value: strconv.Itoa(balance)}},
	})
	return err
}

// amount is what a client books.
func amount(c *engine.Client) int { return map[string]int{"alice": -30, "bob": 50}[c.Owner()] }
