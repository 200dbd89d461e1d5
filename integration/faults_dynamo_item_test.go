package integration_test

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dynamolock"
	"github.com/holdfast-go/holdfast/internal/dynamofake"
)

// bulk is almost the maximum size of an item: 400 KB with names and key.
var bulk = &types.AttributeValueMemberS{Value: strings.Repeat("x", 390_000)}

// D12. List goes on past pages that hold only the items of other programs.
func TestDynamoListPages(t *testing.T) {
	start(t)
	d := newDynamo(t)
	client := d.client(t, longLease)
	prefix := newKey(t)
	want := make(map[string]holdfast.Token)
	for i := range 2 {
		lock := client.take(t, fmt.Sprintf("%s.lock%d", prefix, i))
		want[lock.Key()] = lock.Token()
	}
	for i := range 12 {
		d.put(t, fmt.Sprintf("%s.foreign%d", prefix, i), attributeMap{"data": bulk})
	}
	for _, p := range []string{"", prefix} {
		client.net.ResetCounts()
		got := make(map[string]holdfast.Token)
		for info, err := range client.List(limited(t), p) {
			if err != nil {
				t.Fatal(err)
			}
			got[info.Key] = info.Token
		}
		if !maps.Equal(got, want) {
			t.Errorf("List(%q) has %v, want %v", p, got, want)
		}
		// At least two of the four pages have no lock.
		if n := client.net.Count("Scan"); n < 4 {
			t.Errorf("List(%q) took %d pages: too few to test anything", p, n)
		}
	}
}

// D12. List reports an item that looks like a lock but is corrupt, and goes on to the
// others.
func TestDynamoListBadItem(t *testing.T) {
	start(t)
	d := newDynamo(t)
	client := d.client(t, longLease)
	lock := client.take(t, newKey(t))
	d.put(t, "bad", attributeMap{"guid": &types.AttributeValueMemberN{Value: "1"}})
	seen, failed := 0, error(nil)
	for info, err := range client.List(limited(t), "") {
		switch {
		case failed != nil:
			t.Errorf("List yields %+v, %v after the error", info, err)
		case err != nil:
			failed = err
		case info.Key == lock.Key():
			seen++
		}
	}
	if seen != 1 {
		t.Errorf("the lock was listed %d times", seen)
	}
	isItemError(t, failed, "guid")
}

func isItemError(t *testing.T, err error, attribute string) {
	t.Helper()
	var bad *dynamolock.ItemError
	if !errors.As(err, &bad) || !errors.Is(err, dynamolock.ErrItem) || bad.Attribute != attribute {
		t.Errorf("error is %v, want an ItemError for %s", err, attribute)
	}
}

// foreign are items of other programs, by the attribute that shows it.
func foreign() map[string]attributeMap {
	s := func(v string) types.AttributeValue { return &types.AttributeValueMemberS{Value: v} }
	n := func(v string) types.AttributeValue { return &types.AttributeValueMemberN{Value: v} }
	lock := func(change attributeMap) attributeMap {
		item := attributeMap{
			"fencingToken": n("7"), "leaseDurationMs": n("1"), "owner": s("stranger"),
			"guid": &types.AttributeValueMemberB{Value: []byte("guid")}, "lockAcquiredTimeUnixMs": n("1"),
		}
		maps.Copy(item, change)
		return item
	}
	return map[string]attributeMap{
		"guid":                   lock(attributeMap{"guid": n("7")}),
		"fencingToken":           lock(attributeMap{"fencingToken": s("7")}),
		"leaseDurationMs":        lock(attributeMap{"leaseDurationMs": s("1")}),
		"owner":                  lock(attributeMap{"owner": n("7")}),
		"lockAcquiredTimeUnixMs": lock(attributeMap{"lockAcquiredTimeUnixMs": s("now")}),
	}
}

// A client does not acquire an item that is not a lock, not even if it is marked as
// released. A holder finds out at its next heartbeat.
func TestDynamoForeignItem(t *testing.T) {
	t.Parallel()
	items := foreign()
	for attribute, item := range items {
		t.Run(attribute, func(t *testing.T) {
			start(t)
			d := newDynamo(t)
			client := d.client(t, shortLease)
			key := newKey(t)
			lock := client.take(t, key)
			d.put(t, key, item)
			receive(t, "the lock ends", lock.Done())
			if err := lock.Err(); !errors.Is(err, holdfast.ErrBroken) {
				t.Errorf("it ended with %v, want %v", err, holdfast.ErrBroken)
			}
			for _, acquire := range map[string]func() error{
				"Acquire":    func() error { _, err := client.Acquire(limited(t), key); return err },
				"TryAcquire": func() error { _, err := client.TryAcquire(limited(t), key); return err },
				"Inspect":    func() error { _, err := client.Inspect(limited(t), key); return err },
			} {
				isItemError(t, acquire(), attribute)
			}
			want := d.key(key)
			maps.Copy(want, item)
			if got := d.item(t, key); !reflect.DeepEqual(wire(got), wire(want)) {
				t.Errorf("the item is %v now, and was %v", wire(got), wire(want))
			}
		})
	}
	t.Run("bulk", func(t *testing.T) {
		start(t)
		d := newDynamo(t)
		client := d.client(t, shortLease)
		key := newKey(t)
		d.put(t, key, attributeMap{"data": bulk})
		_, err := client.Acquire(limited(t), key)
		isItemError(t, err, "guid")
		if got := d.item(t, key); len(got) != 2 {
			t.Errorf("the item has %d attributes now", len(got))
		}
	})
}

// A holder whose item was deleted finds out at its next heartbeat, and creates no new
// item.
func TestDynamoItemDeleted(t *testing.T) {
	start(t)
	d := newDynamo(t)
	client := d.client(t, longLease, quickBeats)
	key := newKey(t)
	lock := client.take(t, key)
	if _, err := d.server.DeleteItem(limited(t), &dynamodb.DeleteItemInput{TableName: &d.table, Key: d.key(key)}); err != nil {
		t.Fatal(err)
	}
	receive(t, "the lock ends", lock.Done()) // long before its lease does
	if err := lock.Err(); !errors.Is(err, holdfast.ErrBroken) {
		t.Errorf("it ended with %v, want %v", err, holdfast.ErrBroken)
	}
	if err := lock.Release(limited(t)); !errors.Is(err, holdfast.ErrBroken) {
		t.Errorf("Release returns %v, want %v", err, holdfast.ErrBroken)
	}
	if item := d.item(t, key); item != nil {
		t.Errorf("the item is there again: %v", wire(item))
	}
	next := client.take(t, key)
	if next.Token() <= lock.Token() {
		t.Errorf("tokens fall from %v to %v", lock.Token(), next.Token())
	}
}

// A server with transactions may not be available; the fake is.
type transactor struct {
	dynamoAPI
	table string
}

func newTransactor(t *testing.T) transactor {
	t.Helper()
	d := newDynamo(t)
	if d.target.Transactions() {
		return transactor{d.server, d.table}
	}
	t.Logf("%s has no TransactWriteItems: this runs on the fake", d.target.Source())
	fake := dynamofake.New().Client()
	if err := dynamolock.CreateTable(limited(t), fake, &dynamolock.Options{Table: d.table}); err != nil {
		t.Fatal(err)
	}
	return transactor{fake, d.table}
}

// A transaction with a lock's check succeeds while the table has that grant, and fails
// once the grant has ended, however it ended.
func TestDynamoConditionCheck(t *testing.T) {
	start(t)
	server := newTransactor(t)
	open := func(owner string) *dynamolock.Client {
		client, err := dynamolock.New(limited(t), server, &dynamolock.Options{Table: server.table, Lease: longLease, Owner: owner})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = client.Close(limited(t)) })
		return client
	}
	client, other := open("worker"), open("worker")
	write := func(check *types.ConditionCheck) error {
		_, err := server.TransactWriteItems(limited(t), &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{
			{ConditionCheck: check},
			{Put: &types.Put{TableName: &server.table, Item: attributeMap{"id": &types.AttributeValueMemberS{Value: "data"}}}},
		}})
		return err
	}
	for name, end := range map[string]func(*holdfast.Lock){
		"released": func(lock *holdfast.Lock) { release(t, lock) },
		"released and granted again": func(lock *holdfast.Lock) {
			release(t, lock)
			if _, err := client.Acquire(limited(t), lock.Key()); err != nil {
				t.Fatal(err)
			}
		},
		"reclaimed": func(lock *holdfast.Lock) {
			if _, err := other.Acquire(limited(t), lock.Key(), holdfast.WithOwner("worker"), holdfast.WithReclaim()); err != nil {
				t.Fatal(err)
			}
		},
		"broken": func(lock *holdfast.Lock) {
			info, err := other.Inspect(limited(t), lock.Key())
			if err == nil {
				err = other.Break(limited(t), info)
			}
			if err != nil {
				t.Fatal(err)
			}
		},
	} {
		lock, err := client.Acquire(limited(t), newKey(t))
		if err != nil {
			t.Fatal(err)
		}
		check, err := client.ConditionCheck(lock)
		if err != nil {
			t.Fatal(err)
		}
		if err := write(check); err != nil {
			t.Errorf("%s: before that: %v", name, err)
		}
		end(lock)
		var canceled *types.TransactionCanceledException
		if err := write(check); !errors.As(err, &canceled) || *canceled.CancellationReasons[0].Code != "ConditionalCheckFailed" {
			t.Errorf("%s: the transaction ended with %v", name, err)
		}
	}
}
