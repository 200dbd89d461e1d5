package zkserver

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/integration/internal/verdict"
)

func TestEnsemblePartition(t *testing.T) {
	t.Parallel()
	const tick = 200 * time.Millisecond
	e := NewEnsemble(t, Config{TickTime: tick, SyncLimit: 25, MaxSessionTimeout: session}) // no server parts because the machine stands still
	leader, followers, err := e.Roles(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	cutOff := followers[0]
	conn := connect(t, e.Servers()[followers[1]].Addr())
	create(t, conn, "/mine", zk.FlagEphemeral)
	// The leader learns of a follower's session from the follower, which reports once per
	// tick.
	eventually(t, "the leader lists the session on a follower, with its ephemeral node", func() bool {
		dump, err := Dump(t.Context(), e.Servers()[leader].Addr())
		if err != nil {
			t.Fatal(err)
		}
		id := conn.SessionID()
		return slices.Equal(dump.Live, []int64{id}) && slices.Equal(dump.Ephemerals[id], []string{"/mine"})
	})

	e.Isolate(cutOff)
	awaitModes(t, e, func(modes []string) bool { return modes[cutOff] == "" && modes[leader] == "leader" })
	create(t, conn, "/during", 0)
	// A server that bypassed its proxies would be back within the time of an election.
	time.Sleep(3 * time.Second)
	if mode, err := Mode(t.Context(), e.Servers()[cutOff].Addr()); err == nil {
		t.Errorf("the isolated server serves as %s", mode)
	}
	heal(t, e)
	if ok, _, err := connect(t, e.Servers()[cutOff].Addr()).Exists("/during"); err != nil || !ok {
		t.Errorf("the healed server has the node created meanwhile: %v, %v; want true", ok, err)
	}

	e.IsolatePair(followers[0], followers[1])
	time.Sleep(3 * time.Second)
	if _, _, err := e.Roles(t.Context()); err != nil {
		t.Errorf("two followers that are cut off from each other do not both follow: %v", err)
	}
	heal(t, e)

	e.Isolate(leader)
	awaitModes(t, e, func(modes []string) bool {
		return modes[leader] == "" && (modes[followers[0]] == "leader") != (modes[followers[1]] == "leader")
	})
	heal(t, e)
}

func awaitModes(t *testing.T, e *Ensemble, ok func([]string) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := e.WaitModes(ctx, ok); err != nil {
		verdict.Fatalf(t, "%v", err)
	}
}

func heal(t *testing.T, e *Ensemble) {
	t.Helper()
	if err := e.HealAll(); err != nil {
		t.Fatal(err)
	}
	if err := e.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
}
