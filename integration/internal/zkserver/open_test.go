package zkserver

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
)

// The name has Container in it for "make test-containers", which runs it with HOLDFAST_ZOOKEEPER=docker.
func TestOpenLocalOrContainer(t *testing.T) {
	t.Parallel()
	target := Find(t, Config{TickTime: 150 * time.Millisecond, ContainerCheckInterval: 10 * time.Millisecond, MaxSessionTimeout: session})
	if only := os.Getenv("HOLDFAST_ZOOKEEPER"); only != "" && Source(only) != target.Source() {
		t.Errorf("Source() = %q with HOLDFAST_ZOOKEEPER=%s", target.Source(), only)
	}
	conn := connect(t, target.Addrs()...)
	if _, err := conn.CreateContainer("/open-test", nil, zk.FlagContainer, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatal(err)
	}
	create(t, conn, "/open-test/child", zk.FlagEphemeral)
	if err := conn.Delete("/open-test/child", -1); err != nil {
		t.Fatal(err)
	}
	if target.Source() == Given {
		return // only a server that Open started has these settings
	}
	eventually(t, "the empty container is reaped, as the configuration says", func() bool {
		ok, _, err := conn.Exists("/open-test")
		return err == nil && !ok
	})
	conf, err := FourLetter(t.Context(), target.Addrs()[0], "conf")
	if err != nil || !strings.Contains(conf, "tickTime=150\n") {
		t.Errorf("conf = %q, %v; want tickTime=150", conf, err)
	}
	if target.LogTail() == "" {
		t.Error("no log")
	}
	target.Close()
	if _, err := Mode(t.Context(), target.Addrs()[0]); err == nil {
		t.Error("the server answers after Close")
	}
	target.Close()
}

func TestOpenGiven(t *testing.T) {
	s := New(t, Config{})
	t.Setenv("HOLDFAST_ZOOKEEPER", "")
	t.Setenv("ZOOKEEPER_SERVERS", " "+s.Addr()+", "+s.Addr())
	target := Find(t, Config{})
	if target.Source() != Given || len(target.Addrs()) != 2 || target.Addrs()[1] != s.Addr() {
		t.Errorf("Open = %s at %v, want the given servers", target.Source(), target.Addrs())
	}
	target.Close()
	if _, err := Mode(t.Context(), s.Addr()); err != nil {
		t.Errorf("Close has stopped a server that Open had not started: %v", err)
	}
	s.Kill()
	if target, err := Open(t.Context(), Config{}); err == nil {
		t.Errorf("Open = %v with a server that does not answer, want an error", target.Addrs())
	}
}

func TestOpenFailsWithTheCure(t *testing.T) {
	t.Setenv("ZOOKEEPER_SERVERS", "")
	t.Setenv("HOLDFAST_ZOOKEEPER", "local")
	t.Setenv("ZOOKEEPER_HOME", t.TempDir())
	if _, err := Open(t.Context(), Config{}); !errors.Is(err, ErrNotInstalled) {
		t.Errorf("Open without ZooKeeper's jars: %v, want ErrNotInstalled", err)
	}
	t.Setenv("HOLDFAST_ZOOKEEPER", "elsewhere")
	if _, err := Open(t.Context(), Config{}); err == nil {
		t.Error("Open with an unknown HOLDFAST_ZOOKEEPER succeeded")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	t.Setenv("HOLDFAST_ZOOKEEPER", "docker")
	if _, err := Open(ctx, Config{}); err == nil {
		t.Error("Open with an ended ctx succeeded")
	}
}
