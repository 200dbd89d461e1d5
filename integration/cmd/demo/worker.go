package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/zklock"
)

// report is a line that a worker or the demo prints.
type report struct {
	Who    string `json:"-"`
	Time   time.Time
	Event  string
	Token  holdfast.Token
	Detail string
}

// beWorker is an event-driven program: one goroutine, one select. It always wants the lock. It gets commands from its standard
// input, whose end is the command to quit.
func beWorker(name, server string, session time.Duration) error {
	ctx := context.Background()
	client, err := zklock.Dial(ctx, []string{server}, &zklock.Options{Root: root, SessionTimeout: session, Owner: name})
	if err != nil {
		return err
	}
	say(time.Now(), "started", 0, "pid %d, session timeout %v", os.Getpid(), client.SessionTimeout())
	commands := make(chan string)
	go func() {
		defer close(commands)
		for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
			commands <- lines.Text()
		}
	}()
	granted, failed := make(chan *holdfast.Lock), make(chan error)
	acquire := func() {
		lock, err := client.Acquire(ctx, key)
		if err != nil {
			failed <- err
			return
		}
		granted <- lock
	}
	go acquire()
	lock, events := &holdfast.Lock{}, client.Events()
	for {
		select {
		case lock = <-granted:
			say(time.Now(), "granted", lock.Token(), "")
		case e := <-events.Ready():
			say(e.Time, "Ready", 0, "")
		case e := <-events.Disconnected():
			detail := ""
			if lock.Err() == nil {
				detail = fmt.Sprintf("the lock is valid for another %v", time.Until(lock.Deadline()).Round(time.Millisecond))
			}
			say(e.Time, "Disconnected", 0, "%s", detail)
		case e := <-events.TTLExpired():
			say(e.Time, "TTLExpired", e.Token, "stops working and queues again")
			go acquire()
		case e := <-events.Lost():
			cause := e.Err
			if lost := (*holdfast.LostError)(nil); errors.As(e.Err, &lost) {
				cause = lost.Cause
			}
			say(e.Time, "Lost", e.Token, "%v; stops working and queues again", cause)
			go acquire()
		case err := <-failed:
			return err
		case command, ok := <-commands:
			if !ok {
				ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
				defer cancel()
				return client.Close(ctx)
			}
			if err := obey(command, lock); err != nil {
				return err
			}
		}
	}
}

// obey executes a command of a holder.
func obey(command string, lock *holdfast.Lock) error {
	switch command {
	case "ttl":
		say(time.Now(), "TTL set", lock.Token(), "%v from now", ttl)
		return lock.Extend(ttl)
	case "write":
		return write(lock, 0)
	case "write slowly":
		go write(lock, slowly)
	}
	return nil
}

// write checks the lock, and then writes. Fencing covers the time in between.
func write(lock *holdfast.Lock, d time.Duration) error {
	if err := lock.Err(); err != nil {
		return err
	}
	say(time.Now(), "writes", lock.Token(), "the lock is live; the write takes %v to arrive", d)
	time.Sleep(d)
	say(time.Now(), "write", lock.Token(), "")
	return nil
}

var out sync.Mutex

func say(at time.Time, event string, token holdfast.Token, format string, args ...any) {
	out.Lock()
	defer out.Unlock()
	r := report{Time: at, Event: event, Token: token, Detail: fmt.Sprintf(format, args...)}
	if err := json.NewEncoder(os.Stdout).Encode(r); err != nil {
		os.Exit(1) // the demo is gone
	}
}
