package zklock

import (
	"cmp"
	"crypto/tls"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/zktimes"
)

// The defaults of [Options].
const (
	DefaultRoot           = "/holdfast"
	DefaultSessionTimeout = 10 * time.Second
)

// MaxSessionTimeout is the longest session timeout that may be asked for.
const MaxSessionTimeout = 24 * time.Hour

// Options change how a [Client] works. The zero value, like nil, has the defaults. They are copied.
type Options struct {
	// Root is the znode under which keys live that do not start with a slash;
	// it is created when needed. Default: DefaultRoot. Not "/", nor in /zookeeper.
	Root string

	// SessionTimeout is the session timeout to ask for: how long the server waits for a silent client before it gives its locks to
	// others. The server clamps it, usually to 2 to 20 of its ticks: Client.SessionTimeout returns the result. Default:
	// DefaultSessionTimeout; 1 ms to MaxSessionTimeout.
	SessionTimeout time.Duration

	// DialTimeout bounds Dial if its ctx has no deadline. Default: two rounds over all addresses; see [Dial].
	DialTimeout time.Duration

	// Heartbeat is how often a session that holds locks sends a sync, and then a write to the quorum (one for all locks), to prove
	// that it lives. Default: a sixth of the negotiated timeout. At most a quarter of SessionTimeout, and of the negotiated
	// timeout: then the deadline is a quarter to a half of the timeout ahead, less the margin, instead of a half to two thirds. A
	// session without locks sends a sync per third of the timeout.
	//
	// A negative value turns all of these off. The end of the session is then counted from the last request of any kind that a
	// server acknowledged, and "the holder knows first" no longer holds when a follower is cut off from its leader together with
	// its client, for up to syncLimit ticks.
	Heartbeat time.Duration

	// TickTime is the servers' tick, or the longest of several. It matters only where the ensemble has lowered minSessionTimeout below
	// two ticks, or ticks differ. Default: half the negotiated session timeout, which is at least a tick everywhere else.
	TickTime time.Duration

	// Names is the form of the node names, which decides who can share a lock. Default: CuratorNames.
	Names Names

	// Auth is presented to the server on every connection.
	Auth []Auth

	// ACL is for lock nodes, ParentACL for the znodes above them that have to be created. Default: open to the world. All contenders
	// for a lock must be able to read its nodes. A client that may not read its own fails with ErrDenied; if a lock was granted before
	// that is noticed, it is lost a moment later. A permit of more than 8 must also be able to write its own node. A program that may
	// delete or write the nodes can break the lock.
	ACL, ParentACL []zk.ACL

	// PersistentParents makes the parents plain persistent znodes. The default is container znodes, which the server removes some
	// time after they have become empty. With KazooNames parents are always persistent: an object of kazoo that has seen its parent
	// never creates it again, and fails for good once the parent is removed.
	PersistentParents bool

	// TLS, if set, is used for every connection. ServerName defaults to the host dialled.
	TLS *tls.Config

	// TLSConfig, if set, takes the place of TLS: each attempt at a connection calls it, perhaps several at the same time, and uses
	// what it returns, so that renewed certificates count; nil has all defaults. It must not block. An error fails that attempt only.
	TLSConfig func() (*tls.Config, error)

	// Margin is taken off the session timeout for the drift of clocks. Default: max(50 ms, session/20). The rest has to last from one
	// heartbeat until the second or third after it has been answered. So it is a third of SessionTimeout at most, a twelfth with
	// heartbeats every quarter of that, and nearly half with heartbeats every twenty-fourth.
	Margin time.Duration

	Owner string // default owner name; default: host:pid:random
	// Logger receives the log of the client, on a goroutine of the client; Close waits for it. Default nil: silent.
	Logger *slog.Logger

	// OnEvent receives all events of the client: see [holdfast.Event]. A Heartbeat is one of the session and has no Key. Default: none.
	OnEvent func(holdfast.Event)
}

// Auth is a credential, such as {"digest", "user:password"}.
type Auth struct {
	Scheme      string
	Credentials string
}

// String hides the credentials.
func (a Auth) String() string { return a.Scheme + ":(hidden)" }

// GoString hides the credentials.
func (a Auth) GoString() string { return a.String() }

// resolve returns a copy with all defaults filled in, or says what is wrong.
func (o *Options) resolve() (Options, error) {
	var c Options
	if o != nil {
		c = *o
	}
	for _, d := range []struct {
		name     string
		value    *time.Duration
		standard time.Duration
		most     time.Duration
	}{
		{"Options.SessionTimeout", &c.SessionTimeout, DefaultSessionTimeout, MaxSessionTimeout},
		{"Options.DialTimeout", &c.DialTimeout, 0, MaxSessionTimeout},
		{"Options.TickTime", &c.TickTime, 0, MaxSessionTimeout},
		{"Options.Margin", &c.Margin, 0, MaxSessionTimeout},
	} {
		switch {
		case *d.value < 0:
			return c, driver.Invalid(d.name, "%v is negative", *d.value)
		case *d.value > d.most:
			return c, driver.Invalid(d.name, "%v is more than %v", *d.value, d.most)
		case *d.value == 0:
			*d.value = d.standard
		}
	}
	c.Root = cmp.Or(c.Root, DefaultRoot)
	if err := checkPath("Options.Root", c.Root); err != nil {
		return c, err
	}
	switch most := c.times(c.SessionTimeout).MaxMargin; {
	case c.SessionTimeout < time.Millisecond:
		return c, driver.Invalid("Options.SessionTimeout", "%v is less than a millisecond", c.SessionTimeout)
	case c.Heartbeat > 0 && c.Heartbeat < time.Millisecond:
		return c, driver.Invalid("Options.Heartbeat", "%v is less than a millisecond", c.Heartbeat)
	case c.Heartbeat > c.SessionTimeout/4:
		return c, driver.Invalid("Options.Heartbeat", "%v is more than a quarter of the session timeout, %v", c.Heartbeat, c.SessionTimeout)
	case c.Margin > most && c.Heartbeat >= 0:
		return c, driver.Invalid("Options.Margin", "%v is more than %v, which is the most that a session of %v can spare between heartbeats every %v",
			c.Margin, most, c.SessionTimeout, c.times(c.SessionTimeout).Heartbeat)
	case within(c.Root, "/zookeeper"):
		return c, driver.Invalid("Options.Root", "%q is the server's own", c.Root)
	case c.Names < 0 || c.Names >= namesEnd:
		return c, driver.Invalid("Options.Names", "%d is not a known form", c.Names)
	case slices.ContainsFunc(c.Auth, func(a Auth) bool { return a.Scheme == "" }):
		return c, driver.Invalid("Options.Auth", "a scheme is empty")
	case c.TLS != nil && c.TLSConfig != nil:
		return c, driver.Invalid("Options.TLSConfig", "Options.TLS is set as well")
	case c.TLS != nil:
		config := c.TLS.Clone()
		c.TLS, c.TLSConfig = config, func() (*tls.Config, error) { return config, nil }
	}
	c.PersistentParents = c.PersistentParents || c.Names.form().persistent
	c.Auth = slices.Clone(c.Auth)
	for _, acl := range []*[]zk.ACL{&c.ACL, &c.ParentACL} {
		if *acl = slices.Clone(*acl); len(*acl) == 0 {
			*acl = zk.WorldACL(zk.PermAll)
		}
	}
	return c, nil
}

// times returns the durations that follow from a session timeout.
func (o *Options) times(session time.Duration) *zktimes.Times {
	return zktimes.Of(session, o.Heartbeat, o.TickTime, o.Margin)
}

// parseServers takes a connect string apart; chroot is "" if it has none. An address without a port gets ZooKeeper's default port from
// the client library.
func parseServers(servers []string) (addresses []string, chroot string, err error) {
	all := strings.Join(servers, ",")
	if before, _, url := strings.Cut(all, "://"); url {
		return nil, "", driver.Invalid("servers", "%q: leave out %s://, it is host:port", all, before[strings.LastIndexByte(before, ',')+1:])
	}
	hosts, path, _ := strings.Cut(all, "/")
	addresses = strings.Split(hosts, ",")
	for _, address := range addresses {
		_, port, err := net.SplitHostPort(address)
		n, notNumber := strconv.ParseUint(port, 10, 16)
		switch {
		case address == "" || strings.ContainsAny(address, " \t\r\n"), err != nil && strings.Contains(address, ":"):
			return nil, "", driver.Invalid("servers", "%q is not a host:port", address)
		case err == nil && (notNumber != nil || n == 0):
			return nil, "", driver.Invalid("servers", "%q: the port is not a number from 1 to 65535", address)
		}
	}
	if path == "" {
		return addresses, "", nil
	}
	switch chroot = "/" + path; {
	case strings.Contains(chroot, ","):
		return nil, "", driver.Invalid("servers", "%q: a chroot comes once, after the last address", chroot)
	case strings.HasSuffix(chroot, "/"):
		return nil, "", driver.Invalid("servers", "the chroot %q must not end with a slash", chroot)
	case within(chroot, "/zookeeper"):
		return nil, "", driver.Invalid("servers", "the chroot %q is the server's own", chroot)
	}
	return addresses, chroot, checkPath("servers", chroot)
}
