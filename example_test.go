package holdfast_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dynamolock"
	"github.com/holdfast-go/holdfast/memlock"
	"github.com/holdfast-go/holdfast/zklock"
)

// README.md and doc.go show the bodies of functions in this file, word for
// word: "make lint" compares them.

func Example() {
	ctx := context.Background()
	client, err := memlock.New(nil)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close(ctx)

	lock, err := client.Acquire(ctx, "orders/42")
	if err != nil {
		log.Fatal(err)
	}
	defer lock.Release(ctx)

	fmt.Println(lock.Key(), "held with token", lock.Token(), "live:", lock.Err() == nil)
	// Output: orders/42 held with token 1 live: true
}

func writeReport(context.Context, holdfast.Token) error { return nil }

// reportNightly is the first thing that readers see; it needs a server.
func reportNightly(ctx context.Context) error {
	client, err := zklock.Dial(ctx, []string{"127.0.0.1:2181"}, nil)
	if err != nil {
		return err
	}
	defer client.Close(context.WithoutCancel(ctx))

	return client.Do(ctx, "reports/nightly", func(ctx context.Context, lock *holdfast.Lock) error {
		// ctx ends when the lock does. The database refuses tokens that are
		// smaller than the greatest it has seen.
		return writeReport(ctx, lock.Token())
	})
}

var _ = reportNightly

func work(<-chan struct{}, <-chan holdfast.Event, func() error) error { return nil }

// firstSteps is the example of the package's documentation.
func firstSteps(ctx context.Context) error {
	client, err := zklock.Dial(ctx, []string{"127.0.0.1:2181"}, nil)
	if err != nil {
		return err
	}
	defer client.Close(ctx)
	events := client.Events() // channels: Ready, Disconnected, TTLExpired, Lost, Asked

	err = client.Do(ctx, "reports/nightly", func(ctx context.Context, lock *holdfast.Lock) error {
		return writeReport(ctx, lock.Token()) // ctx ends with the lock; the database refuses smaller tokens
	})
	if err != nil {
		return err
	}

	lock, err := client.Acquire(ctx, "orders/42") // waits; TryAcquire fails at once if the key is held
	if err != nil {
		return err
	}
	defer lock.Release(ctx)
	return work(lock.Done(), events.Lost(), lock.Err) // Err is nil while the lock is live
}

var _ = firstSteps

// twoClients returns clients of one store.
func twoClients() (alice, bob *memlock.Client) {
	store := memlock.NewStore()
	for _, c := range []struct {
		client **memlock.Client
		owner  string
	}{{&alice, "alice"}, {&bob, "bob"}} {
		client, err := memlock.New(&memlock.Options{Store: store, Owner: c.owner})
		if err != nil {
			log.Fatal(err)
		}
		*c.client = client
	}
	return alice, bob
}

func ExampleClient_TryAcquire() {
	ctx := context.Background()
	alice, bob := twoClients()
	defer alice.Close(ctx)
	defer bob.Close(ctx)
	if _, err := alice.Acquire(ctx, "orders/42", holdfast.WithData([]byte("shift 3"))); err != nil {
		log.Fatal(err)
	}

	_, err := bob.TryAcquire(ctx, "orders/42")

	var held *holdfast.HeldError
	if errors.As(err, &held) {
		fmt.Printf("%s has it, with the note %q\n", held.Holder.Owner, held.Holder.Data)
	}
	fmt.Println(errors.Is(err, holdfast.ErrHeld))
	// Output:
	// alice has it, with the note "shift 3"
	// true
}

func ExampleLock_SetData() {
	ctx := context.Background()
	alice, bob := twoClients()
	defer alice.Close(ctx)
	defer bob.Close(ctx)
	lock, err := alice.Acquire(ctx, "leader", holdfast.WithData([]byte("10.0.0.7:8080")))
	if err != nil {
		log.Fatal(err)
	}

	// The leader moves. It stays the leader, with the same token.
	if err := lock.SetData(ctx, []byte("10.0.0.7:9090")); err != nil {
		log.Fatal(err)
	}

	info, err := bob.Inspect(ctx, "leader")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s leads at %s\n", info.Owner, info.Data)
	fmt.Println(info.Token == lock.Token())
	// Output:
	// alice leads at 10.0.0.7:9090
	// true
}

func ExampleClient_Do() {
	ctx := context.Background()
	client, err := memlock.New(nil)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close(ctx)

	err = client.Do(ctx, "reports/nightly", func(ctx context.Context, lock *holdfast.Lock) error {
		if err := lock.Extend(time.Millisecond); err != nil { // the TTL is over before the work is
			return err
		}
		<-ctx.Done()
		fmt.Println("stop working:", errors.Is(context.Cause(ctx), holdfast.ErrTTLExpired))
		return nil
	})
	fmt.Println("no success:", errors.Is(err, holdfast.ErrTTLExpired))
	// Output:
	// stop working: true
	// no success: true
}

// follow reacts to all that can happen to a client, until ctx ends.
func follow(ctx context.Context, client *holdfast.Client) {
	events := client.Events()
	defer events.Close()
	for {
		select {
		case <-events.Ready():
			log.Print("the engine can be reached")
		case <-events.Disconnected():
			log.Print("it cannot; locks live on until their Deadline")
		case e := <-events.TTLExpired():
			log.Printf("%s held for too long, token %d", e.Key, e.Token)
		case e := <-events.Lost():
			log.Printf("%s lost: %v", e.Key, e.Err)
		case e := <-events.Asked():
			log.Printf("%s: somebody asks for it", e.Key)
		case <-events.Done(): // the client is closed
			return
		case <-ctx.Done():
			return
		}
	}
}

var _ = follow

func ExampleClient_Events() {
	ctx := context.Background()
	client, err := memlock.New(nil)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close(ctx)
	events := client.Events()
	defer events.Close()
	if _, err := client.Acquire(ctx, "orders/42", holdfast.WithTTL(time.Millisecond)); err != nil {
		log.Fatal(err)
	}

	for range 2 {
		select {
		case <-events.Ready(): // the state of the moment comes at once
			fmt.Println("the engine can be reached")
		case e := <-events.TTLExpired():
			fmt.Println("held for too long:", e.Key)
		case e := <-events.Lost():
			fmt.Println("lost:", e.Key, e.Err)
		}
	}
	// Unordered output:
	// the engine can be reached
	// held for too long: orders/42
}

func ExampleClient_Break() {
	ctx := context.Background()
	alice, operator := twoClients()
	defer alice.Close(ctx)
	defer operator.Close(ctx)
	lock, err := alice.Acquire(ctx, "orders/42")
	if err != nil {
		log.Fatal(err)
	}

	info, err := operator.Inspect(ctx, "orders/42")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("held by", info.Owner)
	if err := operator.Break(ctx, info); err != nil {
		log.Fatal(err)
	}

	<-lock.Done()
	fmt.Println(errors.Is(lock.Err(), holdfast.ErrBroken))
	// Output:
	// held by alice
	// true
}

func ExampleWithReclaim() {
	ctx := context.Background()
	before, after := twoClients() // a process, and the same one after its restart
	defer before.Close(ctx)
	defer after.Close(ctx)
	if _, err := before.Acquire(ctx, "node-7/disk", holdfast.WithOwner("node-7")); err != nil {
		log.Fatal(err)
	}

	lock, err := after.Acquire(ctx, "node-7/disk",
		holdfast.WithOwner("node-7"), holdfast.WithReclaim())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(lock.Owner(), "has it again, without waiting for its old lease")
	// Output: node-7 has it again, without waiting for its old lease
}

// bookOrder writes to ZooKeeper itself only while the lock is held.
func bookOrder(client *zklock.Client, lock *holdfast.Lock, order []byte) error {
	guard, err := client.Guard(lock)
	if err != nil {
		return err
	}
	_, err = client.Conn().Multi(guard, &zk.SetDataRequest{Path: "/orders/42", Data: order, Version: -1})
	return err
}

var _ = bookOrder

// withRenewedCertificates uses files as they are when it connects.
func withRenewedCertificates(ctx context.Context) (*zklock.Client, error) {
	options := &zklock.Options{TLSConfig: func() (*tls.Config, error) { // called for each connection
		pair, err := tls.LoadX509KeyPair("client.pem", "client-key.pem")
		if err != nil {
			return nil, err
		}
		authorities, err := os.ReadFile("ca.pem")
		if err != nil {
			return nil, err
		}
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM(authorities) {
			return nil, errors.New("ca.pem has no certificate")
		}
		return &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}}, nil
	}}
	return zklock.Dial(ctx, []string{"zk1:2281", "zk2:2281", "zk3:2281"}, options)
}

// onDynamoDB makes the table, if need be, and a client of it.
func onDynamoDB(ctx context.Context, ddb *dynamodb.Client) (*dynamolock.Client, error) {
	options := &dynamolock.Options{Table: "locks", Lease: 20 * time.Second}
	if err := dynamolock.CreateTable(ctx, ddb, options); err != nil { // or by your own means
		return nil, err
	}
	return dynamolock.New(ctx, ddb, options)
}

var _, _ = onDynamoDB, withRenewedCertificates

// bookItem writes to DynamoDB only while the lock is held.
func bookItem(ctx context.Context, ddb *dynamodb.Client, client *dynamolock.Client, lock *holdfast.Lock, order *types.Put) error {
	check, err := client.ConditionCheck(lock)
	if err != nil {
		return err
	}
	_, err = ddb.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{
		TransactItems: []types.TransactWriteItem{{ConditionCheck: check}, {Put: order}},
	})
	return err
}

var _ = bookItem
