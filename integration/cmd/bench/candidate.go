package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dynamolock"
	"github.com/holdfast-go/holdfast/zklock"

	"github.com/holdfast-go/holdfast/integration/internal/dynamoserver"
)

// candidateCommand is the first argument of this program as a peer, with holdfast's Election. Then come zookeeper and the
// server, or dynamodb and the table, and a duration: the session or the lease.
const candidateCommand = "candidate"

// electionPoll is the poll period of candidates on DynamoDB: at the session that is used here, 8% of it.
const electionPoll = 500 * time.Millisecond

// candidate takes orders, and answers each with nanoseconds:
//
//	stand KEY N  lets a candidate stand for each of KEY-0 to KEY-<N-1>, with a client of its own
//	lead KEY N   waits until all of these lead; it answers with N numbers, until each did
func candidate(ctx context.Context, args []string, in io.Reader, out io.Writer) error {
	open, session, err := opener(ctx, args)
	if err != nil {
		return err
	}
	heats := make(map[string]*heat)
	orders := bufio.NewScanner(in)
	for orders.Scan() {
		o, err := parseOrder(orders.Text())
		if err != nil {
			return err
		}
		took := []time.Duration{0}
		switch o.what {
		case "stand":
			heats[o.key], err = newHeat(ctx, o.key, o.n, session/24, open)
		case "lead":
			if heats[o.key] == nil {
				return fmt.Errorf("%q: nobody stands", orders.Text())
			}
			took, err = heats[o.key].lead(ctx, o.n)
		}
		if err != nil {
			return err
		}
		fmt.Fprintln(out, answer(took))
	}
	return orders.Err()
}

// opener connects candidates to the engine that the arguments name.
func opener(ctx context.Context, args []string) (open func() (*holdfast.Client, error), session time.Duration, err error) {
	if len(args) != 3 {
		return nil, 0, errors.New("want an engine, a server or table, and a duration")
	}
	if session, err = time.ParseDuration(args[2]); err != nil {
		return nil, 0, err
	}
	engine := candidateEngines[args[0]]
	if engine == nil {
		return nil, 0, fmt.Errorf("no engine %q", args[0])
	}
	open, err = engine(ctx, args[1], session)
	return open, session, err
}

// candidateEngines are those on which candidates can stand: at a server or a table, for a session or a lease.
var candidateEngines = map[string]func(ctx context.Context, at string, session time.Duration) (func() (*holdfast.Client, error), error){
	"zookeeper": func(ctx context.Context, at string, session time.Duration) (func() (*holdfast.Client, error), error) {
		return func() (*holdfast.Client, error) {
			c, err := zklock.Dial(ctx, []string{at}, &zklock.Options{Root: root, Owner: owner, SessionTimeout: session})
			if err != nil {
				return nil, err
			}
			return c.Client, nil
		}, nil
	},
	"dynamodb": func(ctx context.Context, at string, session time.Duration) (func() (*holdfast.Client, error), error) {
		target, err := dynamoserver.Open(ctx) // which the environment names
		return func() (*holdfast.Client, error) {
			c, err := dynamolock.New(ctx, target.Client(), &dynamolock.Options{Table: at, Owner: owner, Lease: session, Poll: electionPoll})
			if err != nil {
				return nil, err
			}
			return c.Client, nil
		}, err
	},
}

// order is what a candidate is told.
type order struct {
	what, key string
	n         int
}

func parseOrder(line string) (o order, err error) {
	if _, err := fmt.Sscanf(line, "%s %s %d", &o.what, &o.key, &o.n); err != nil {
		return o, fmt.Errorf("order %q: %w", line, err)
	}
	if o.what != "stand" && o.what != "lead" || o.n < 1 {
		return o, fmt.Errorf("order %q: want \"stand\" or \"lead\", a key and a number", line)
	}
	return o, nil
}

// answer is the reverse of durations.
func answer(took []time.Duration) string {
	var b strings.Builder
	for i, d := range took {
		if i > 0 {
			b.WriteByte(' ')
		}
		fmt.Fprint(&b, d.Nanoseconds())
	}
	return b.String()
}
