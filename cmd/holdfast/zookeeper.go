package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/doctor"
	"github.com/holdfast-go/holdfast/zklock"
)

// zooKeeper is the engine, with its own settings.
type zooKeeper struct {
	servers  []string
	root     string
	names    string
	auth     string // from the environment only
	authFile string
	acl      string
	tick     time.Duration
	tlsSettings

	renewedAuth *renewed[[]zklock.Auth] // set by options
}

// authVariable has credentials. A flag may not have them, because every user of the machine could read it.
const authVariable = "HOLDFAST_AUTH"

var nameForms = map[string]zklock.Names{
	"curator":       zklock.CuratorNames,
	"curator-latch": zklock.CuratorLatchNames,
	"curator-rw":    zklock.CuratorRWNames,
	"kazoo":         zklock.KazooNames,
}

func (z *zooKeeper) addFlags(f *pflag.FlagSet) {
	f.StringSliceVar(&z.servers, "servers", nil, "ZooKeeper: host:port,... and perhaps a chroot: host:port,.../app")
	f.StringVar(&z.root, "root", zklock.DefaultRoot, "ZooKeeper: the znode, below the chroot, under which keys without a leading slash live")
	f.StringVar(&z.names, "names", "curator", "ZooKeeper: form of the node names, curator, kazoo, curator-latch for an election with LeaderLatch, or curator-rw: all clients of a lock must agree")
	f.StringVar(&z.authFile, "auth-file", "", "ZooKeeper: file with SCHEME:CREDENTIALS lines, such as digest:user:password; HOLDFAST_AUTH has one such line itself")
	f.StringVar(&z.acl, "acl", "open", "ZooKeeper: ACL of new znodes: open (for everybody) or creator (for clients with the same credentials or certificate)")
	f.DurationVar(&z.tick, "tick-time", 0, "ZooKeeper: the servers' tickTime, where they accept sessions of less than two ticks")
	z.tlsSettings.addFlags(f)
}

// options converts the settings to the library's options.
func (z *zooKeeper) options() (*zklock.Options, error) {
	if len(z.servers) == 0 {
		return nil, usagef("ZooKeeper needs --servers (HOLDFAST_SERVERS)")
	}
	names, ok := nameForms[z.names]
	if !ok {
		return nil, usagef("--names: %q is none of curator, curator-latch, curator-rw and kazoo", z.names)
	}
	o := &zklock.Options{Root: z.root, TickTime: z.tick, Names: names}
	var err error
	if z.renewedAuth, err = newRenewed(z.credentials, z.authFile); err != nil {
		return nil, err
	}
	o.Auth = z.renewedAuth.value
	if o.TLSConfig, err = z.config(); err != nil {
		return nil, err
	}
	switch z.acl {
	case "open":
	case "creator":
		if len(o.Auth) == 0 && o.TLSConfig == nil { // a server may authenticate a TLS client by its certificate
			return nil, usagef("--acl creator needs credentials: --auth-file, HOLDFAST_AUTH or --tls-cert")
		}
		o.ACL, o.ParentACL = zk.AuthACL(zk.PermAll), zk.AuthACL(zk.PermAll)
	default:
		return nil, usagef("--acl: %q is neither open nor creator", z.acl)
	}
	return o, nil
}

// credentials reads HOLDFAST_AUTH and the --auth-file, whose contents appear in no message.
func (z *zooKeeper) credentials() ([]zklock.Auth, error) {
	type source struct{ name, text string }
	sources := []source{{authVariable, z.auth}}
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
			if _, password, _ := strings.Cut(credentials, ":"); scheme == "digest" && password == "" {
				return nil, usagef("%s: a line has no password: it is of the form digest:user:password", s.name)
			}
			auth = append(auth, zklock.Auth{Scheme: scheme, Credentials: credentials})
		}
	}
	return auth, nil
}

// tlsSettings say how to use TLS with ZooKeeper.
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

// config returns a function that makes the configuration of a connection from the present files; nil without TLS.
func (t *tlsSettings) config() (func() (*tls.Config, error), error) {
	if !t.tls && t.caFile == "" && t.certFile == "" && t.keyFile == "" && t.tlsServer == "" {
		return nil, nil
	}
	var authorities *renewed[*x509.CertPool]
	var certificate *renewed[tls.Certificate]
	var err error
	if t.caFile != "" {
		if authorities, err = newRenewed(t.readAuthorities, t.caFile); err != nil {
			return nil, err
		}
	}
	if t.certFile != "" || t.keyFile != "" {
		if t.certFile == "" || t.keyFile == "" {
			return nil, usagef("--tls-cert and --tls-key go together")
		}
		load := func() (tls.Certificate, error) { return tls.LoadX509KeyPair(t.certFile, t.keyFile) }
		if certificate, err = newRenewed(load, t.certFile, t.keyFile); err != nil {
			return nil, usagef("--tls-cert, --tls-key: %w", err)
		}
	}
	return func() (*tls.Config, error) {
		c := &tls.Config{ServerName: t.tlsServer}
		if authorities != nil {
			c.RootCAs = authorities.get()
		}
		if certificate != nil {
			c.Certificates = []tls.Certificate{certificate.get()}
		}
		return c, nil
	}, nil
}

func (t *tlsSettings) readAuthorities() (*x509.CertPool, error) {
	pem, err := os.ReadFile(t.caFile)
	if err != nil {
		return nil, usagef("--tls-ca: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, usagef("--tls-ca: %s has no certificate in PEM", t.caFile)
	}
	return roots, nil
}

func (z *zooKeeper) about() about {
	return about{
		name: "ZooKeeper", means: "servers", lease: zklock.DefaultSessionTimeout,
		values: map[string][]string{
			"names": slices.Sorted(maps.Keys(nameForms)),
			"acl":   {"open", "creator"},
		},
		fields: map[string]string{
			"servers":                "--servers",
			"Options.SessionTimeout": "--lease",
			"Options.TickTime":       "--tick-time",
			"Options.Root":           "--root",
			"Options.ACL":            "--acl",
		},
	}
}

func (z *zooKeeper) named() bool { return len(z.servers) > 0 }

func (z *zooKeeper) readEnv(lookup func(string) (string, bool)) string {
	if z.auth, _ = lookup(authVariable); z.auth == "" {
		return ""
	}
	return authVariable
}

func (z *zooKeeper) explain(error) string { return "" }

func (z *zooKeeper) commands(*app) []*cobra.Command { return nil }

func (z *zooKeeper) connect(ctx context.Context, a *app, o connectOptions) (*client, error) {
	options, err := z.options()
	if err != nil {
		return nil, err
	}
	options.SessionTimeout = a.set.lease
	options.Owner, options.Logger, options.OnEvent = o.owner, a.log, o.onEvent
	if w := o.holds; w != nil {
		options.SessionTimeout, options.Margin = w.lease, w.margin
		// The margin shortens the outages that a hold survives. More frequent heartbeats compensate for a part.
		options.Heartbeat = w.lease / 12
		if w.margin > w.lease*2/5 {
			options.Heartbeat = w.lease / 24
		}
		options.Heartbeat = max(options.Heartbeat, time.Millisecond)
	}
	hosts, _, _ := strings.Cut(strings.Join(z.servers, ","), "/") // as Dial does
	c, err := unlessRefused(ctx, zk.FormatServers(strings.Split(hosts, ",")), func(ctx context.Context) (*zklock.Client, error) {
		return zklock.Dial(ctx, z.servers, options)
	})
	if err != nil {
		return nil, err
	}
	if z.authFile != "" {
		go renewAuth(c, slices.Clone(options.Auth), z.renewedAuth)
	}
	return &client{Client: c.Client, lease: c.SessionTimeout}, nil
}

// renewAuth presents new credentials of --auth-file until the client is closed. ZooKeeper adds them to the former ones, to which the
// client's znodes may belong.
func renewAuth(c *zklock.Client, known []zklock.Auth, file *renewed[[]zklock.Auth]) {
	events := c.Events()
	defer events.Close()
	look := time.NewTicker(5 * time.Second)
	defer look.Stop()
	for {
		select {
		case <-events.Ready():
		case <-look.C:
		case <-events.Done():
			return
		}
		for _, a := range file.get() {
			if !slices.Contains(known, a) {
				known = append(known, a)
				go func() { _ = c.Conn().AddAuth(a.Scheme, []byte(a.Credentials)) }() // it may wait for a connection
			}
		}
	}
}

func (z *zooKeeper) doctor(_ context.Context, a *app, prefix string) (func(context.Context, func(doctor.Finding) error) error, error) {
	options, err := z.options()
	if err != nil {
		return nil, err
	}
	options.SessionTimeout, options.Logger = a.set.lease, a.log
	return doctor.ZooKeeper{Servers: z.servers, Options: *options, Prefix: prefix, Timeout: a.set.timeout}.Examine, nil
}
