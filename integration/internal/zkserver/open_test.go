package zkserver

import (
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
