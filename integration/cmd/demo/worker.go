package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/zklock"
)

// worker is an event-driven program: one goroutine, one select. It always wants
// the lock. Commands come on its standard input, whose end means that the demo
// is gone.
type worker struct {
	client *zklock.Client

	out sync.Mutex
	enc *json.Encoder

	granted  chan *holdfast.Lock
	failed   chan error
	lock     *holdfast.Lock // nil while it waits
	writes   sync.WaitGroup
	commands chan string
}

func beWorker(name, server string, session time.Duration) error {
	w := &worker{
		enc:      json.NewEncoder(os.Stdout),
		granted:  make(chan *holdfast.Lock, 1),
		failed:   make(chan error, 1),
		commands: make(chan string),
	}
	go w.listen()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	client, err := zklock.Dial(ctx, []string{server}, &zklock.Options{
		Root:           root,
		SessionTimeout: session,
		Owner:          name,
	})
	if err != nil {
		return err
	}
	w.client = client
	events := client.Events()
	w.say(time.Now(), "started", 0, "pid %d, session timeout %v", os.Getpid(), client.SessionTimeout())
	for {
		select {
		case e := <-events.Ready():
			w.say(e.Time, "Ready", 0, "")
		case e := <-events.Disconnected():
			detail := ""
			if w.lock != nil && w.lock.Err() == nil {
				detail = fmt.Sprintf("the lock is valid for another %v", time.Until(w.lock.Deadline()).Round(time.Millisecond))
			}
			w.say(e.Time, "Disconnected", 0, "%s", detail)
		case e := <-events.TTLExpired():
			w.say(e.Time, "TTLExpired", e.Token, "stops working and queues again")
			w.again(ctx, e)
		case e := <-events.Lost():
			w.say(e.Time, "Lost", e.Token, "%v; stops working and queues again", causeOf(e.Err))
			w.again(ctx, e)
		case lock := <-w.granted:
			w.lock = lock
			w.say(time.Now(), "granted", lock.Token(), "")
		case err := <-w.failed:
			return err
		case command := <-w.commands:
			over, err := w.obey(ctx, command)
			if over || err != nil {
				cancel()
				w.writes.Wait()
				return err
			}
		}
	}
}

// obey executes a line of input, and reports whether it was the last command.
func (w *worker) obey(ctx context.Context, command string) (over bool, err error) {
	verb, arg, _ := strings.Cut(command, " ")
	if (verb == "ttl" || verb == "write") && w.lock == nil {
		return false, fmt.Errorf("%s: has no lock", command)
	}
	switch verb {
	case "compete":
		w.acquire(ctx)
	case "ttl":
		d, err := time.ParseDuration(arg)
		if err == nil {
			err = w.lock.Extend(d)
		}
		if err != nil {
			return false, err
		}
		w.say(time.Now(), "TTL set", w.lock.Token(), "%v from now", d)
	case "write":
		d, err := time.ParseDuration(arg)
		if err != nil {
			return false, err
		}
		lock := w.lock
		w.writes.Go(func() { w.write(lock, d) })
	case "quit":
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		err := w.client.Close(ctx)
		w.say(time.Now(), "closed", 0, "")
		return true, err
	default:
		return false, fmt.Errorf("%q: unknown command", command)
	}
	return false, nil
}

// acquire queues for the lock in the background.
func (w *worker) acquire(ctx context.Context) {
	go func() {
		lock, err := w.client.Acquire(ctx, key)
		switch {
		case err == nil:
			w.granted <- lock
		case !errors.Is(err, holdfast.ErrClosed) && ctx.Err() == nil:
			w.failed <- err
		}
	}()
}

// again is the reaction to the end of a lock.
func (w *worker) again(ctx context.Context, e holdfast.Event) {
	if w.lock != nil && w.lock.Token() == e.Token {
		w.lock = nil
	}
	w.acquire(ctx)
}

// write checks the lock, and then writes slowly: fencing covers what happens in
// between.
func (w *worker) write(lock *holdfast.Lock, d time.Duration) {
	if err := lock.Err(); err != nil {
		w.say(time.Now(), "no write", lock.Token(), "%v", err)
		return
	}
	w.say(time.Now(), "writes", lock.Token(), "the lock is live; the write takes %v to arrive", d)
	time.Sleep(d)
	w.say(time.Now(), "write", lock.Token(), "")
}

func (w *worker) say(at time.Time, event string, token holdfast.Token, format string, args ...any) {
	w.out.Lock()
	defer w.out.Unlock()
	if err := w.enc.Encode(report{Time: at, Event: event, Token: token, Detail: fmt.Sprintf(format, args...)}); err != nil {
		os.Exit(1)
	}
}

func (w *worker) listen() {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		w.commands <- lines.Text()
	}
	os.Exit(1) // the demo is gone
}

func causeOf(err error) error {
	var lost *holdfast.LostError
	if errors.As(err, &lost) {
		return lost.Cause
	}
	return err
}
