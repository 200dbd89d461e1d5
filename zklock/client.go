package zklock

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/clock"
)

// A Client is a [holdfast.Client] on a ZooKeeper ensemble. It has one session
// at a time; when that expires, its locks are lost and a new one begins.
type Client struct {
	*holdfast.Client
	engine *engine
}

// Dial connects to an ensemble and waits for a session. ctx bounds the wait only; without a deadline, Options.DialTimeout does. Without
// either, Dial tries all addresses twice, with a second between the two rounds, for a minute at most. opts may be nil.
//
// servers are host:port addresses, or whole connect strings as all ZooKeeper clients take them: "h1:2181,h2:2181/app". The path after
// the last address, if there is one, is the chroot: Options.Root and keys that start with a slash are below it. The znode must exist:
// under a misspelt chroot, this client would lock where no other does. It should be persistent, since Acquire fails once the server
// has removed it. Errors and logs, Conn and Guard have whole paths, which begin with the chroot.
//
// Dial fails with holdfast.ErrInvalid if an option or servers is invalid, or the chroot does not exist; with holdfast.ErrDenied if a
// server refused the credentials; and with holdfast.ErrDisconnected if no server gave a session, with the cause at each address, and
// ctx's error if ctx ended. It fails with holdfast.ErrDisconnected at once if no server ever will: each is no ZooKeeper server, or a
// certificate is refused.
func Dial(ctx context.Context, servers []string, opts *Options) (*Client, error) {
	resolved, err := opts.resolve()
	if err != nil {
		return nil, fmt.Errorf("zklock: dial: %w", err)
	}
	addresses, chroot, err := parseServers(servers)
	if err != nil {
		return nil, fmt.Errorf("zklock: dial: %w", err)
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("zklock: dial %s: %w: %w", strings.Join(servers, ","), driver.ErrDisconnected, driver.ContextError(ctx))
	}
	rounds := 0
	if _, ok := ctx.Deadline(); !ok {
		limit := resolved.DialTimeout
		if limit == 0 {
			rounds, limit = 2, time.Minute // for a server that gives a session and then does not serve
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	c := &Client{}
	c.Client, err = holdfast.New(driver.Config{
		Owner:        resolved.Owner,
		Margin:       resolved.Margin,
		Logger:       resolved.Logger,
		AbsoluteKeys: true,
		Features:     driver.Features{Ordered: true, Shares: resolved.Names != CuratorLatchNames},
		Clock:        clock.From(ctx),
		Lease:        c.SessionTimeout,
	}, resolved.OnEvent, func(host driver.Host) (driver.Driver, error) {
		c.engine = newEngine(ctx, host, resolved, chroot, rounds)
		err := c.engine.link.Connect(ctx, addresses)
		if err == nil && chroot != "" {
			err = c.engine.link.FindChroot(ctx, chroot)
		}
		if err != nil {
			over, cancel := context.WithCancel(ctx)
			cancel()
			_ = c.engine.Close(over)
			return nil, err
		}
		return c.engine, nil
	})
	if err != nil {
		return nil, fmt.Errorf("zklock: dial: %w", err)
	}
	return c, nil
}

// Conn returns the zk.Conn of the client's present connection, so that an application can use the same session for its own work,
// such as a transaction with Guard. Call Conn for each use: the zk.Conn ends with its connection, while the session goes on with
// another zk.Conn. Then its requests fail, as those in flight do, and its watches end with zk.EventNotWatching. So no request of the
// application ever runs in a later session.
//
// The client presents the newest 32 credentials that the application adds on later connections too. Paths are whole: Conn ignores the
// chroot. The session's events go to holdfast alone. Do not close the zk.Conn.
func (c *Client) Conn() *zk.Conn {
	if c.engine == nil {
		return nil
	}
	return c.engine.link.Conn()
}

// SessionTimeout returns the session timeout that was negotiated last: it is negotiated
// again whenever the session is resumed. Locks go by the shortest one of their session.
func (c *Client) SessionTimeout() time.Duration {
	if c.engine == nil {
		return 0
	}
	return c.engine.link.Times().Session
}

// Guard returns a check for a transaction (zk.Conn.Multi), which then succeeds only while lock is held: its node must exist. Guard
// fails with lock.Err's error if the lock has ended, and with holdfast.ErrInvalid if it is not a lock of this client.
func (c *Client) Guard(lock *holdfast.Lock) (*zk.CheckVersionRequest, error) {
	if lock == nil || c.engine == nil {
		return nil, fmt.Errorf("zklock: guard: %w", driver.Invalid("lock", "it is not a lock of this client"))
	}
	if err := lock.Err(); err != nil {
		return nil, fmt.Errorf("zklock: guard %q: %w", lock.Key(), err)
	}
	h, ok := driver.HoldOf(c.engine.host, lock).(*hold)
	if !ok {
		return nil, fmt.Errorf("zklock: guard %q: %w", lock.Key(), driver.Invalid("lock", "it is not a lock of this client"))
	}
	return &zk.CheckVersionRequest{Path: h.path, Version: -1}, nil
}
