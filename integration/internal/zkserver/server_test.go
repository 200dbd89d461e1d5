package zkserver

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/integration/internal/verdict"
)

// session is a session timeout that outlasts any stall of the machine.
const session = 30 * time.Second

// patience bounds everything that must happen: only a failure waits that long.
const patience = time.Minute

func TestMain(m *testing.M) {
	os.Exit(verdict.Main(m.Run))
}

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

// TestVersionIsTheOneOfTheJar guards that a run on another version of ZooKeeper really uses it: that no other jar comes first.
func TestVersionIsTheOneOfTheJar(t *testing.T) {
	t.Parallel()
	pattern := filepath.Join(debianJars, "zookeeper-[0-9]*.jar")
	if home := os.Getenv("ZOOKEEPER_HOME"); home != "" {
		pattern = filepath.Join(home, "lib", "zookeeper-[0-9]*.jar")
	}
	jars, err := filepath.Glob(pattern)
	if err != nil || len(jars) != 1 {
		t.Fatalf("%s: %q, %v; want one jar", pattern, jars, err)
	}
	version, err := Version(t.Context(), New(t, Config{}).Addr())
	if err != nil {
		t.Fatal(err)
	}
	if got := "zookeeper-" + version + ".jar"; got != filepath.Base(jars[0]) {
		t.Errorf("the server is of %s, its jar is %s", version, jars[0])
	}
}
