package zkconn

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/backoff"
	"github.com/holdfast-go/holdfast/internal/network"
	"github.com/holdfast-go/holdfast/internal/zktimes"
)

// Connect starts go-zookeeper and waits for the first session.
func (l *Link) Connect(ctx context.Context, servers []string) error {
	l.names = slices.Compact(slices.Sorted(slices.Values(zk.FormatServers(servers))))
	rand.Shuffle(len(l.names), func(i, j int) { l.names[i], l.names[j] = l.names[j], l.names[i] })
	until, giveUp := context.WithCancel(ctx)
	defer giveUp()
	l.giveUp = giveUp
	conn, events, err := zk.Connect(
		l.names, l.config.SessionTimeout,
		zk.WithDialer(l.dial),
		zk.WithHostProvider(&ring{pick: l.next, closing: l.dialling, rests: l.resting, quitting: l.quitting}),
		zk.WithEventCallback(l.onEvent),
		zk.WithLogger(discard{}),
		zk.WithLogInfo(false),
	)
	if err != nil {
		return fmt.Errorf("zookeeper: %w", err)
	}
	l.conn = conn
	close(l.started)
	l.tasks.Go(func(context.Context) { // the callback has seen them already
		defer close(l.stopped)
		for range events {
		}
	})
	return l.awaitAdmission(ctx, until, servers)
}

// awaitAdmission waits for the first session, until Connect gives up, and then for the servers to accept the credentials, if there are any.
func (l *Link) awaitAdmission(ctx, until context.Context, servers []string) error {
	if _, err := l.ready(until, nil); err != nil {
		if ctx.Err() == nil {
			err = driver.ErrDisconnected
		}
		return fmt.Errorf("zookeeper: no server of %s gave a session: %w: %w", strings.Join(servers, ","), err, l.causes())
	}
	for _, auth := range l.config.Auth {
		err := l.Retry(ctx, nil, func(*Session) error {
			return l.do(ctx, "send credentials of", auth.Scheme, func() error {
				return l.conn.AddAuth(auth.Scheme, []byte(auth.Credentials))
			})
		})
		if err := AsDisconnected(ctx, err); err != nil {
			return fmt.Errorf("zookeeper: authenticate with scheme %q: %w", auth.Scheme, err)
		}
	}
	l.mu.Lock()
	l.admitted = true
	s := l.session
	l.mu.Unlock()
	if s != nil {
		l.config.Reopened(s)
	}
	return nil
}

// FindChroot fails if the chroot does not exist. The sync makes a server that is behind
// see one that has just been made.
func (l *Link) FindChroot(ctx context.Context, chroot string) error {
	err := l.Retry(ctx, nil, func(*Session) error {
		err := l.Sync(ctx, chroot)
		if err != nil {
			return err
		}
		node, err := l.Get(ctx, chroot)
		if err == nil && node.Stat.EphemeralOwner != 0 { // an ephemeral one: that it is a container or TTL node no server says (DataNode.copyStat)
			l.host.Logger().Warn("the chroot is no persistent znode, and may be removed", "path", chroot)
		}
		return err
	})
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return NoChroot(chroot)
	case errors.Is(err, zk.ErrNoAuth): // to read it; it is there
		return nil
	}
	return AsDisconnected(ctx, err)
}

func NoChroot(chroot string) error {
	return driver.Invalid("servers", "the chroot %q does not exist: make the znode first", chroot)
}

// dial opens one connection for go-zookeeper. The delay between attempts is here, where closing
// ends it, and grows while none has led to more than a greeting: a server, or what stands
// before it, may hang up on all who have been greeted.
func (l *Link) dial(protocol, _ string, _ time.Duration) (net.Conn, error) {
	l.mu.Lock()
	s, share, t := l.target, l.shareLocked(), l.timesLocked()
	l.failures++
	failures := l.failures
	l.mu.Unlock()
	if failures > 1 && !backoff.Sleep(l.dialling, backoff.Jittered(dialDelay(failures-1, t.Redial)), nil) {
		return nil, driver.ErrClosed
	}
	ctx, cancel := context.WithTimeout(l.dialling, share)
	defer cancel()
	conn, err := l.reach(ctx, protocol, s)
	if err != nil {
		l.mu.Lock()
		l.lastErr = err
		l.mu.Unlock()
		return nil, err
	}
	w := newWire(newBuffered(conn), l, share)
	w.server = s
	l.connected(w)
	if l.dialling.Err() != nil { // since before hangUp could see it
		l.Leave(w)
		return nil, driver.ErrClosed
	}
	return w, nil
}

// timesLocked are the times of the session, or of the one that is wanted.
func (l *Link) timesLocked() *zktimes.Times {
	if l.session != nil {
		return l.session.Times()
	}
	return l.config.Times(l.config.SessionTimeout)
}

// reach opens a connection to a server.
func (l *Link) reach(ctx context.Context, protocol string, s *server) (net.Conn, error) {
	if s.at == "" {
		return nil, s.cause
	}
	conn, err := network.Dial(ctx, protocol, s.at)
	if err != nil {
		l.noteCause(s, err)
		return nil, err
	}
	if l.config.TLS == nil {
		return conn, nil
	}
	conn, err = handshake(ctx, conn, l.config.TLS, s.name)
	if err != nil {
		return nil, l.unanswered(ctx, s, err)
	}
	return conn, nil
}

// serves is called when a server has answered a request.
func (l *Link) serves() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failures = 0
	for _, s := range l.servers {
		if s.at != "" {
			s.cause = nil
		}
	}
}

// dialDelay doubles from a few milliseconds to the longest, which is short enough for a
// server that comes back within the session to be found within it.
func dialDelay(failures int, longest time.Duration) time.Duration {
	return min(5*time.Millisecond<<min(failures, 10), longest)
}

func handshake(ctx context.Context, conn net.Conn, configure func() (*tls.Config, error), address string) (net.Conn, error) {
	config, err := configure()
	if err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("TLS: %w", err)
	}
	if config == nil {
		config = new(tls.Config)
	}
	if config.ServerName == "" && !config.InsecureSkipVerify {
		config = config.Clone()
		config.ServerName, _, _ = net.SplitHostPort(address)
	}
	secure := tls.Client(conn, config)
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("TLS: %w", err)
	}
	return secure, nil
}
