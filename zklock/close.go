package zklock

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast"
)

// EndSession implements [driver.Ender]: ending a session deletes all its nodes in
// one transaction.
func (b *engine) EndSession(ctx context.Context) error {
	b.heartbeat.stop()
	b.strays.stop()
	b.mu.Lock() // no task begins after this
	b.stop(holdfast.ErrClosed)
	b.mu.Unlock()
	b.tasks.Wait()
	return b.link.end(ctx)
}

// Close implements [driver.Driver].
func (b *engine) Close(ctx context.Context) error {
	err := b.EndSession(ctx) // the second time, it is of no effect
	b.link.stop(b.closeLink)
	return err
}

// abort undoes a Dial that failed.
func (b *engine) abort() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if b.link.conn != nil {
		_ = b.Close(ctx)
	}
}

// sendTime is how long the end of the session may take to be sent when there is no
// time to wait for the answer.
const sendTime = 100 * time.Millisecond

// end ends the present session. It returns nil if that is confirmed, or it has ended by
// itself. go-zookeeper ends only one, on the connection that it has just then, and so
// it is told only when there is a server that answers and has a quorum, or no more time
// to find one.
func (l *link) end(ctx context.Context) error {
	l.mu.Lock()
	s, again := l.session, l.ending
	l.ending = true
	l.mu.Unlock()
	if again {
		return nil
	}
	if s != nil {
		l.answers(ctx, s)
	}
	l.mu.Lock()
	w, up, same := l.wire, l.up, l.session == s
	over := !same && (s == nil || l.renounced != s.id) // the server may only have been made to say so
	l.mu.Unlock()
	if up {
		l.quit()
		over = w.endsSession(ctx) && same || over
	}
	if s == nil || over {
		return nil
	}
	return fmt.Errorf("zookeeper: the end of session %#x is not confirmed; its nodes go when the servers have not heard of it for %v: %w",
		s.id, s.timeout(), holdfast.ErrDisconnected)
}

// endsSession waits for the server to confirm the end of the session, and, if there is
// no time for that, until it has been asked to.
func (w *wire) endsSession(ctx context.Context) bool {
	select {
	case <-w.closed:
	case <-w.dead:
	case <-ctx.Done():
		select {
		case <-w.asked:
		case <-w.dead:
		case <-time.After(sendTime):
		}
	}
	select {
	case <-w.closed:
		return true
	default:
		return false
	}
}

// answers returns when a server has answered that has a quorum, the session is over, or
// ctx is. A server that falls silent is left for the next.
func (l *link) answers(ctx context.Context, s *session) {
	_, _ = retry(ctx, l, func(ctx context.Context) (struct{}, error) {
		if l.current() != s {
			return struct{}{}, nil
		}
		w := l.present()
		limit := time.AfterFunc(s.timeout()/4, func() { l.drop(w) })
		defer limit.Stop()
		return struct{}{}, l.sync(ctx, "/")
	})
}

// quit makes go-zookeeper send the end of the session, and stop.
func (l *link) quit() {
	l.quitOnce.Do(func() {
		go func() {
			defer close(l.quitted)
			l.conn.Close()
		}()
	})
}

// stop ends go-zookeeper and its connection, and returns when all goroutines are gone.
func (l *link) stop(stop context.CancelCauseFunc) {
	stop(holdfast.ErrClosed) // it need not finish what it is trying
	l.hangUp()
	l.quit()
	<-l.quitted
	l.hangUp()
	<-l.ended
	l.routines.stop()
}

// hangUp closes the present connection.
func (l *link) hangUp() {
	l.mu.Lock()
	w := l.wire
	l.mu.Unlock()
	l.drop(w)
}
