package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"sync"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/memlock"
)

// schedule stands for the work of a leader: it returns when ctx ends.
func schedule(ctx context.Context, token holdfast.Token) error {
	<-ctx.Done()
	return ctx.Err()
}

// runScheduler is called by every process. One at a time schedules.
func runScheduler(ctx context.Context, client *holdfast.Client, address string) error {
	election, err := client.Election("scheduler", &holdfast.ElectionOptions{
		Candidacy: []holdfast.Option{holdfast.WithData([]byte(address))},
	})
	if err != nil {
		return err
	}
	return election.Run(ctx, func(ctx context.Context, term *holdfast.Lock) error {
		return schedule(ctx, term.Token()) // until ctx ends
	})
}

// routeTo sends requests to the leader, until ctx ends.
func routeTo(ctx context.Context, client *holdfast.Client, use func(address string)) error {
	for leader, err := range client.Observe(ctx, "scheduler") {
		switch {
		case err != nil:
			return err
		case leader.Held:
			use(string(leader.Data))
		default:
			use("") // no leader: let requests wait
		}
	}
	return nil
}

// A process leads, is resigned by its operator, and leads again, since no other candidate stands.
func ExampleElection_Resign() {
	ctx, stop := context.WithCancel(context.Background())
	client, err := memlock.New(nil) // stands in for zklock.Dial or dynamolock.New
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close(context.Background())
	election, err := client.Election("leader", nil)
	if err != nil {
		log.Fatal(err)
	}

	leads := make(chan struct{})
	var candidate sync.WaitGroup
	candidate.Go(func() {
		err := election.Run(ctx, func(ctx context.Context, term *holdfast.Lock) error {
			leads <- struct{}{}
			<-ctx.Done()
			fmt.Println("stops:", context.Cause(ctx))
			return ctx.Err()
		})
		fmt.Println("ends:", errors.Is(err, context.Canceled))
	})
	<-leads
	fmt.Println("Resign:", election.Resign(ctx))
	<-leads
	stop()
	candidate.Wait()
	// Output:
	// stops: resigned
	// Resign: <nil>
	// stops: context canceled
	// ends: true
}

// The leader publishes its address; clients observe the election.
func ExampleElection_Observe() {
	ctx, stop := context.WithCancel(context.Background())
	client, err := memlock.New(nil)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close(context.Background())

	var candidate sync.WaitGroup
	candidate.Go(func() {
		if err := runScheduler(ctx, client.Client, "10.0.0.7:8080"); !errors.Is(err, context.Canceled) {
			log.Print(err)
		}
	})
	_ = routeTo(ctx, client.Client, func(address string) {
		if address != "" {
			fmt.Println("the leader is at", address)
			stop()
		}
	})
	candidate.Wait()
	// Output: the leader is at 10.0.0.7:8080
}
