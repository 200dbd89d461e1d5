package engine

import (
	"flag"
	"testing"
)

func TestFlags(t *testing.T) {
	for _, test := range []struct {
		args []string
		want string // "" for an error
	}{
		{nil, "memory"},
		{[]string{"-engine", "memory"}, "memory"},
		{[]string{"-engine", "zookeeper"}, "zookeeper"},
		{[]string{"-servers", "a:1,b:2"}, "zookeeper"},
		{[]string{"-engine", "memory", "-servers", "a:1"}, ""},
		{[]string{"-engine", "paper"}, ""},
	} {
		set := flag.NewFlagSet("", flag.ContinueOnError)
		flags := AddFlags(set)
		if err := set.Parse(test.args); err != nil {
			t.Fatal(err)
		}
		engine, err := flags.Open()
		switch {
		case test.want == "" && err == nil:
			t.Errorf("%q: no error", test.args)
		case test.want != "" && err != nil:
			t.Errorf("%q: %v", test.args, err)
		case err == nil && engine.Name != test.want:
			t.Errorf("%q: engine %s, want %s", test.args, engine.Name, test.want)
		}
	}
}

func TestMemoryClientsCompete(t *testing.T) {
	ctx, engine := t.Context(), Memory()
	a, err := engine.NewClient(ctx, "a")
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close(ctx)
	b, err := engine.NewClient(ctx, "b")
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close(ctx)
	if _, err := a.TryAcquire(ctx, "key"); err != nil {
		t.Fatal(err)
	}
	if _, err := b.TryAcquire(ctx, "key"); err == nil {
		t.Error("two clients of one engine hold one key")
	}
}
