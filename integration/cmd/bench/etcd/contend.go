package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"runtime"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

// process is one with etcd's Election.
type process struct {
	addr  string
	ttl   int // seconds
	lines map[string]*line
	heats map[string]*heat
	look  *clientv3.Client
}

// contend takes orders on standard input, and answers each with the nanoseconds it took:
//
//	run KEY N    is elected and resigns N times, one after the other; nobody else stands
//	fill KEY N   lets candidates join until there are N: a leader and others that wait
//	pass KEY N   lets the leader resign, and each one after it, until the Nth goes on leading
//	stand KEY N  lets a candidate stand for each of KEY-0 to KEY-<N-1>, with a session of its own
//	lead KEY N   waits until all of these lead; it answers with N numbers, until each did
func contend(addr string, ttl int) error {
	p := &process{addr: addr, ttl: ttl, lines: make(map[string]*line), heats: make(map[string]*heat)}
	var err error
	if p.look, err = p.dial(); err != nil {
		return err
	}
	orders := bufio.NewScanner(os.Stdin)
	for orders.Scan() {
		var what, key string
		var n int
		if _, err := fmt.Sscan(orders.Text(), &what, &key, &n); err != nil {
			return fmt.Errorf("%q: %w", orders.Text(), err)
		}
		took, err := p.do(context.Background(), what, key, n)
		if err != nil {
			return fmt.Errorf("%q: %w", orders.Text(), err)
		}
		for i, d := range took {
			if i > 0 {
				fmt.Print(" ")
			}
			fmt.Print(d.Nanoseconds())
		}
		fmt.Println()
	}
	return orders.Err()
}

func (p *process) do(ctx context.Context, what, key string, n int) ([]time.Duration, error) {
	one := func(took time.Duration, err error) ([]time.Duration, error) { return []time.Duration{took}, err }
	switch what {
	case "run":
		return one(p.run(ctx, key, n))
	case "fill":
		return one(0, p.lineOf(key).fill(ctx, n))
	case "pass":
		return one(p.lineOf(key).pass(n))
	case "stand":
		h, err := p.stand(ctx, key, n)
		p.heats[key] = h
		return one(0, err)
	case "lead":
		return p.heats[key].lead(n)
	}
	return nil, fmt.Errorf("what is %s?", what)
}

func (p *process) dial() (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{Endpoints: []string{p.addr}, DialTimeout: 10 * time.Second})
}

// open opens a session with a connection of its own. An election has one candidate per session.
func (p *process) open() (*concurrency.Session, error) {
	client, err := p.dial()
	if err != nil {
		return nil, err
	}
	return concurrency.NewSession(client, concurrency.WithTTL(p.ttl))
}

func (p *process) run(ctx context.Context, key string, n int) (time.Duration, error) {
	session, err := p.open()
	if err != nil {
		return 0, err
	}
	defer func() { _ = session.Close() }()
	runtime.GC()
	began := time.Now()
	for range n {
		e := concurrency.NewElection(session, key)
		if err := e.Campaign(ctx, owner); err != nil {
			return 0, err
		}
		if err := e.Resign(ctx); err != nil {
			return 0, err
		}
	}
	return time.Since(began), nil
}

// owner is what a leader says of itself.
const owner = "bench-host:12345:ABCDEFGHIJ"

// heat is a number of elections, each with one candidate here.
type heat struct{ led chan led }

// led says when the candidate of an election came to lead.
type led struct {
	i   int
	at  time.Time
	err error
}

// stand returns when all have a session. Their heartbeats are not sent at the same time.
func (p *process) stand(ctx context.Context, key string, n int) (*heat, error) {
	h := &heat{led: make(chan led, n)}
	for i := range n {
		session, err := p.open()
		if err != nil {
			return nil, err
		}
		go func() {
			err := concurrency.NewElection(session, fmt.Sprintf("%s-%d", key, i)).Campaign(ctx, owner)
			h.led <- led{i, time.Now(), err}
		}()
		time.Sleep(time.Duration(p.ttl) * time.Second / 24)
	}
	return h, nil
}

func (h *heat) lead(n int) ([]time.Duration, error) {
	began := time.Now()
	took := make([]time.Duration, n)
	for range n {
		l := <-h.led
		if l.err != nil {
			return nil, l.err
		}
		took[l.i] = max(0, l.at.Sub(began))
	}
	return took, nil
}
