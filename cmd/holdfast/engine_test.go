package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/doctor"
	"github.com/holdfast-go/holdfast/memlock"
)

// inMemory is an engine that is nowhere mentioned but in the list.
type inMemory struct {
	store  string
	stores map[string]*memlock.Store
}

func (m *inMemory) about() about {
	return about{
		name: "Memory", means: "store", lease: time.Minute,
		values: map[string][]string{"store": {"a", "b"}}, fields: map[string]string{"key": "KEY"},
	}
}

func (m *inMemory) addFlags(f *pflag.FlagSet) {
	f.StringVar(&m.store, "store", "", "Memory: name of the store")
}

func (m *inMemory) readEnv(func(string) (string, bool)) string { return "" }
func (m *inMemory) named() bool                                { return m.store != "" }

func (m *inMemory) connect(_ context.Context, _ *app, o connectOptions) (*client, error) {
	c, err := memlock.New(&memlock.Options{Store: m.stores[m.store], Owner: o.owner, OnEvent: o.onEvent})
	if err != nil {
		return nil, err
	}
	return &client{Client: c.Client, lease: func() time.Duration { return time.Minute }, queues: true}, nil
}

func (m *inMemory) doctor(context.Context, *app, string) (func(context.Context, func(doctor.Finding) error) error, error) {
	return func(_ context.Context, report func(doctor.Finding) error) error {
		return report(doctor.Finding{ID: "memory", Status: doctor.OK, Found: "there is some"})
	}, nil
}

func (m *inMemory) explain(err error) string {
	if errors.Is(err, holdfast.ErrHeld) {
		return "somebody else remembers it"
	}
	return ""
}

func (m *inMemory) commands(a *app) []*cobra.Command {
	return []*cobra.Command{{Use: "recall", Short: "Recall", RunE: func(*cobra.Command, []string) error {
		return a.print(struct{}{}, "%s", m.store)
	}}}
}

// useEngine lets the commands of a test know a further engine.
func useEngine(t *testing.T, e func() engine) {
	known := engines
	t.Cleanup(func() { engines = known })
	engines = append(engines[:2:2], e)
}

// A further engine needs an entry in the list, and then every command knows it.
func TestFurtherEngine(t *testing.T) {
	stores := map[string]*memlock.Store{"a": memlock.NewStore()}
	mine, err := memlock.New(&memlock.Options{Store: stores["a"]})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := mine.Acquire(t.Context(), "held", holdfast.WithOwner("me")); err != nil {
		t.Fatal(err)
	}
	useEngine(t, func() engine { return &inMemory{stores: stores} })
	servers := map[string]string{"HOLDFAST_SERVERS": "127.0.0.1:1"}
	for _, test := range []struct {
		env    map[string]string
		args   string
		status int
		out    string // is printed
		says   string // on stderr
	}{
		{nil, "--help", 0, "Flags for Memory:\n      --store string   name of the store [$HOLDFAST_STORE]\n", ""},
		{nil, "--help", 0, "zookeeper, dynamodb or memory; follows from", ""},
		{nil, "__complete ls --engine m", 0, "memory\n", ""},
		{nil, "__complete ls --store ", 0, "a\nb\n", ""},
		{nil, "ls", exitUsage, "", "--table (HOLDFAST_TABLE) for DynamoDB or --store (HOLDFAST_STORE) for Memory\n"},
		{nil, "ls --engine etcd", exitUsage, "", `--engine: "etcd": want zookeeper, dynamodb or memory`},
		{servers, "ls --store a --table b", exitUsage, "", "--servers, --table and --store are set: say which by --engine"},
		{servers, "ls --store a", exitUsage, "", "--servers and --store are set: say which by --engine"},
		{nil, "ls --engine memory --store a --mode fail-open", exitUsage, "", "--mode ($HOLDFAST_MODE) is for DynamoDB, and the engine is Memory"},
		{map[string]string{"HOLDFAST_AUTH": "digest:a:b"}, "ls --store a", exitUsage, "", "$HOLDFAST_AUTH is for ZooKeeper, and the engine is Memory"},
		{nil, "ls --table b --root /x", exitUsage, "", "--root ($HOLDFAST_ROOT) is for ZooKeeper, and the engine is DynamoDB"},
		{nil, "ls --store a", 0, "held", ""},
		{servers, "show held --engine memory --store a", 0, "me", ""},
		{nil, "hold held --try --store a", exitNotAcquired, "", "somebody else remembers it"},
		{nil, "hold free --store a", 0, "2\n", ""},
		{nil, "doctor --store a", 0, "there is some", ""},
		{nil, "recall --store a", 0, "a\n", ""},
	} {
		status, out, says := call(t, test.env, strings.Split(test.args, " ")...)
		if status != test.status || !strings.Contains(out, test.out) || !strings.Contains(says, test.says) {
			t.Errorf("%s: status %d, want %d, and\n%s%s, want %q and %q", test.args, status, test.status, out, says, test.out, test.says)
		}
	}
}
