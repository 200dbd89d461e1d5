package holdfast_test

import (
	"context"
	"fmt"
	"log"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/memlock"
)

// A message comes again until it has been acknowledged by true.
type message struct {
	text string
	ack  chan<- bool
}

// consume takes messages while it has the lock of their stream. One goroutine
// owns all state, and learns everything from channels.
func consume(ctx context.Context, client *holdfast.Client, messages <-chan message) {
	events := client.Events()
	defer events.Close()
	granted := make(chan *holdfast.Lock)
	acquire := func() {
		lock, err := client.Acquire(ctx, "stream", holdfast.WithTTL(time.Minute)) // then others have a turn
		if err != nil {
			return // ctx has ended
		}
		select {
		case granted <- lock:
		case <-ctx.Done(): // closing the client releases it
		}
	}
	go acquire()

	var lock *holdfast.Lock // nil while it has no turn
	for {
		var next <-chan message
		if lock != nil {
			next = messages
		}
		select {
		case lock = <-granted:
			fmt.Println("has the stream")
		case m := <-next:
			live := lock.Err() == nil // it asks the clocks
			if live {
				fmt.Println("message", m.text)
			}
			m.ack <- live
		case e := <-events.TTLExpired():
			fmt.Println("gives way:", e.Err)
			lock = nil
			go acquire() // to the end of the queue
		case e := <-events.Lost():
			fmt.Println("stops:", e.Err)
			lock = nil
			go acquire()
		case <-ctx.Done():
			return
		}
	}
}

// A program that is built around a select has the stream, loses it when its
// session ends, and goes on when it has it again.
func Example_eventConsumer() {
	ctx, stop := context.WithCancel(context.Background())
	store := memlock.NewStore() // in the place of a server
	client, err := memlock.New(&memlock.Options{Store: store})
	if err != nil {
		log.Fatal(err)
	}
	messages := make(chan message)
	var consumer sync.WaitGroup
	consumer.Go(func() { consume(ctx, client.Client, messages) })
	defer func() {
		stop()
		consumer.Wait()
		client.Close(context.Background())
	}()

	deliver := func(text string) {
		ack := make(chan bool)
		for done := false; !done; done = <-ack {
			messages <- message{text, ack}
		}
	}
	deliver("one")
	deliver("two")
	store.Expire(client) // the session ends, as if the client had been cut off for too long
	for again := false; !again; time.Sleep(time.Millisecond) {
		info, err := client.Inspect(ctx, "stream")
		if err != nil {
			log.Fatal(err)
		}
		again = info.Token == 2
	}
	deliver("three")
	// Output:
	// has the stream
	// message one
	// message two
	// stops: lock "stream" (token 1) lost: session expired
	// has the stream
	// message three
}
