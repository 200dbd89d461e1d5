package integration_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/internal/faulthttp"
	"github.com/holdfast-go/holdfast/integration/internal/faultproxy"
	"github.com/holdfast-go/holdfast/integration/internal/zkserver"
)

// data reads what others read of the scene's key, and insists that it is held.
func (s *scene) data(t *testing.T) string {
	t.Helper()
	info, err := s.other(t).Inspect(limited(t), s.key)
	must(t, err)
	if !info.Held {
		t.Errorf("%s is not held", s.key)
	}
	return string(info.Data)
}

func setData(t *testing.T, lock *holdfast.Lock, data string) {
	t.Helper()
	if err := lock.SetData(limited(t), []byte(data)); err != nil {
		t.Errorf("SetData(%q): %v", data, err)
	}
}

// loseData has a SetData given up whose request is lost. By the time it returns the client is connected again.
func (s *scene) loseData(t *testing.T, lock *holdfast.Lock, data string) faultproxy.Frame {
	t.Helper()
	ctx, giveUp := context.WithCancel(limited(t))
	lost := s.proxy.LoseRequest(faultproxy.OpSetData, s.parent)
	reconnecting, reconnect := s.proxy.HoldRequest(faultproxy.OpConnect, "")
	defer reconnect()
	set := async(func() error { return lock.SetData(ctx, []byte(data)) })
	frame := receive(t, "loss", lost)
	receive(t, "reconnection", reconnecting)
	giveUp()
	if err := receive(t, "SetData returns", set); !errors.Is(err, context.Canceled) || !errors.Is(err, holdfast.ErrDisconnected) {
		t.Errorf("SetData returns %v", err)
	}
	return frame
}

// rewrites carries out a lost write now, as a server would that was stopped when it came.
func (s *scene) rewrites(t *testing.T, lost faultproxy.Frame) error {
	t.Helper()
	rest := lost.Payload[8+4+len(lost.Path):] // behind xid, opcode and path
	n := binary.BigEndian.Uint32(rest)
	data, version := rest[4:4+n], int32(binary.BigEndian.Uint32(rest[4+n:]))
	return errOf(s.conn.Set(lost.Path, data, version))
}

// Z34. The request of a SetData, or the reply to it, is lost. It is carried out once, and the lock lives on.
func TestDataReplyLost(t *testing.T) {
	t.Parallel()
	for direction, lose := range losses {
		t.Run(direction, func(t *testing.T) {
			play(t, nil, func(t *testing.T, s *scene) {
				lock := s.take(t, holdfast.WithData([]byte("old")))
				path := nodeOf(t, s.client, lock)
				for i, data := range []string{"new", "newer", ""} {
					lost := lose(s.proxy, faultproxy.OpSetData, s.parent)
					setData(t, lock, data)
					receive(t, "loss", lost)
					if got := s.data(t); got != data {
						t.Errorf("confirmed %q, and others read %q", data, got)
					}
					if stat := checkToken(t, s.conn, lock, path); int(stat.Version) != i+1 {
						t.Errorf("%d writes for %d calls", stat.Version, i+1)
					}
				}
				must(t, lock.Verify(limited(t)))
				release(t, lock)
				s.clean(t)
			})
		})
	}
}

// Z34. The request of a SetData that was given up arrives late. It never replaces what came later, or what is another's.
func TestDataArrivesLate(t *testing.T) {
	t.Parallel()
	for when, use := range map[string]func(*testing.T, *scene, *holdfast.Lock, func() error) (want string, last *holdfast.Lock){
		"after a later call": func(t *testing.T, s *scene, lock *holdfast.Lock, arrive func() error) (string, *holdfast.Lock) {
			setData(t, lock, "new")
			if err := arrive(); !errors.Is(err, zk.ErrBadVersion) {
				t.Errorf("the late request: %v", err)
			}
			return "new", lock
		},
		"before a later call": func(t *testing.T, s *scene, lock *holdfast.Lock, arrive func() error) (string, *holdfast.Lock) {
			check(t, arrive())
			if got := s.data(t); got != "late" {
				t.Errorf("others read %q", got)
			}
			setData(t, lock, "new")
			return "new", lock
		},
		"after the same again": func(t *testing.T, s *scene, lock *holdfast.Lock, arrive func() error) (string, *holdfast.Lock) {
			setData(t, lock, "old") // what is there: that alone does not show that it was written again
			if err := arrive(); !errors.Is(err, zk.ErrBadVersion) {
				t.Errorf("the late request: %v", err)
			}
			return "old", lock
		},
		"at the next holder's": func(t *testing.T, s *scene, lock *holdfast.Lock, arrive func() error) (string, *holdfast.Lock) {
			release(t, lock)
			next := s.take(t, holdfast.WithData([]byte("next")))
			if err := arrive(); !errors.Is(err, zk.ErrNoNode) {
				t.Errorf("the late request: %v", err)
			}
			return "next", next
		},
	} {
		t.Run(when, func(t *testing.T) {
			play(t, nil, func(t *testing.T, s *scene) {
				lock := s.take(t, holdfast.WithData([]byte("old")))
				lost := s.loseData(t, lock, "late")
				want, last := use(t, s, lock, func() error { return s.rewrites(t, lost) })
				if got := s.data(t); got != want {
					t.Errorf("others read %q, want %q", got, want)
				}
				must(t, last.Verify(limited(t)))
				release(t, last)
				s.clean(t)
			})
		})
	}
}

// Z37. What the holder hears of its own write is no reclaim, even if it has not looked at its node again when that goes.
func TestDataAndTheCause(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lose bool // the reply to SetData
		end  func(*testing.T, *scene, string)
		want error
	}{
		"broken":                 {end: func(t *testing.T, s *scene, path string) { s.delete(t, path) }, want: holdfast.ErrBroken},
		"broken, the reply lost": {lose: true, end: func(t *testing.T, s *scene, path string) { s.delete(t, path) }, want: holdfast.ErrBroken},
		"expired":                {end: func(t *testing.T, s *scene, _ string) { s.expire() }, want: holdfast.ErrSessionExpired},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, nil, func(t *testing.T, s *scene) {
				lock := s.take(t)
				path := nodeOf(t, s.client, lock)
				s.reads(t, 1)
				events := s.client.Events()
				if c.lose {
					s.proxy.LoseReply(faultproxy.OpSetData, s.parent)
					setData(t, lock, "1")
				}
				looks, pass := s.proxy.HoldRequest(faultproxy.OpGetData, path)
				defer pass()
				setData(t, lock, "2")
				receive(t, "the look at the own node", looks)
				c.end(t, s, path)
				pass()
				lostTo(t, lock, events, c.want)
				s.clean(t)
			})
		})
	}
}

// A write to the node by somebody else does not keep the holder from writing, nor does it end the lock.
func TestDataAfterForeignWrites(t *testing.T) {
	play(t, nil, func(t *testing.T, s *scene) {
		lock := s.take(t)
		path := nodeOf(t, s.client, lock)
		for i := range 3 {
			must(t, errOf(s.conn.Set(path, []byte("scribbled"), -1)))
			setData(t, lock, fmt.Sprint(i))
			if got := s.data(t); got != fmt.Sprint(i) {
				t.Errorf("others read %q", got)
			}
		}
		must(t, lock.Verify(limited(t)))
		release(t, lock)
		s.clean(t)
	})
}

// A waiter that hears of new data before it reads one node again, and lists nothing.
func TestDataAndWaiters(t *testing.T) {
	play(t, nil, func(t *testing.T, s *scene) {
		holder, got, _ := s.waiting(t)
		s.reads(t, 2)
		lists := s.proxy.Count(faultproxy.ToServer, faultproxy.OpGetChildren2)
		for i := range 3 {
			setData(t, holder, fmt.Sprint(i))
			s.reads(t, 3+i)
		}
		silent(t, "a grant", got)
		if n := s.proxy.Count(faultproxy.ToServer, faultproxy.OpGetChildren2) - lists; n > 0 {
			t.Errorf("%d lists", n)
		}
		s.passes(t, holder, got)
	})
}

// Z35. A server hangs up on data that is too large for it. The call fails, and the lock lives on.
func TestDataTooLargeForServer(t *testing.T) {
	start(t)
	server := zkserver.New(t, zkserver.Config{
		TickTime:          tick,
		MaxSessionTimeout: longest,
		Props:             map[string]string{"jute.maxbuffer": "20000"},
	})
	client := dial(t, server.Addr(), nil)
	lock := take(t, client, "large", holdfast.WithData([]byte("old")))
	if err := lock.SetData(limited(t), make([]byte, 60<<10)); !errors.Is(err, holdfast.ErrInvalid) {
		t.Errorf("SetData returns %v", err)
	}
	info, err := client.Inspect(limited(t), "large")
	must(t, err)
	if string(info.Data) != "old" {
		t.Errorf("the data is %q", info.Data)
	}
	setData(t, lock, string(make([]byte, 10<<10)))
	must(t, lock.Verify(limited(t)))
	release(t, lock)
}

// D6. The reply to a SetData is lost, or its request arrives after that of a later one, on a real server.
func TestDynamoDataReplyLost(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ late bool }{"reply lost": {}, "late": {true}} {
		t.Run(name, func(t *testing.T) {
			start(t)
			d := newDynamo(t)
			client, key := d.client(t, longLease), newKey(t)
			lock := take(t, client, key)
			arrives := make(chan struct{})
			fault := faulthttp.LoseReply(faulthttp.Reset)
			if c.late {
				fault = faulthttp.LateUntil(arrives, faulthttp.Reset)
			}
			lost := client.net.Once("UpdateItem", fault)
			setData(t, lock, "old")
			setData(t, lock, "new")
			close(arrives)
			if out := receive(t, "the late answer", lost); (out.Status == 200) == c.late {
				t.Errorf("the server has answered %d %s", out.Status, out.Reply)
			}
			info, err := client.Inspect(limited(t), key)
			must(t, err)
			if string(info.Data) != "new" {
				t.Errorf("the data is %q", info.Data)
			}
			must(t, lock.Verify(limited(t)))
			release(t, lock)
			d.isReleased(t, key)
		})
	}
}
