package zkconn

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/driver"
)

// sendTime is how long the link may take to send the end of the session after ctx has ended.
const sendTime = 100 * time.Millisecond

// EndSession ends the present session, and returns nil if a server confirms that. The link begins no further session.
// Only the first call has an effect.
//
// The link asks for the end on the present connection, once the server has replied to a write: a leader that has lost its followers would
// take the request, and say on the next connection that the session is over. If the reply is lost, the link resumes the session and
// asks again, until ctx ends.
func (l *Link) EndSession(ctx context.Context) error {
	l.mu.Lock()
	s, again := l.session, l.ending
	l.ending = true
	if s == nil {
		l.noMore()
	}
	l.mu.Unlock()
	if again || s == nil {
		return nil
	}
	defer l.noMore()
	var err error
	for down := error(nil); down == nil; _, down = l.ready(ctx, nil) {
		w := l.Wire()
		if w == nil {
			continue
		}
		limit := time.AfterFunc(l.Times().Answer, func() { _ = w.Close() })
		err = l.Check(ctx, "/")
		limit.Stop()
		if !UnknownOutcome(err) && !errors.Is(err, zk.ErrNoServer) { // a server that is too busy for a write still ends sessions
			err = l.endOn(ctx, w)
		}
	}
	if l.Session() != s {
		return nil
	}
	if err == nil {
		err = Disconnected(ctx)
	}
	const text = "zookeeper: the end of session %#x is not confirmed; the servers end it %v after the client's last request: %w: %w"
	return fmt.Errorf(text, s.ID, l.Times().Session, driver.ErrDisconnected, err)
}

// endOn asks for the end of the session on a connection, which ends with that. After the end of ctx, endOn waits only until the
// request is sent.
func (l *Link) endOn(ctx context.Context, w *Wire) error {
	l.tasks.Go(func(context.Context) { w.closeConn() })
	select {
	case <-w.Alive.Done():
	case <-time.After(l.Times().Answer):
	case <-ctx.Done():
		select {
		case <-w.closeSent:
		case <-w.Alive.Done():
		case <-time.After(sendTime):
		}
	}
	_ = w.Close()
	return errors.Join(errors.New("no server has confirmed the end of the session"), ctx.Err())
}
