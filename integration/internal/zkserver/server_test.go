package zkserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/integration/internal/child"
)

// connect is a session on the given servers that ends with the test.
func connect(t *testing.T, timeout time.Duration, addrs ...string) *zk.Conn {
	t.Helper()
	conn, events, err := zk.Connect(addrs, timeout, zk.WithLogInfo(false), zk.WithLogger(quiet{}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	deadline := time.After(20 * time.Second)
	for {
		select {
		case e := <-events:
			if e.State == zk.StateHasSession {
				return conn
			}
		case <-deadline:
			t.Fatalf("no session with %v within 20 s", addrs)
		}
	}
}

type quiet struct{}

func (quiet) Printf(string, ...any) {}

// eventually fails the test unless f becomes true in time.
func eventually(t *testing.T, what string, within time.Duration, f func() bool) {
	t.Helper()
	for deadline := time.Now().Add(within); ; time.Sleep(20 * time.Millisecond) {
		if f() {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", within, what)
		}
	}
}

func TestRestartKeepsAddressAndData(t *testing.T) {
	t.Parallel()
	s := New(t, Config{})
	addr := s.Addr()
	if !strings.HasPrefix(addr, "127.0.0.1:") {
		t.Errorf("Addr() = %q, want one on loopback", addr)
	}
	conn := connect(t, 4*time.Second, addr)
	if _, err := conn.Create("/kept", []byte("data"), 0, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatal(err)
	}
	for _, end := range []struct {
		name string
		f    func()
	}{{"Stop", func() { s.Stop(t.Context()) }}, {"Kill", s.Kill}} {
		end.f()
		if pid := s.PID(); pid != 0 {
			t.Errorf("PID() = %d after %s, want 0", pid, end.name)
		}
		if _, err := Mode(t.Context(), addr); err == nil {
			t.Errorf("the server still answers after %s", end.name)
		}
		if err := s.Start(t.Context()); err != nil {
			t.Fatalf("Start after %s: %v", end.name, err)
		}
		if s.Addr() != addr {
			t.Errorf("Addr() = %q after %s and Start, want %q", s.Addr(), end.name, addr)
		}
		data, _, err := connect(t, 4*time.Second, addr).Get("/kept")
		if err != nil || string(data) != "data" {
			t.Errorf("after %s and Start: Get = %q, %v; want the data written before", end.name, data, err)
		}
	}
	if err := s.Start(t.Context()); err == nil {
		t.Error("Start of a running server succeeded")
	}
}

func TestConfigureTakesEffectAtTheNextStart(t *testing.T) {
	t.Parallel()
	s := New(t, Config{Settings: map[string]string{"maxSessionTimeout": "9000"}})
	negotiated := func() string {
		t.Helper()
		connect(t, time.Minute, s.Addr())
		conns, err := Connections(t.Context(), s.Addr())
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range conns {
			if c.Session != 0 {
				return c.Fields["to"]
			}
		}
		t.Fatalf("no session among %v", conns)
		return ""
	}
	if got := negotiated(); got != "9000" {
		t.Errorf("a session of %s ms, want 9000", got)
	}
	if err := s.Configure(map[string]string{"maxSessionTimeout": "4000"}); err != nil {
		t.Fatal(err)
	}
	s.Kill()
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := negotiated(); got != "4000" {
		t.Errorf("a session of %s ms after the restart, want 4000", got)
	}
}

func TestPauseHoldsAnswersBack(t *testing.T) {
	t.Parallel()
	s := New(t, Config{})
	if err := s.Pause(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := FourLetter(ctx, s.Addr(), "srvr"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("srvr while paused: %v, want a time-out", err)
	}
	if err := s.Resume(); err != nil {
		t.Fatal(err)
	}
	if mode, err := Mode(t.Context(), s.Addr()); err != nil || mode != "standalone" {
		t.Errorf("Mode after Resume = %q, %v; want standalone", mode, err)
	}
	if err := s.Pause(); err != nil {
		t.Fatal(err)
	}
	started := time.Now()
	s.Stop(t.Context())
	if took := time.Since(started); took > stopPatience-time.Second {
		t.Errorf("Stop of a paused server took %v, as if it had to be killed", took)
	}
}

func TestStartHonoursContextAndConfig(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if s, err := Start(ctx, Config{}); !errors.Is(err, context.Canceled) {
		t.Errorf("Start with an ended ctx = %v, %v; want context.Canceled", s, err)
	}
	s, err := Start(t.Context(), Config{Settings: map[string]string{"tickTime": "nonsense"}})
	if err == nil || !strings.Contains(err.Error(), "nonsense") {
		t.Errorf("Start with a bad setting = %v, %v; want an error that shows the server's log", s, err)
	}
	s = New(t, Config{TickTime: 150 * time.Millisecond, MinSessionTimeout: time.Second, MaxSessionTimeout: 3 * time.Second})
	conf, err := FourLetter(t.Context(), s.Addr(), "conf")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"tickTime=150\n", "minSessionTimeout=1000\n", "maxSessionTimeout=3000\n", "maxClientCnxns=0\n"} {
		if !strings.Contains(conf, want) {
			t.Errorf("conf lacks %q:\n%s", want, conf)
		}
	}
}

func TestEmptyParentsAreReaped(t *testing.T) {
	t.Parallel()
	s := New(t, Config{ContainerCheckInterval: 10 * time.Millisecond})
	conn := connect(t, 4*time.Second, s.Addr())
	if _, err := conn.CreateContainer("/c", nil, zk.FlagContainer, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Create("/c/child", nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatal(err)
	}
	if err := conn.Delete("/c/child", -1); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the empty container is reaped", 5*time.Second, func() bool {
		ok, _, err := conn.Exists("/c")
		return err == nil && !ok
	})
}

func TestFourLetterWords(t *testing.T) {
	t.Parallel()
	s := New(t, Config{})
	conn := connect(t, 2*time.Second, s.Addr())
	if _, err := conn.Create("/a b", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := conn.GetW("/a b"); err != nil {
		t.Fatal(err)
	}
	id := conn.SessionID()

	watches, err := Watches(t.Context(), s.Addr())
	if err != nil || len(watches) != 1 || !slices.Equal(watches["/a b"], []int64{id}) {
		t.Errorf("Watches = %v, %v; want /a b watched by %d alone", watches, err, id)
	}
	bySession, err := WatchesBySession(t.Context(), s.Addr())
	if err != nil || len(bySession) != 1 || !slices.Equal(bySession[id], []string{"/a b"}) {
		t.Errorf("WatchesBySession = %v, %v; want %d watching /a b alone", bySession, err, id)
	}
	conns, err := Connections(t.Context(), s.Addr())
	if err != nil || !slices.ContainsFunc(conns, func(c Connection) bool {
		return c.Session == id && strings.HasPrefix(c.Remote, "127.0.0.1:") && c.Fields["to"] == "2000"
	}) {
		t.Errorf("Connections = %+v, %v; want one of session %d from loopback with a time-out of 2000 ms", conns, err, id)
	}
	dump, err := Dump(t.Context(), s.Addr())
	if err != nil || !slices.Equal(dump.Live, []int64{id}) || !slices.Equal(dump.Ephemerals[id], []string{"/a b"}) {
		t.Errorf("Dump = %+v, %v; want session %d with the ephemeral /a b", dump, err, id)
	}
	m, err := Metrics(t.Context(), s.Addr())
	if err != nil || m["zk_packets_sent"] == 0 || m["zk_approximate_data_size"] == 0 || m["zk_ephemerals_count"] != 1 {
		t.Errorf("Metrics: %v; sent %v, size %v, ephemerals %v; want them positive, and one ephemeral", err,
			m["zk_packets_sent"], m["zk_approximate_data_size"], m["zk_ephemerals_count"])
	}
}

// childEnv makes this test binary start a server, print its pid and directory, and wait to be killed.
const childEnv = "HOLDFAST_ZKSERVER_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		beChild()
		return
	}
	os.Exit(m.Run())
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
	eventually(t, "the server of a killed process is gone", 5*time.Second, func() bool {
		return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
	})
}
