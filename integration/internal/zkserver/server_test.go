package zkserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/integration/internal/child"
	"github.com/holdfast-go/holdfast/integration/internal/verdict"
)

// session is a session timeout that outlasts any stall of the machine.
const session = 30 * time.Second

// connect is a session on the given servers that ends with the test.
func connect(t *testing.T, addrs ...string) *zk.Conn {
	t.Helper()
	conn, events, err := zk.Connect(addrs, session, zk.WithLogInfo(false), zk.WithLogger(silent{}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	deadline := time.After(patience)
	for {
		select {
		case e := <-events:
			if e.State == zk.StateHasSession {
				return conn
			}
		case <-deadline:
			verdict.Fatalf(t, "never: a session with %v", addrs)
		}
	}
}

// silent keeps go-zookeeper from writing to stderr.
type silent struct{}

func (silent) Printf(string, ...any) {}

// create makes an empty node with the flags that go-zookeeper has for it.
func create(t *testing.T, conn *zk.Conn, path string, flags int32) {
	t.Helper()
	if _, err := conn.Create(path, nil, flags, zk.WorldACL(zk.PermAll)); err != nil {
		verdict.Fatalf(t, "create %s: %v", path, err)
	}
}

// patience bounds everything that must happen: only a failure waits that long.
const patience = time.Minute

// eventually fails the test unless f becomes true.
func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		if f() {
			return
		}
		if time.Now().After(deadline) {
			verdict.Fatalf(t, "never: %s", what)
		}
	}
}

// childEnv makes this test binary start a server, print its pid and directory, and wait to be killed.
const childEnv = "HOLDFAST_ZKSERVER_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		beChild()
		return
	}
	os.Exit(verdict.Main(m.Run))
}

func beChild() {
	s, err := Start(context.Background(), Config{})
	if err != nil {
		os.Stderr.WriteString(err.Error())
		os.Exit(1)
	}
	println(s.PID())
	select {}
}

func TestServerDiesWithItsParent(t *testing.T) {
	t.Parallel()
	if child.Attr().Pdeathsig == 0 {
		t.Fatal("no parent-death signal on this system")
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"=1")
	out, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid := 0
	if _, err := fmt.Fscan(out, &pid); err != nil {
		t.Fatalf("the child printed no pid: %v", err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	cmd.Wait()
	eventually(t, "the server of a killed process is gone", func() bool {
		return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
	})
}
