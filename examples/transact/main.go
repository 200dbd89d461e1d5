// Transact writes to DynamoDB only while a lock is held: the write and a check of
// the lock are one transaction, so that the write cannot commit once the lock is
// lost, however late it arrives. An operator breaks the lock while a worker is
// paused, and the worker's next write is refused.
//
//	go run ./examples/transact                                      on an imitation of DynamoDB, in memory
//	go run ./examples/transact -endpoint http://127.0.0.1:8000      on a server that has transactions, such as DynamoDB Local
//	go run ./examples/transact -engine dynamodb                     on AWS
//
// Where the protected data is elsewhere, example fenced shows what to do. On
// ZooKeeper, zklock's Guard is the same within a Multi.
package main

import (
	"context"
	"errors"
	"flag"
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
)

const (
	key     = "examples/transact/account-7"
	account = key + "/balance" // an item of its own: a transaction takes each only once
)

// errRefused is what a write fails with whose lock was not held any more.
var errRefused = errors.New("refused by DynamoDB, ConditionalCheckFailed: the lock is not held any more")

func main() {
	flags := engine.AddFlags(flag.CommandLine)
	flag.Parse()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	e, err := flags.Open()
	if err == nil {
		err = run(ctx, os.Stdout, e)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, e *engine.Engine) error {
	switch e.Name {
	case "memory":
		e = engine.DynamoFake()
		e.Where += "; with -endpoint or -engine dynamodb, on a real one"
	case "zookeeper":
		return errors.New("transactions of DynamoDB cannot check a lock that ZooKeeper has")
	}
	fmt.Fprintf(out, "on %s\n", e.Where)
	worker, err := e.NewClient(ctx, "worker")
	if err != nil {
		return err
	}
	defer worker.Close(ctx)
	operator, err := e.NewClient(ctx, "operator")
	if err != nil {
		return err
	}
	defer operator.Close(ctx)

	lock, err := worker.Acquire(ctx, key)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "worker    holds the lock, token %d\n", lock.Token())
	first, err := transaction(worker, lock, 100)
	if err != nil {
		return err
	}
	if err := commit(ctx, worker.API, first); err != nil {
		return err
	}
	fmt.Fprintln(out, "worker    writes a balance of 100: committed, as the lock is held")

	// The transaction is made while the lock is held. What counts is that the
	// server evaluates the check at the moment of the write.
	late, err := transaction(worker, lock, 150)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "worker    is about to write a balance of 150, and is paused")
	info, err := operator.Inspect(ctx, key)
	if err != nil {
		return err
	}
	if err := operator.Dynamo.BreakNow(ctx, info); err != nil {
		return err
	}
	fmt.Fprintf(out, "operator  breaks the lock of %q\n", info.Owner)

	err = commit(ctx, worker.API, late)
	fmt.Fprintf(out, "worker    goes on with its write: %v\n", err)
	if !errors.Is(err, errRefused) {
		return errors.New("the late write was not refused")
	}
	select {
	case <-lock.Done(): // at the next heartbeat
	case <-ctx.Done():
		return ctx.Err()
	}
	fmt.Fprintf(out, "worker    hears of it: %v\n", lock.Err())
	balance, err := read(ctx, worker.API, *late.TransactItems[0].ConditionCheck.TableName)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "          the balance is %d\n", balance)
	return nil
}

// transaction writes a balance if the lock is held when it is carried out. The
// balance may as well be in another table of the same account and region.
func transaction(client *engine.Client, lock *holdfast.Lock, balance int) (*dynamodb.TransactWriteItemsInput, error) {
	check, err := client.Dynamo.ConditionCheck(lock)
	if err != nil {
		return nil, err
	}
	return &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{
		{ConditionCheck: check},
		{Put: &types.Put{TableName: check.TableName, Item: map[string]types.AttributeValue{
			"id":      &types.AttributeValueMemberS{Value: account},
			"balance": &types.AttributeValueMemberN{Value: strconv.Itoa(balance)},
		}}},
	}}, nil
}

// commit sends a transaction of which the one condition is the check of a lock.
func commit(ctx context.Context, api engine.DynamoAPI, in *dynamodb.TransactWriteItemsInput) error {
	for {
		_, err := api.TransactWriteItems(ctx, in)
		var cancelled *types.TransactionCanceledException
		var answer smithy.APIError
		switch {
		case errors.As(err, &cancelled) && has(cancelled, "TransactionConflict"):
			// It met another write of an item at the same moment, which may
			// be a heartbeat of the lock.
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
