package zkconn

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
)

// TestGoZooKeeper tests what gozookeeper.go says of it.
func TestGoZooKeeper(t *testing.T) {
	want := func(t *testing.T, what, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %s\nwant %s", what, got, want)
		}
	}
	for name, test := range map[string]func(t *testing.T, a *alone){
		"frames": func(t *testing.T, a *alone) {
			a.begin(t)
			_, _ = a.Sync("/")
			_, _ = a.Multi(&zk.CheckVersionRequest{Path: "/", Version: -1}, &zk.DeleteRequest{Path: "/a", Version: -1})
			_ = a.AddAuth("digest", []byte("user:password"))
			time.Sleep(10 * time.Second) // pings
			c := a.connections()[0]
			c.mu.Lock()
			defer c.mu.Unlock()
			for _, w := range c.writes {
				if len(w) < 4 || int(binary.BigEndian.Uint32(w)) != len(w)-4 {
					t.Errorf("%x is no frame", w)
				}
			}
			if len(c.writes) < 6 {
				t.Errorf("%d writes", len(c.writes))
			}
		},
		"session": func(t *testing.T, a *alone) {
			a.begin(t)
			want(t, "events", a.events(), "EventSession StateConnecting 0, EventSession StateConnected 0, EventSession StateHasSession 7")
			want(t, "requests", a.requests(), "1 connect 0")
		},
		"rounds": func(t *testing.T, a *alone) {
			a.begin(t)
			provider := a.ring.(*onlyServer)
			a.end()
			<-provider.again
			began := time.Now()
			close(provider.quit)
			a.Close()
			if took := time.Since(began); took > handTime {
				t.Errorf("Close took %v", took)
			}
			if n := len(a.connections()); n != 1 {
				t.Errorf("%d connections", n)
			}
		},
		"a round more before Close": func(t *testing.T, a *alone) {
			a.begin(t)
			provider := a.ring.(*onlyServer)
			a.end()
			<-provider.again
			close(provider.quit)
			time.Sleep(time.Minute)
			a.Close()
		},
		"answers": func(t *testing.T, a *alone) {
			a.silent = func(_ int, op int32) bool { return op == opDelete }
			a.begin(t)
			result := make(chan error, 2)
			go func() { result <- a.Delete("/a", -1) }()
			time.Sleep(time.Millisecond)
			a.end()
			if err := <-result; !errors.Is(err, zk.ErrConnectionClosed) {
				t.Errorf("one that was sent: %v", err)
			}
			go func() { result <- a.Delete("/b", -1) }()
			time.Sleep(time.Millisecond)
			a.Close()
			if err := <-result; err == nil {
				t.Error("one that was handed over before Close succeeded")
			}
		},
		"order": func(t *testing.T, a *alone) {
			const deleted = int32(zk.EventNodeDeleted)
			a.before = func(_ int, op int32) [][]byte {
				if op != opSync {
					return nil
				}
				return [][]byte{frame(int32(xidEvent), int64(-1), int32(0), deleted, int32(3), "/a")}
			}
			a.begin(t)
			_, _, _, err := a.GetW("/a")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := a.Sync("/"); err != nil {
				t.Fatal(err)
			}
			if !strings.HasSuffix(a.events(), "EventNodeDeleted StateSyncConnected 7") {
				t.Errorf("events before the answer: %s", a.events())
			}
		},
		"closing": func(t *testing.T, a *alone) {
			a.begin(t)
			a.Close()
			time.Sleep(time.Minute)
			want(t, "requests", a.requests(), fmt.Sprintf("1 connect 0, 1 %d", opCloseSession))
		},
		"unnamed": func(t *testing.T, a *alone) {
			a.refuse = func(int, int32) int32 { return -127 }
			a.begin(t)
			if _, err := a.Sync("/"); !errors.Is(StepError("sync", "/", err), errBusy) {
				t.Errorf("%v", err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := &alone{}
				test(t, a)
				a.finish()
			})
		})
	}
}
