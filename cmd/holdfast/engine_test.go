package main

import (
	"context"
	"errors"
	"slices"
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
	return &client{Client: c.Client, lease: func() time.Duration { return time.Minute }}, nil
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
	engines = append(slices.Clone(engines), e)
}
