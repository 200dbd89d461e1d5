package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"os"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/spf13/pflag"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/doctor"
	"github.com/holdfast-go/holdfast/zklock"
)

// zooKeeper is the engine, with the settings that only it has.
type zooKeeper struct {
	servers  []string
	root     string
	names    string
	auth     string // from the environment only
	authFile string
	acl      string
	tick     time.Duration
	tlsSettings
}

const (
	namesCurator = "curator"
	namesKazoo   = "kazoo"

	aclOpen    = "open"
	aclCreator = "creator"
)

func (z *zooKeeper) addFlags(f *pflag.FlagSet) {
	f.StringSliceVar(&z.servers, "servers", nil, "ZooKeeper: host:port,... and perhaps a chroot: host:port,.../app")
	f.StringVar(&z.root, "root", zklock.DefaultRoot, "ZooKeeper: the znode, below the chroot, under which keys without a leading slash live")
	f.StringVar(&z.names, "names", namesCurator, "ZooKeeper: form of the node names, curator or kazoo: all clients of a lock must agree")
	f.StringVar(&z.authFile, "auth-file", "", "ZooKeeper: file with SCHEME:CREDENTIALS lines, such as digest:user:password; HOLDFAST_AUTH has one such line itself")
	f.StringVar(&z.acl, "acl", aclOpen, "ZooKeeper: who may use the znodes that are created: open (everybody) or creator (clients with the same credentials)")
	f.DurationVar(&z.tick, "tick-time", 0, "ZooKeeper: the servers' tickTime, where they accept sessions of less than two ticks")
	z.tlsSettings.addFlags(f)
}

// options makes the library's options of the settings.
func (z *zooKeeper) options() (*zklock.Options, error) {
	if len(z.servers) == 0 {
		return nil, usagef("ZooKeeper needs --servers (HOLDFAST_SERVERS)")
	}
	o := &zklock.Options{Root: z.root, TickTime: z.tick}
	switch z.names {
	case namesCurator:
		o.Names = zklock.CuratorNames
	case namesKazoo:
		o.Names = zklock.KazooNames
	default:
		return nil, usagef("--names: %q is neither curator nor kazoo", z.names)
	}
	var err error
	if o.Auth, err = z.credentials(); err != nil {
		return nil, err
	}
	switch z.acl {
	case aclOpen:
	case aclCreator:
		if len(o.Auth) == 0 {
			return nil, usagef("--acl creator needs credentials: --auth-file or HOLDFAST_AUTH")
		}
		o.ACL, o.ParentACL = zk.AuthACL(zk.PermAll), zk.AuthACL(zk.PermAll)
	default:
		return nil, usagef("--acl: %q is neither open nor creator", z.acl)
	}
	o.TLS, err = z.config()
	return o, err
}

// credentials reads HOLDFAST_AUTH and the --auth-file. What is in them appears
// in no message.
func (z *zooKeeper) credentials() ([]zklock.Auth, error) {
	type source struct{ name, text string }
	sources := []source{{"HOLDFAST_AUTH", z.auth}}
	if z.authFile != "" {
		text, err := os.ReadFile(z.authFile)
		if err != nil {
			return nil, usagef("--auth-file: %w", err)
		}
		sources = append(sources, source{"--auth-file " + z.authFile, string(text)})
	}
	var auth []zklock.Auth
	for _, s := range sources {
		for line := range strings.Lines(s.text) {
			line = strings.TrimRight(line, "\r\n")
			if line == "" || strings.HasPrefix(line, "#") {
				continue
			}
			scheme, credentials, ok := strings.Cut(line, ":")
			if !ok || scheme == "" {
				return nil, usagef("%s: a line is not of the form SCHEME:CREDENTIALS, such as digest:user:password", s.name)
			}
			auth = append(auth, zklock.Auth{Scheme: scheme, Credentials: credentials})
		}
	}
	return auth, nil
}

// tlsSettings say how to talk TLS to ZooKeeper.
type tlsSettings struct {
	tls                                  bool
	caFile, certFile, keyFile, tlsServer string
}

func (t *tlsSettings) addFlags(f *pflag.FlagSet) {
	f.BoolVar(&t.tls, "tls", false, "ZooKeeper: use TLS; any other --tls flag implies it")
	f.StringVar(&t.caFile, "tls-ca", "", "ZooKeeper: PEM file with the authorities to trust (default: the system's)")
	f.StringVar(&t.certFile, "tls-cert", "", "ZooKeeper: PEM file with the client's certificate")
	f.StringVar(&t.keyFile, "tls-key", "", "ZooKeeper: PEM file with its key")
	f.StringVar(&t.tlsServer, "tls-server-name", "", "ZooKeeper: name in the servers' certificates (default: the host dialled)")
}

// config returns nil if TLS is not wanted.
func (t *tlsSettings) config() (*tls.Config, error) {
	if !t.tls && t.caFile == "" && t.certFile == "" && t.keyFile == "" && t.tlsServer == "" {
		return nil, nil
	}
	c := &tls.Config{ServerName: t.tlsServer}
	if t.caFile != "" {
		pem, err := os.ReadFile(t.caFile)
		if err != nil {
			return nil, usagef("--tls-ca: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, usagef("--tls-ca: %s has no certificate in PEM", t.caFile)
		}
	}
	if t.certFile != "" || t.keyFile != "" {
		if t.certFile == "" || t.keyFile == "" {
			return nil, usagef("--tls-cert and --tls-key go together")
		}
		pair, err := tls.LoadX509KeyPair(t.certFile, t.keyFile)
		if err != nil {
			return nil, usagef("--tls-cert, --tls-key: %w", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

func (z *zooKeeper) named() bool { return len(z.servers) > 0 }

func (z *zooKeeper) defaultLease() time.Duration { return zklock.DefaultSessionTimeout }

func (z *zooKeeper) connect(ctx context.Context, a *app, o connectOptions) (*client, error) {
	options, err := z.options()
	if err != nil {
		return nil, err
	}
	options.SessionTimeout = a.set.lease
	options.Owner, options.Logger, options.Hooks = o.owner, a.log, o.hooks
	if w := o.holds; w != nil {
		options.SessionTimeout, options.Margin = w.lease, w.margin
		// What the margin takes from the time that an outage may last, this gives
		// back in part: the session is shown to be alive at shorter intervals.
		options.Heartbeat = max(w.lease/12, time.Millisecond)
	}
	hosts, chroot, _ := strings.Cut(strings.Join(z.servers, ","), "/") // as Dial does
	if chroot != "" {
		chroot = "/" + chroot
	}
	c, err := unlessRefused(ctx, zk.FormatServers(strings.Split(hosts, ",")), func(ctx context.Context) (*zklock.Client, error) {
		return zklock.Dial(ctx, z.servers, options)
	})
	if err != nil {
		return nil, err
	}
	// ZooKeeper tells of each change, and is asked from time to time for safety's sake.
	// A look reads the node of each contender: waiters by the thousand are looked at
	// seldomer, so that a watch never makes more than 200 requests a second.
	return &client{Client: c.Client, lease: c.SessionTimeout, looks: looks{
		interval: 250 * time.Millisecond, idle: 30 * time.Second, perNode: 5 * time.Millisecond,
		alarm: func(key string) <-chan zk.Event { return lockAlarm(c.Conn(), chroot+lockPath(z.root, key)) },
	}}, nil
}

func (z *zooKeeper) doctor(_ context.Context, a *app, prefix string) (func(context.Context, func(doctor.Finding) error) error, error) {
	options, err := z.options()
	if err != nil {
		return nil, err
	}
	options.SessionTimeout, options.Logger = a.set.lease, a.log
	return doctor.ZooKeeper{Servers: z.servers, Options: *options, Prefix: prefix, Timeout: a.set.timeout}.Examine, nil
}

// lockAlarm sets a watch that rings when something is created or deleted below a
// lock's znode, and returns what it rings by. Whoever has one does not set
// another, so there is one in the server, which ends with the session. Without a
// connection it waits for one. It returns nil if it cannot: the looks that are
// due anyway must do then.
func lockAlarm(conn *zk.Conn, path string) <-chan zk.Event {
	const attempts = 3 // the node may come and go between the requests
	for range attempts {
		_, _, ring, err := conn.ChildrenW(path)
		exists := false
		if errors.Is(err, zk.ErrNoNode) {
			exists, _, ring, err = conn.ExistsW(path)
		}
		if err != nil {
			return nil
		}
		if !exists {
			return ring
		}
	}
	return nil
}

// lockPath returns the znode whose children are the queue for a key, as the
// documentation of zklock describes it.
func lockPath(root, key string) string {
	if strings.HasPrefix(key, "/") {
		return key
	}
	var b strings.Builder
	b.WriteString(root + "/")
	for _, r := range key {
		forbidden := r == '/' || r == '%' || r <= 0x1f || 0x7f <= r && r <= 0x9f || 0xd800 <= r && r <= 0xf8ff || r >= 0xfff0
		if !forbidden {
			b.WriteRune(r)
			continue
		}
		for _, c := range []byte(string(r)) {
			const hex = "0123456789ABCDEF"
			b.Write([]byte{'%', hex[c>>4], hex[c&15]})
		}
	}
	return b.String()
}
