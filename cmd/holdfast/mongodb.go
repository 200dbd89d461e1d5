package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.mongodb.org/mongo-driver/v2/mongo"
	mongoptions "go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/doctor"
	"github.com/holdfast-go/holdfast/mongolock"
)

// mongoDB is the engine, with its own settings.
type mongoDB struct {
	uri        string
	collection string
	standalone bool
	poll       time.Duration
}

func (m *mongoDB) addFlags(f *pflag.FlagSet) {
	f.StringVar(&m.uri, "mongodb", "", "MongoDB: connection string, mongodb://... or mongodb+srv://...; one with a password belongs into the variable, because every user of the machine can read a flag")
	f.StringVar(&m.collection, "collection", "holdfast.locks", "MongoDB: DATABASE.COLLECTION of the locks")
	f.BoolVar(&m.standalone, "standalone", false, "MongoDB: allow a server that is not a member of a replica set, for development")
	f.DurationVar(&m.poll, "mongodb-poll", 0, "MongoDB: how often to look at a key while waiting for it (default 1s)")
}

func (m *mongoDB) about() about {
	return about{
		name: "MongoDB", means: "mongodb", lease: mongolock.DefaultLease,
		fields: map[string]string{"Options.Lease": "--lease", "Options.Poll": "--mongodb-poll"},
	}
}

func (m *mongoDB) named() bool { return m.uri != "" }

func (m *mongoDB) readEnv(func(string) (string, bool)) string { return "" }

func (m *mongoDB) explain(err error) string {
	if text := err.Error(); errors.Is(err, mongolock.ErrServer) {
		return strings.Replace(text, "set Options.Standalone", "give --standalone", 1)
	}
	return ""
}

func (m *mongoDB) commands(*app) []*cobra.Command { return nil }

// open returns the collection, the addresses of the servers, and the library's options. It sends nothing to the servers.
func (m *mongoDB) open(a *app) (*mongo.Collection, []string, *mongolock.Options, error) {
	if m.uri == "" {
		return nil, nil, nil, usagef("MongoDB needs --mongodb (HOLDFAST_MONGODB)")
	}
	database, name, ok := strings.Cut(m.collection, ".")
	if !ok || database == "" || name == "" {
		return nil, nil, nil, usagef("--collection: %q is not of the form DATABASE.COLLECTION", m.collection)
	}
	set := mongoptions.Client().ApplyURI(m.uri)
	if err := set.Validate(); err != nil {
		if strings.Contains(m.uri, "@") { // the driver's text may have a part of the password
			err = errors.New("it cannot be read, or has a host that is not found; in a user name and a password, write / : @ % as %2F %3A %40 %25")
		}
		return nil, nil, nil, usagef("--mongodb: %w", err)
	}
	c, err := mongo.Connect(set.SetAppName("holdfast"))
	if err != nil {
		return nil, nil, nil, fmt.Errorf("MongoDB settings: %w", err)
	}
	var addresses []string
	for _, host := range set.Hosts {
		if _, _, err := net.SplitHostPort(host); err != nil {
			host = net.JoinHostPort(host, "27017")
		}
		addresses = append(addresses, host)
	}
	options := &mongolock.Options{Lease: a.set.lease, Poll: m.poll, Standalone: m.standalone, Logger: a.log}
	return c.Database(database).Collection(name), addresses, options, nil
}

func (m *mongoDB) connect(ctx context.Context, a *app, o connectOptions) (*client, error) {
	locks, addresses, options, err := m.open(a)
	if err != nil {
		return nil, err
	}
	options.Owner, options.OnEvent = o.owner, o.onEvent
	if w := o.holds; w != nil {
		options.Lease, options.Margin = w.lease, w.margin
		if w.margin > w.lease/3 { // default heartbeats would leave no time for a second try
			options.Heartbeat, options.Timeout = w.lease/6, min(w.lease/8, 5*time.Second)
		}
	}
	c, err := unlessRefused(ctx, addresses, func(ctx context.Context) (*mongolock.Client, error) {
		return mongolock.New(ctx, locks, options)
	})
	if err != nil {
		return nil, err
	}
	lease := cmp.Or(options.Lease, mongolock.DefaultLease)
	return &client{Client: c.Client, breakNow: c.BreakNow, lease: func() time.Duration { return lease }}, nil
}

func (m *mongoDB) doctor(_ context.Context, a *app, prefix string) (func(context.Context, func(doctor.Finding) error) error, error) {
	locks, _, options, err := m.open(a)
	if err != nil {
		return nil, err
	}
	return doctor.MongoDB{Collection: locks, Options: *options, Prefix: prefix, Timeout: a.set.timeout}.Examine, nil
}
