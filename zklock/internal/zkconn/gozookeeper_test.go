package zkconn

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/zklock/internal/zktest"
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
			for i, n := range c.reads {
				if (n == 4) != (i%2 == 0) {
					t.Errorf("read %d is for %d bytes; %v", i, n, c.reads)
				}
			}
		},
		"session-id": func(t *testing.T, a *alone) {
			a.session = func(connection int) int64 { return int64(6 + connection) }
			a.begin(t)
			a.end()
			time.Sleep(time.Second)
			want(t, "events", a.events(), "EventSession StateConnecting 0, EventSession StateConnected 0, EventSession StateHasSession 7, "+
				"EventSession StateDisconnected 7, EventSession StateConnecting 7, EventSession StateConnected 7, EventSession StateHasSession 8")
		},
		"later": func(t *testing.T, a *alone) {
			a.session = func(connection int) int64 { return int64(6 + connection) }
			a.begin(t)
			a.end()
			time.Sleep(time.Millisecond)
			err := a.Delete("/a", -1)
			want(t, fmt.Sprint(err, ", requests"), a.requests(), "1 connect 0, 2 connect 7, 2 2")
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
				return [][]byte{zktest.Frame(int32(xidEvent), int64(-1), int32(0), deleted, int32(3), "/a")}
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
		"renewal": func(t *testing.T, a *alone) {
			a.begin(t)
			_, _, _, _ = a.GetW("/a")
			_, _, _, _ = a.ExistsW("/b")
			a.end()
			time.Sleep(time.Second)
			want(t, "requests", a.requests(), fmt.Sprintf("1 connect 0, 1 %d, 1 %d, 2 connect 7, 2 %d from 102", opGetW, opExists, opSetWatches))
		},
		"unrenewed": func(t *testing.T, a *alone) {
			a.refuse = func(_ int, op int32) int32 { return map[bool]int32{true: -127}[op == opSetWatches] }
			a.begin(t)
			_, _, fired, _ := a.GetW("/a")
			a.end()
			time.Sleep(time.Minute)
			select {
			case e := <-fired:
				t.Errorf("the watch has heard: %+v", e)
			default:
			}
			if n := len(a.connections()); n != 2 {
				t.Errorf("%d connections", n)
			}
		},
		"credentials": func(t *testing.T, a *alone) {
			a.begin(t)
			_ = a.AddAuth("digest", []byte("user:password"))
			_, _, _, _ = a.GetW("/a")
			a.silent = func(connection int, op int32) bool { return connection == 2 && op == opSetAuth }
			a.end()
			time.Sleep(time.Second)
			want(t, "requests", a.requests(), fmt.Sprintf("1 connect 0, 1 %d, 1 %d, 2 connect 7, 2 %[1]d", opSetAuth, opGetW))
		},
		"expired": func(t *testing.T, a *alone) {
			a.session = func(connection int) int64 { return map[int]int64{1: 7, 2: 0, 3: 9}[connection] }
			a.begin(t)
			_, _, fired, _ := a.GetW("/a")
			a.end()
			time.Sleep(time.Minute)
			if e := <-fired; e.Type != zk.EventNotWatching {
				t.Errorf("the watch has heard: %+v", e)
			}
			if !strings.Contains(a.events(), "StateExpired 0") || a.SessionID() != 9 {
				t.Errorf("events: %s; session %d", a.events(), a.SessionID())
			}
			c := a.connections()[1]
			c.mu.Lock()
			defer c.mu.Unlock()
			if c.closed {
				t.Error("the connection is closed")
			}
		},
		"rounds": func(t *testing.T, a *alone) {
			closing, noMore := context.WithCancel(t.Context())
			a.ring, a.down = &ring{closing: closing}, true
			a.begin(t)
			dials := func(during time.Duration) int64 {
				before := a.dials.Load()
				time.Sleep(during)
				return a.dials.Load() - before
			}
			a.Close()
			if dials(time.Minute) == 0 {
				t.Error("it looks whether it is to be closed before a round is over")
			}
			noMore()
			if time.Sleep(time.Second); dials(time.Minute) > 0 {
				t.Error("it goes on after a round")
			}
		},
		"unsent": func(t *testing.T, a *alone) {
			closing, noMore := context.WithCancel(t.Context())
			rests, quitting := make(chan struct{}), make(chan struct{})
			a.ring = &ring{closing: closing, rests: rests, quitting: quitting}
			a.begin(t)
			noMore()
			a.end()
			<-rests
			began := time.Now()
			close(quitting)
			a.Close()
			if took := time.Since(began); took > handTime {
				t.Errorf("Close took %v", took)
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
			if _, err := a.Sync("/"); !errors.Is(named(err), errBusy) {
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
	t.Run("twice", func(t *testing.T) { // in real time, since a goroutine stays behind
		a := &alone{timeout: time.Hour, deaf: func(connection, write int) bool { return connection == 2 && write == 2 }}
		standing := func() int {
			stacks := make([]byte, 1<<20)
			return bytes.Count(stacks[:runtime.Stack(stacks, true)], []byte("(*Conn).flushRequests("))
		}
		before := standing()
		a.begin(t)
		added := make(chan error, 1)
		go func() { added <- a.AddAuth("digest", []byte("user:password")) }()
		select {
		case err := <-added:
			if err != nil {
				t.Fatal(err)
			}
		case <-time.After(patience):
			t.Fatal("never: credentials are accepted")
		}
		a.end()
		eventually(t, "it stands still", func() bool { return standing() > before })
	})
}
