package main

import (
	"context"
	"os"
	"syscall"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/internal/history"
)

// breakGrant looks up a key's holder, and breaks its grant; now means BreakNow, on engines that have it. It prefers a grant
// that it has seen before, since most end before they can be broken.
func (c *client) breakGrant(key string, now bool) error {
	end := c.locker.Break
	if now && c.locker.breakNow != nil {
		end = c.locker.breakNow
	}
	lease := c.config.Login.Lease
	ctx, cancel := context.WithTimeout(c.ctx, 3*lease)
	defer cancel()
	var info holdfast.Info
	for began := time.Now(); ; {
		last := info.Grant
		var err error
		if info, err = c.locker.Inspect(ctx, key); err != nil {
			return nil // no server answers: the run continues
		}
		if info.Held && (info.Grant == last || time.Since(began) > lease) {
			break
		}
		if !sleep(c.stopping, lease/20) || time.Since(began) > 2*lease {
			return nil // there is nothing to break
		}
	}
	invoked := c.report.invoke(history.Record{Call: history.Break, Key: key, Token: uint64(info.Token), Owner: info.Owner})
	invoked.returned(end(ctx, info), uint64(info.Token), info.Owner)
	return nil
}

// jump sets the wall clock while a lock is held, when it matters. It records the jump, which may end a lock of this process.
func (c *client) jump(d time.Duration) {
	for began := time.Now(); c.holding.Load() == 0 && time.Since(began) < 4*c.config.Login.Lease; {
		if !sleep(c.stopping, time.Millisecond) {
			return
		}
	}
	invoked := c.report.invoke(history.Record{Call: history.Jump, By: int64(d)})
	c.clock.Jump(d)
	invoked.returned(nil, 0, "")
}

// take acquires a lock, looks at it, writes, and releases it. If planted, the process stops itself after the look: fencing
// exists for the late writes that follow.
func (c *client) take(key string, planted bool) error {
	acquire := c.report.invoke(history.Record{Call: history.Acquire, Key: key})
	lock, err := c.locker.Acquire(c.ctx, key)
	if err != nil {
		acquire.returned(err, 0, "")
		return err
	}
	token := c.reported(lock)
	acquire.returned(nil, token, lock.Owner())
	at := history.Now()
	if err := lock.Err(); err != nil {
		return err
	}
	c.held(at, key, token)
	if planted {
		if err := stopSelf(); err != nil {
			return err
		}
	}
	if err := c.writeBoth(key, token); err != nil {
		return err
	}
	if err := lock.Err(); err != nil {
		c.report.write(history.Record{At: history.Now(), What: history.Lost, Key: key, Token: token, Cause: causeOf(err)})
		return nil
	}
	ctx, cancel := context.WithTimeout(c.ctx, closePatience)
	defer cancel()
	release := c.report.invoke(history.Record{Call: history.Release, Key: key, Token: token})
	release.returned(lock.Release(ctx), token, "")
	return nil
}

// stopSelf stops this process until it gets SIGCONT.
func stopSelf() error {
	if err := syscall.Kill(os.Getpid(), syscall.SIGSTOP); err != nil {
		return err
	}
	// The kernel may deliver the signal to another thread first; this thread then stops a moment later, here.
	time.Sleep(200 * time.Millisecond)
	return nil
}
