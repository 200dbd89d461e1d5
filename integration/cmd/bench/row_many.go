package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/integration/cmd/bench/report"
)

// manyAtOnce is how many goroutines take many locks.
const manyAtOnce = 64

// manyLocks compares the locks of one client, and their end by Close, with as many bare creations and deletions. All of their
// parents exist.
func manyLocks(ctx context.Context, e *env, emit func(report.Row)) error {
	n := e.times(20_000, 2_000)
	name := e.name("many")
	key := func(i int) string { return fmt.Sprintf("%s-%d", name, i) }
	for _, queue := range []func(string) string{ourQueue, peerQueue} {
		if err := createAll(e.look, n, func(i int) string { return queue(key(i)) }); err != nil {
			return err
		}
	}
	bare, err := dialPlain(ctx, e.server.Addr())
	if err != nil {
		return err
	}
	defer bare.Close()
	take, end := manyContest(n, fmt.Sprintf("acquired by %d goroutines", manyAtOnce), "acquire"), manyContest(n, "released by closing the client", "release")
	ours := func() error {
		c, err := e.connect(ctx, e.server.Addr())
		if err != nil {
			return err
		}
		took, err := timeOf(func() error { _, err := holdMany(ctx, c.Client, name, n); return err })
		if err != nil {
			closeClient(c.Client)
			return err
		}
		closed, err := timeOf(func() error { return c.Close(ctx) })
		take.Ours.Blocks, end.Ours.Blocks = append(take.Ours.Blocks, took), append(end.Ours.Blocks, closed)
		return err
	}
	other := func() error {
		paths := make([]string, n)
		took, err := timeOf(func() error {
			return together(n, func(i int) (err error) {
				paths[i], err = bare.Create(peerQueue(key(i))+"/"+bareName, []byte(owner), zk.FlagEphemeral|zk.FlagSequence, zk.WorldACL(zk.PermAll))
				return err
			})
		})
		if err != nil {
			return err
		}
		deleted, err := timeOf(func() error { return together(n, func(i int) error { return bare.Delete(paths[i], -1) }) })
		take.Other.Blocks, end.Other.Blocks = append(take.Other.Blocks, took), append(end.Other.Blocks, deleted)
		return err
	}
	sides := []func() error{ours, other}
	for i := range e.times(6, 1) {
		if err := errors.Join(sides[i%2](), sides[1-i%2]()); err != nil {
			return err
		}
	}
	emit(report.Compare(take, report.AtMost(1)))
	emit(report.Compare(end, report.AtMost(0.5)))
	return nil
}

func manyContest(n int, how, op string) report.Contest {
	return report.Contest{
		Where: loopback.name, What: fmt.Sprintf("%d locks, %s", n, how), Op: op, Ops: n,
		Ours: report.Side{Name: onZK.name}, Other: report.Side{Name: "bare requests"},
	}
}

// createAll creates persistent znodes.
func createAll(conn *zk.Conn, n int, path func(int) string) error {
	const batch = 500
	for from := 0; from < n; from += batch {
		var ops []any
		for i := from; i < min(from+batch, n); i++ {
			ops = append(ops, &zk.CreateRequest{Path: path(i), Acl: zk.WorldACL(zk.PermAll)})
		}
		if _, err := conn.Multi(ops...); err != nil {
			return err
		}
	}
	return nil
}

// together calls f for each of n numbers, in many goroutines.
func together(n int, f func(i int) error) error {
	failed := make([]error, manyAtOnce)
	var workers sync.WaitGroup
	for w := range manyAtOnce {
		workers.Go(func() {
			for i := w; i < n && failed[w] == nil; i += manyAtOnce {
				failed[w] = f(i)
			}
		})
	}
	workers.Wait()
	return errors.Join(failed...)
}

func timeOf(f func() error) (time.Duration, error) {
	runtime.GC()
	began := time.Now()
	err := f()
	return time.Since(began), err
}
