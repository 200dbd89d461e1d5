package main

import (
	"context"
	"runtime"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

// line is an election with a leader and others that wait.
type line struct {
	*process
	key     string
	inside  int
	allowed atomic.Int64 // resignations
	kept    chan func() error
	failed  chan error
	resign  func() error // of the present leader
	idle    chan *concurrency.Session
}

func (p *process) lineOf(key string) *line {
	if p.lines[key] == nil {
		p.lines[key] = &line{
			process: p, key: key, kept: make(chan func() error, 1), failed: make(chan error, 1),
			idle: make(chan *concurrency.Session, 1000),
		}
	}
	return p.lines[key]
}

// fill returns when all candidates have their keys, and a while after that for their watches.
func (l *line) fill(ctx context.Context, candidates int) error {
	if l.resign == nil {
		if err := l.join(ctx); err != nil {
			return err
		}
		if err := l.await(); err != nil {
			return err
		}
	}
	for l.inside < candidates {
		if err := l.join(ctx); err != nil {
			return err
		}
	}
	for {
		all, err := l.look.Get(ctx, l.key+"/", clientv3.WithPrefix(), clientv3.WithCountOnly())
		if err != nil {
			return err
		}
		time.Sleep(20 * time.Millisecond)
		if int(all.Count) == candidates {
			return nil
		}
	}
}

func (l *line) join(ctx context.Context) error {
	var session *concurrency.Session
	select {
	case session = <-l.idle:
	default:
		var err error
		if session, err = l.open(); err != nil {
			return err
		}
	}
	l.inside++
	go func() {
		e := concurrency.NewElection(session, l.key)
		resign := func() error {
			err := e.Resign(ctx)
			l.idle <- session
			return err
		}
		err := e.Campaign(ctx, owner)
		switch {
		case err != nil:
		case l.allowed.Add(-1) >= 0:
			err = resign()
		default:
			l.kept <- resign
		}
		if err != nil {
			l.failed <- err
		}
	}()
	return nil
}

func (l *line) await() error {
	select {
	case l.resign = <-l.kept:
		return nil
	case err := <-l.failed:
		return err
	}
}

func (l *line) pass(n int) (time.Duration, error) {
	l.allowed.Store(int64(n) - 1)
	runtime.GC() // as before a block of the other side
	began := time.Now()
	if err := l.resign(); err != nil {
		return 0, err
	}
	if err := l.await(); err != nil {
		return 0, err
	}
	l.inside -= n
	return time.Since(began), nil
}
