package zkserver

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
)

func TestEnsemblePartition(t *testing.T) {
	t.Parallel()
	const tick = 200 * time.Millisecond
	e := NewEnsemble(t, Config{TickTime: tick})
	leader, err := e.Leader(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	followers := e.Followers(t.Context())
	if len(followers) != EnsembleSize-1 {
		t.Fatalf("followers %v, want two", followers)
	}
	cutOff := followers[0]
	conn := connect(t, 4*time.Second, e.Servers()[followers[1]].Addr())
	if _, err := conn.Create("/before", nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatal(err)
	}

	if _, err := conn.Create("/mine", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatal(err)
	}
	// The leader learns of a follower's session from the follower, which reports once per
	// tick.
	eventually(t, "the leader lists the session on a follower, with its ephemeral node", 20*time.Second, func() bool {
		dump, err := Dump(t.Context(), e.Servers()[leader].Addr())
		if err != nil {
			t.Fatal(err)
		}
		id := conn.SessionID()
		return slices.Equal(dump.Live, []int64{id}) && slices.Equal(dump.Ephemerals[id], []string{"/mine"})
	})

	e.Isolate(cutOff)
	awaitModes(t, e, func(modes []string) bool { return modes[cutOff] == "" && modes[leader] == "leader" })
	if _, err := conn.Create("/during", nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
		t.Errorf("create on the majority's side: %v", err)
	}
	// A server that bypassed its proxies would be back within the time of an election.
	time.Sleep(3 * time.Second)
	if mode, err := Mode(t.Context(), e.Servers()[cutOff].Addr()); err == nil {
		t.Errorf("the isolated server serves as %s", mode)
	}
	heal(t, e)
	if ok, _, err := connect(t, 4*time.Second, e.Servers()[cutOff].Addr()).Exists("/during"); err != nil || !ok {
		t.Errorf("the healed server has the node created meanwhile: %v, %v; want true", ok, err)
	}

	e.Isolate(leader)
	awaitModes(t, e, func(modes []string) bool {
		return modes[leader] == "" && (modes[followers[0]] == "leader") != (modes[followers[1]] == "leader")
	})
	heal(t, e)
}

func awaitModes(t *testing.T, e *Ensemble, ok func([]string) bool) {
	t.Helper()
	started := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := e.WaitModes(ctx, ok); err != nil {
		t.Fatal(err)
	}
	t.Logf("took %v", time.Since(started))
}

func heal(t *testing.T, e *Ensemble) {
	t.Helper()
	started := time.Now()
	if err := e.HealAll(); err != nil {
		t.Fatal(err)
	}
	if err := e.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Logf("healed in %v", time.Since(started))
}

// Every index, to try links towards both higher and lower server ids.
func TestEnsembleLosesAndRegainsEachServer(t *testing.T) {
	t.Parallel()
	e := NewEnsemble(t, Config{})
	for i, s := range e.Servers() {
		s.Kill()
		awaitModes(t, e, func(modes []string) bool {
			leaders, followers := 0, 0
			for _, mode := range modes {
				switch mode {
				case "leader":
					leaders++
				case "follower":
					followers++
				}
			}
			return leaders == 1 && followers == 1
		})
		if err := s.Start(t.Context()); err != nil {
			t.Fatalf("server %d: %v", i, err)
		}
		if err := e.WaitReady(t.Context()); err != nil {
			t.Fatalf("after the restart of server %d: %v", i, err)
		}
	}
}

func TestIsolatePairLeavesTheThirdAlone(t *testing.T) {
	t.Parallel()
	e := NewEnsemble(t, Config{})
	leader, err := e.Leader(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	followers := e.Followers(t.Context())
	e.IsolatePair(followers[0], followers[1])
	time.Sleep(3 * time.Second)
	if now, err := e.Leader(t.Context()); err != nil || now != leader {
		t.Errorf("Leader = %d, %v after two followers were cut off; want still %d", now, err, leader)
	}
	if n := len(e.Followers(t.Context())); n != 2 {
		t.Errorf("%d followers after they were cut off from each other; want 2", n)
	}
	heal(t, e)
}

func TestMembersComeAndGo(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	e, err := StartEnsemble(ctx, Config{Reconfigurable: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	members := func() int {
		t.Helper()
		data, _, err := connect(t, 10*time.Second, e.Addrs()...).Get("/zookeeper/config")
		if err != nil {
			t.Fatal(err)
		}
		return strings.Count(string(data), "participant")
	}
	leader, err := e.Leader(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range []int{leader, (leader + 1) % EnsembleSize} {
		if err := e.Remove(ctx, i); err != nil {
			t.Fatal(err)
		}
		if got := members(); got != EnsembleSize-1 {
			t.Errorf("%d members after one was removed, want %d", got, EnsembleSize-1)
		}
		if err := e.Add(ctx, i); err != nil {
			t.Fatal(err)
		}
		if got := members(); got != EnsembleSize {
			t.Errorf("%d members after it was added, want %d", got, EnsembleSize)
		}
		if err := e.WaitReady(ctx); err != nil {
			t.Fatal(err)
		}
	}
}
