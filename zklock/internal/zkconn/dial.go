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
)

// Connect starts to dial and waits until calls can be made.
func (l *Link) Connect(ctx context.Context, servers []string) error {
	l.names = slices.Compact(slices.Sorted(slices.Values(zk.FormatServers(servers))))
	rand.Shuffle(len(l.names), func(i, j int) { l.names[i], l.names[j] = l.names[j], l.names[i] })
	until, giveUp := context.WithCancel(ctx)
	defer giveUp()
	l.giveUp = giveUp
	l.running.Add(1)
	l.tasks.Go(func(context.Context) {
		defer l.running.Done()
		for l.dialling.Err() == nil {
			l.visit()
		}
	})
	if _, err := l.ready(until, nil); err != nil {
		if ctx.Err() == nil {
			err = driver.ErrDisconnected
		}
		return fmt.Errorf("zookeeper: no server of %s gave a session: %w: %w", strings.Join(servers, ","), err, l.causes())
	}
	return nil
}

// visit connects to the next server, and returns when the connection has ended.
func (l *Link) visit() {
	s := l.next()
	w, err := l.dial(s)
	l.mu.Lock()
	if l.wire = w; w == nil {
		l.lastErr = err
	}
	l.mu.Unlock()
	if w == nil {
		return
	}
	if l.dialling.Err() != nil { // Close may have found no connection to end
		_ = w.Close()
		return
	}
	l.start(w)
	select {
	case <-w.hasSession:
		time.Sleep(handTime) // go-zookeeper looks for watches of a former connection, which must not race with the first replies
		if err := l.authenticate(w); err != nil {
			w.lose(err)
		} else {
			l.open(w)
		}
	case <-w.Alive.Done():
	}
	<-w.Alive.Done()
}

// dial opens a connection. It pauses first, for longer with each attempt that led to no reply to a request. The longest pause is short
// enough for a server that comes back within the session to be found within it.
func (l *Link) dial(s *server) (*Wire, error) {
	l.mu.Lock()
	share, t := l.shareLocked(), l.times
	l.failures++
	failures := l.failures - 1
	l.mu.Unlock()
	pause := min(5*time.Millisecond<<min(failures, 10), t.Redial)
	if failures > 0 && !backoff.Sleep(l.dialling, l.host, backoff.Jittered(pause), nil) {
		return nil, driver.ErrClosed
	}
	ctx, cancel := context.WithTimeout(l.dialling, share)
	defer cancel()
	conn, err := l.reach(ctx, s)
	if err != nil {
		return nil, err
	}
	return newWire(conn, l, s, share), nil
}

// authenticate presents the credentials.
func (l *Link) authenticate(w *Wire) error {
	l.mu.Lock()
	all := l.auth
	l.mu.Unlock()
	limit := time.AfterFunc(l.Times().Answer, func() { w.lose(fmt.Errorf("%s: the server does not answer the credentials", w.server)) })
	defer limit.Stop()
	for _, a := range all {
		if err := w.conn.AddAuth(a.Scheme, []byte(a.Credentials)); err != nil {
			err = fmt.Errorf("%s: %w", w.server, StepError("authenticate with", a.Scheme, err))
			if !transient(err) {
				l.noteCause(w.server, err)
			}
			return err
		}
	}
	return nil
}

// mostAuth is how many credentials the link keeps besides the configured ones.
const mostAuth = 32

// keepAuth has a credential that a server has accepted presented on later connections too. The newest are kept.
func (l *Link) keepAuth(a Auth) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if slices.Contains(l.auth, a) {
		return
	}
	configured := len(l.config.Auth)
	added := l.auth[max(configured, len(l.auth)+1-mostAuth):]
	l.auth = append(slices.Concat(l.config.Auth, added), a)
}

// open lets calls through on a connection.
func (l *Link) open(w *Wire) {
	l.mu.Lock()
	s := l.session
	switch {
	case l.wire != w || s == nil:
		l.mu.Unlock()
		return
	case s.grown: // its locks could not be kept for long
		l.mu.Unlock()
		s.Lease.End(driver.ErrSessionExpired)
		_ = l.endOn(w.Alive, w)
		return
	}
	l.conn, l.isOpen, l.lastErr = w.conn, true, nil
	close(l.gate)
	l.config.Connected(true)
	l.mu.Unlock()
	l.config.Reopened(s)
	l.watches.renew(w)
}

// shutLocked makes calls wait.
func (l *Link) shutLocked() {
	if l.isOpen {
		l.isOpen, l.usedLast = false, l.host.Now()
		l.gate = make(chan struct{})
		l.config.Connected(false)
	}
}

// FindChroot fails if the chroot does not exist. The sync makes a server that is behind see one that has just been made.
func (l *Link) FindChroot(ctx context.Context, chroot string) error {
	err := l.Retry(ctx, nil, func(*Session) error {
		err := l.Sync(ctx, chroot)
		if err != nil {
			return err
		}
		node, err := l.Get(ctx, chroot)
		if err == nil && node.Stat.EphemeralOwner != 0 { // servers do not tell containers and TTL nodes (DataNode.copyStat)
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

// reach opens a connection to a server.
func (l *Link) reach(ctx context.Context, s *server) (net.Conn, error) {
	if s.at == "" {
		return nil, s.cause
	}
	conn, err := network.Dial(ctx, "tcp", s.at)
	if err != nil {
		l.noteCause(s, err)
		return nil, err
	}
	if l.config.TLS == nil {
		return conn, nil
	}
	config, err := l.config.TLS()
	if err != nil {
		_ = conn.Close()
		return nil, l.unanswered(s, fmt.Errorf("TLS: %w", err))
	}
	if config == nil {
		config = new(tls.Config)
	}
	if config.ServerName == "" && !config.InsecureSkipVerify {
		config = config.Clone()
		config.ServerName, _, _ = net.SplitHostPort(s.name)
	}
	secure := tls.Client(conn, config)
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, l.unanswered(s, fmt.Errorf("TLS: %w", err))
	}
	return secure, nil
}
