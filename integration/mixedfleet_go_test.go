package integration_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dynamolock"
	"github.com/holdfast-go/holdfast/integration/internal/history"
)

// fleetChild is one Go process of the mixed fleet: it acquires each of its keys again and
// again, and reports what it believes to hold, until it is killed.
const fleetChild = "mixedfleet"

func init() { children[fleetChild] = runFleetGo }

func runFleetGo() int {
	fail := func(err error) int {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	c := &contender{}
	if err := json.Unmarshal([]byte(os.Args[1]), &c.config); err != nil {
		return fail(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // until the parent closes the pipe or ends
		cancel()
	}()
	client, err := dynamolock.New(ctx, fleetService(), c.config.options())
	switch {
	case ctx.Err() != nil:
		return 0
	case err != nil:
		return fail(err)
	}
	c.client = client
	c.random = rand.New(rand.NewPCG(c.config.Seed, 0))
	c.report(fleetReport{What: fleetReady})
	var all sync.WaitGroup
	for _, key := range c.config.Keys {
		all.Go(func() { c.contend(ctx, key) })
	}
	all.Wait()
	closing, cancelClosing := context.WithTimeout(context.Background(), patience)
	defer cancelClosing()
	err = client.Close(closing)
	if c.client.Options().Mode != dynamolock.FailOpen && errors.Is(err, holdfast.ErrReleasePending) {
		return 0 // a call was given up, and the server did not confirm its outcome in time
	}
	if err != nil {
		return fail(err)
	}
	return 0
}

// fleetService is a client of the service that the environment names.
func fleetService() *dynamodb.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = transport.MaxIdleConns
	transport.IdleConnTimeout = 3 * time.Second // less than that of a server in Node
	return dynamodb.New(dynamodb.Options{
		Region:       os.Getenv("AWS_REGION"),
		BaseEndpoint: aws.String(os.Getenv("DYNAMODB_ENDPOINT")),
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{
				AccessKeyID:     os.Getenv("AWS_ACCESS_KEY_ID"),
				SecretAccessKey: os.Getenv("AWS_SECRET_ACCESS_KEY"),
				SessionToken:    os.Getenv("AWS_SESSION_TOKEN"),
			}, nil
		}),
		HTTPClient: &http.Client{Transport: transport},
	})
}

// contender is the shared state of the goroutines of one process.
type contender struct {
	config fleetConfig
	client *dynamolock.Client

	mu     sync.Mutex
	random *rand.Rand
}

func (c *contender) report(r fleetReport) {
	if r.At == 0 {
		r.At = history.Now()
	}
	line, err := json.Marshal(r)
	if err != nil {
		panic(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, err := os.Stdout.Write(append(line, '\n')); err != nil {
		os.Exit(1) // the parent has ended
	}
}

// between returns a random time within bounds in milliseconds.
func (c *contender) between(bounds [2]int) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Duration(bounds[0]+c.random.IntN(bounds[1]-bounds[0]+1)) * time.Millisecond
}

func (c *contender) chance(p float64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.random.Float64() < p
}

func (c *contender) contend(ctx context.Context, key string) {
	for ctx.Err() == nil {
		sleepFor(ctx, c.between(c.config.Pause))
		asked := history.Now()
		c.report(fleetReport{What: fleetWaiting, At: asked, Key: key})
		lock, err := c.client.Acquire(ctx, key)
		switch {
		case err == nil:
			c.hold(ctx, lock, asked)
		case !errors.Is(err, ctx.Err()) || ctx.Err() == nil:
			c.report(fleetReport{What: fleetNote, Note: err.Error()})
		}
	}
}

// hold reports a lock for as long as it holds it. It always reads the time first: the
// lock's answer was true at that time, however long it took.
func (c *contender) hold(ctx context.Context, lock *holdfast.Lock, asked int64) {
	say := func(what string, at int64) {
		c.report(fleetReport{What: what, At: at, Key: lock.Key(), Token: uint64(lock.Token()), Asked: asked})
	}
	d := c.between(c.config.Hold)
	if c.chance(c.config.LongShare) {
		d = c.between(c.config.Long)
	}
	what := fleetAcquired
	for end := time.Now().Add(d); ; what = fleetHolding {
		at := history.Now()
		if err := lock.Err(); err != nil {
			say(fleetLost, 0)
			c.report(fleetReport{What: fleetNote, Note: err.Error()})
			break
		}
		say(what, at)
		if ctx.Err() != nil || time.Now().After(end) {
			say(fleetReleased, 0)
			break
		}
		sleepFor(ctx, fleetStamp)
	}
	limit, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	err := lock.Release(limit)
	switch {
	case errors.Is(err, holdfast.ErrLost):
		c.report(fleetReport{What: fleetMissed, Note: err.Error()})
	case err != nil:
		c.report(fleetReport{What: fleetNote, Note: err.Error()})
	}
}

// fleetStamp is the time between two looks at a lock.
const fleetStamp = 25 * time.Millisecond

func sleepFor(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
