package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"os"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/spf13/pflag"

	"github.com/holdfast-go/holdfast/zklock"
)

// zookeeperSettings are those that only ZooKeeper has.
type zookeeperSettings struct {
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

func (z *zookeeperSettings) addFlags(f *pflag.FlagSet) {
	f.StringSliceVar(&z.servers, "servers", nil, "ZooKeeper: host:port,...")
	f.StringVar(&z.root, "root", zklock.DefaultRoot, "ZooKeeper: the znode under which keys without a leading slash live")
	f.StringVar(&z.names, "names", namesCurator, "ZooKeeper: form of the node names, curator or kazoo: all who use a lock must agree")
	f.StringVar(&z.authFile, "auth-file", "", "ZooKeeper: file with SCHEME:CREDENTIALS lines, such as digest:user:password; HOLDFAST_AUTH has one such line itself")
	f.StringVar(&z.acl, "acl", aclOpen, "ZooKeeper: who may use what is created: open (everybody) or creator (whoever has the same credentials)")
	f.DurationVar(&z.tick, "tick-time", 0, "ZooKeeper: the servers' tickTime, where they accept sessions of less than two ticks")
	fromEnv(f, "servers", "HOLDFAST_SERVERS")
	fromEnv(f, "root", "HOLDFAST_ROOT")
	fromEnv(f, "names", "HOLDFAST_NAMES")
	fromEnv(f, "auth-file", "HOLDFAST_AUTH_FILE")
	fromEnv(f, "acl", "HOLDFAST_ACL")
	fromEnv(f, "tick-time", "HOLDFAST_TICK_TIME")
	z.tlsSettings.addFlags(f)
}

// options makes the library's options of the settings.
func (z *zookeeperSettings) options() (*zklock.Options, error) {
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
func (z *zookeeperSettings) credentials() ([]zklock.Auth, error) {
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
	f.BoolVar(&t.tls, "tls", false, "ZooKeeper: use TLS; any of the other --tls flags means it as well")
	f.StringVar(&t.caFile, "tls-ca", "", "ZooKeeper: PEM file with the authorities to trust (default: the system's)")
	f.StringVar(&t.certFile, "tls-cert", "", "ZooKeeper: PEM file with the client's certificate")
	f.StringVar(&t.keyFile, "tls-key", "", "ZooKeeper: PEM file with its key")
	f.StringVar(&t.tlsServer, "tls-server-name", "", "ZooKeeper: name in the servers' certificates (default: the host dialled)")
	fromEnv(f, "tls", "HOLDFAST_TLS")
	fromEnv(f, "tls-ca", "HOLDFAST_TLS_CA")
	fromEnv(f, "tls-cert", "HOLDFAST_TLS_CERT")
	fromEnv(f, "tls-key", "HOLDFAST_TLS_KEY")
	fromEnv(f, "tls-server-name", "HOLDFAST_TLS_SERVER_NAME")
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

// dialZooKeeper connects.
func (a *app) dialZooKeeper(ctx context.Context, o connectOptions) (*client, error) {
	options, err := a.set.zookeeperSettings.options()
	if err != nil {
		return nil, err
	}
	options.SessionTimeout = a.set.lease
	options.Owner, options.Logger, options.Hooks = o.owner, a.log, o.hooks
	if w := o.holds; w != nil {
		options.SessionTimeout, options.Margin = w.lease, w.margin
		// What the margin takes from the time that an outage may last, this gives
		// back in part: the session is shown to be alive at shorter intervals.
		options.HeartbeatPeriod = max(w.lease/12, time.Millisecond)
	}
	c, err := unlessRefused(ctx, a.set.addresses(), func(ctx context.Context) (*zklock.Client, error) {
		return zklock.Dial(ctx, a.set.servers, options)
	})
	if err != nil {
		return nil, err
	}
	return &client{Client: c.Client, zookeeper: c}, nil
}
