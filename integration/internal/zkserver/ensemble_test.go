package zkserver

import (
	"context"
	"testing"
	"time"
)

// TestIsolateLasts guards that the members do not bypass the proxies between them: they tell each other their own addresses.
func TestIsolateLasts(t *testing.T) {
	t.Parallel()
	e := NewEnsemble(t, Config{TickTime: 200 * time.Millisecond, SyncLimit: 25, MaxSessionTimeout: session})
	leader, followers, err := e.Roles(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for _, isolated := range []int{followers[0], leader} {
		e.Isolate(isolated)
		if err := e.WaitModes(ctx, func(modes []string) bool { return modes[isolated] == "" }); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Second) // longer than an election
		if mode, err := Mode(t.Context(), e.Servers()[isolated].Addr()); err == nil {
			t.Errorf("the isolated server serves as %s", mode)
		}
		if err := e.HealAll(); err != nil {
			t.Fatal(err)
		}
		if err := e.WaitReady(ctx); err != nil {
			t.Fatal(err)
		}
	}
}
