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

// A message is delivered again until it is acknowledged with true.
type message struct {
	text string
	ack  chan<- bool
}

// consume takes messages while it holds the lock of their stream. It observes the lock,
// and takes over the stream when nobody has it any more. One goroutine owns all state and
// communicates over channels only.
func consume(ctx context.Context, client *holdfast.Client, name string, messages <-chan message, says chan<- string) {
	events := client.Events()
	defer events.Close()
	news := make(chan holdfast.Info)
	go func() {
		for info, err := range client.Observe(ctx, "stream") {
			if err != nil {
				return // ctx has ended
			}
			if info.Stale {
				continue // the newest state follows
			}
			select {
			case news <- info:
			case <-ctx.Done():
			}
		}
	}()
	granted := make(chan *holdfast.Lock)
	acquire := func() {
		lock, err := client.Acquire(ctx, "stream", holdfast.WithOwner(name)) // others may be quicker: then it waits
		if err != nil {
			return // ctx has ended
		}
		select {
		case granted <- lock:
		case <-ctx.Done(): // closing the client releases it
		}
	}

	var lock *holdfast.Lock // nil while another has the stream
	var acquiring, free bool
	holder := "nobody" // the last other one
	for {
		var next <-chan message
		switch {
		case lock != nil:
			next = messages
		case free && !acquiring:
			acquiring = true
			go acquire()
		}
		select {
		case info := <-news:
			free = !info.Held
			if info.Held && info.Owner != name {
				holder = info.Owner
				says <- name + " stands by for " + holder
			}
		case lock = <-granted:
			acquiring = false
			says <- name + " takes over from " + holder
		case m := <-next:
			live := lock.Err() == nil // checks the clocks
			if live {
				says <- name + " handles " + m.text
			}
			m.ack <- live
		case <-events.Lost():
			lock = nil
		case <-ctx.Done():
			return
		}
	}
}

// A consumer is cut off from its engine. It stops by itself when its lease is over, and
// the other, which has observed it, takes over.
func Example_eventConsumer() {
	ctx, stop := context.WithCancel(context.Background())
	store := memlock.NewStore() // stands in for a server
	messages, says := make(chan message), make(chan string)
	var consumers sync.WaitGroup
	defer consumers.Wait()
	defer stop()
	start := func(name string) *memlock.Client {
		client, err := memlock.New(&memlock.Options{Store: store, Lease: time.Second})
		if err != nil {
			log.Fatal(err)
		}
		consumers.Go(func() {
			defer client.Close(context.Background())
			consume(ctx, client.Client, name, messages, says)
		})
		return client
	}
	deliver := func(text string) {
		ack := make(chan bool)
		go func() {
			for done := false; !done; done = <-ack {
				messages <- message{text, ack}
			}
		}()
		fmt.Println(<-says)
	}

	ann := start("ann")
	fmt.Println(<-says)
	start("bea")
	fmt.Println(<-says)
	deliver("one")
	store.Cut(ann)
	fmt.Println(<-says)
	deliver("two")
	// Output:
	// ann takes over from nobody
	// bea stands by for ann
	// ann handles one
	// bea takes over from ann
	// bea handles two
}
