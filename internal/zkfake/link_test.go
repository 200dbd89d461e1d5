package zkfake

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
)

// The fate of single requests: whether the call fails, and whether the request is carried out, at once or later.
func TestLosses(t *testing.T) {
	for name, c := range map[string]struct {
		lose  func(w *Wire)
		err   error
		then  bool
		later bool
	}{
		"request":  {func(w *Wire) { w.LoseRequest(opCreate) }, zk.ErrConnectionClosed, false, false},
		"reply":    {func(w *Wire) { w.LoseReply(opCreate) }, zk.ErrConnectionClosed, true, true},
		"late":     {func(w *Wire) { w.Late(opCreate, 3*time.Second) }, zk.ErrConnectionClosed, false, true},
		"another":  {func(w *Wire) { w.LoseReply(opDelete) }, nil, true, true},
		"disarmed": {func(w *Wire) { w.LoseReply(opCreate); w.Disarm() }, nil, true, true},
		"refused":  {func(w *Wire) { w.Answer(opCreate, int32(codeSessionExpired)) }, zk.ErrSessionExpired, false, false},
		"twice":    {func(w *Wire) { w.AppliedTwice(opCreate) }, zk.ErrNodeExists, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, Config{Members: 2}, func(t *testing.T, e *Ensemble) {
				link := e.Link()
				conn := client(t, e, link, 1)
				c.lose(link.Wire(1))
				if _, err := conn.Create("/a", nil, 0, zk.WorldACL(zk.PermAll)); !errors.Is(err, c.err) {
					t.Errorf("%v, want %v", err, c.err)
				}
				time.Sleep(2 * time.Second)
				if then := len(e.Children("/")) > 0; then != c.then {
					t.Errorf("carried out: %v", then)
				}
				time.Sleep(2 * time.Second)
				if later := len(e.Children("/")) > 0; later != c.later {
					t.Errorf("carried out later: %v", later)
				}
				if !link.Wire(1).Used() || link.Wire(0).Used() {
					t.Error("the client is not connected again, or elsewhere")
				}
				create(t, conn, "/b", 0)
			})
		})
	}
}

// The fate of requests of any kind, in turn.
func TestFates(t *testing.T) {
	inBubble(t, Config{Members: 2}, func(t *testing.T, e *Ensemble) {
		link := e.Link()
		conn, other := client(t, e, link, 1), client(t, e, e.Link(), 0)
		fates := []Fate{{}, Lost(), Unanswered(0), Unanswered(3 * time.Second), AnsweredLate(2 * time.Second)}
		for i, want := range []struct {
			err         error
			then, later bool
		}{
			{nil, true, true},
			{zk.ErrConnectionClosed, false, false},
			{zk.ErrConnectionClosed, true, true},
			{zk.ErrConnectionClosed, false, true},
			{nil, true, true},
		} {
			path, asked, sent := fmt.Sprintf("/%d", i), 0, time.Now()
			link.SetFate(func() Fate {
				if asked++; asked == 1 {
					return fates[i]
				}
				return Fate{}
			})
			if _, err := conn.Create(path, nil, 0, zk.WorldACL(zk.PermAll)); !errors.Is(err, want.err) {
				t.Errorf("%s: %v, want %v", path, err, want.err)
			}
			if late := time.Since(sent) >= 2*time.Second; late != (i == 4) {
				t.Errorf("%s: answered after %v", path, time.Since(sent))
			}
			if i == 4 {
				if ok, err := try(conn, "/behind the last", time.Second); ok {
					t.Errorf("answered: %v", err)
				}
				link.SetFate(nil)
				link.Heal()
			}
			time.Sleep(time.Second)
			if then := has(t, other, path); then != want.then {
				t.Errorf("%s: carried out: %v", path, then)
			}
			time.Sleep(4 * time.Second)
			if later := has(t, other, path); later != want.later {
				t.Errorf("%s: carried out later: %v", path, later)
			}
		}
		create(t, conn, "/healed", 0)
		if !has(t, other, "/behind the last") {
			t.Error("what was held back has not arrived")
		}
	})
}

// Frames to a member and frames from it can be held apart from each other.
func TestOneWay(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, e *Ensemble) {
		link := e.Link()
		conn := client(t, e, link, 0)
		for path, toServer := range map[string]bool{"/request": true, "/reply": false} {
			link.Wire(0).Hold(toServer, !toServer)
			if ok, err := try(conn, path, time.Second); ok {
				t.Errorf("answered: %v", err)
			}
			if there := has(t, client(t, e, e.Link(), 0), path); there == toServer {
				t.Errorf("%s: carried out: %v", path, there)
			}
			link.Wire(0).Hold(false, false)
			time.Sleep(time.Second)
		}
	})
}

// Frames that a client sent before its connections were severed arrive.
func TestSever(t *testing.T) {
	inBubble(t, Config{Latency: func() time.Duration { return time.Millisecond }}, func(t *testing.T, e *Ensemble) {
		link := e.Link()
		conn := client(t, e, link, 0)
		if ok, _ := try(conn, "/sent", 100*time.Microsecond); ok {
			t.Error("answered too soon")
		}
		link.Wire(0).Refuse(true)
		link.Wire(0).Sever()
		time.Sleep(time.Second)
		if len(e.Children("/")) == 0 || conn.State() == zk.StateHasSession {
			t.Error("what was sent has not arrived, or the client is connected")
		}
	})
}

// A request that is throttled is not carried out, and keeps the session alive; pings, credentials and the end of a session are not.
func TestThrottle(t *testing.T) {
	for name, member := range map[string]int{"leader": 0, "follower": 1} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, Config{Members: 2, Tick: time.Second}, func(t *testing.T, e *Ensemble) {
				link := e.Link()
				w := link.Wire(member)
				conn := client(t, e, link, member)
				create(t, conn, "/own", zk.FlagEphemeral)
				w.Throttle(func(kind int32) bool { return true })
				for range 4 * timeout / time.Second {
					time.Sleep(time.Second)
					if _, err := conn.Create("/a", nil, 0, zk.WorldACL(zk.PermAll)); err == nil || err.Error() != "unknown error: -127" {
						t.Fatalf("create: %v", err)
					}
				}
				if err := conn.AddAuth("digest", []byte("user:password")); err != nil {
					t.Errorf("credentials: %v", err)
				}
				time.Sleep(4 * timeout) // pings
				w.Throttle(nil)
				if !has(t, conn, "/own") || has(t, conn, "/a") {
					t.Error("the session has ended, or what was throttled was carried out")
				}
				w.Throttle(func(kind int32) bool { return true })
				conn.Close()
				if left := e.Children("/"); len(left) > 0 {
					t.Errorf("the session has not ended: %q", left)
				}
			})
		})
	}
}

// A member that dismisses its clients greets them, which keeps their sessions, and carries nothing out.
func TestDismiss(t *testing.T) {
	inBubble(t, Config{Tick: time.Second}, func(t *testing.T, e *Ensemble) {
		link := e.Link()
		conn := client(t, e, link, 0)
		session := conn.SessionID()
		link.Wire(0).Dismiss(true)
		link.Break()
		time.Sleep(2 * timeout)
		if ok, err := try(conn, "/a", time.Second); ok && err == nil {
			t.Error("a request was answered")
		}
		link.Wire(0).Dismiss(false)
		time.Sleep(2 * time.Second)
		if conn.SessionID() != session || conn.State() != zk.StateHasSession {
			t.Errorf("session %#x, %v; want %#x", conn.SessionID(), conn.State(), session)
		}
	})
}

// An event that is lost does not come later, and a watch that is set after that reports.
func TestLoseEvents(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, e *Ensemble) {
		link := e.Link()
		conn := client(t, e, link, 0)
		for path, lost := range map[string]bool{"/lost": true, "/told": false} {
			link.Wire(0).LoseEvents(lost)
			_, _, events, err := conn.ExistsW(path)
			if err != nil {
				t.Fatal(err)
			}
			create(t, conn, path, 0)
			link.Wire(0).LoseEvents(false)
			time.Sleep(time.Second)
			select {
			case <-events:
				if lost {
					t.Errorf("%s: told", path)
				}
			default:
				if !lost {
					t.Errorf("%s: not told", path)
				}
			}
		}
	})
}

// The limits of sessions count for those that begin or are resumed later.
func TestLimit(t *testing.T) {
	inBubble(t, Config{Tick: time.Second}, func(t *testing.T, e *Ensemble) {
		link := e.Link()
		conn := client(t, e, link, 0)
		create(t, conn, "/own", zk.FlagEphemeral)
		e.Limit(time.Second, 2*timeout, 3*timeout)
		link.Break()
		time.Sleep(time.Second)
		if !has(t, conn, "/own") {
			t.Error("the session was not resumed")
		}
		link.Cut()
		time.Sleep(3 * timeout / 2)
		if len(e.Children("/")) == 0 {
			t.Error("the session ended by the timeout with which it began")
		}
		time.Sleep(timeout)
		if len(e.Children("/")) > 0 {
			t.Error("the session has not ended")
		}
		link.Heal()
	})
}

// Frames through a slow wire take longer, both ways.
func TestDelay(t *testing.T) {
	inBubble(t, Config{Latency: func() time.Duration { return time.Millisecond }}, func(t *testing.T, e *Ensemble) {
		link := e.Link()
		conn := client(t, e, link, 0)
		for late := range 3 {
			link.Wire(0).Delay(time.Duration(late) * time.Second)
			began := time.Now()
			has(t, conn, "/")
			if took := time.Since(began); took != time.Duration(2*late)*time.Second+2*time.Millisecond {
				t.Errorf("late by %d s: answered after %v", late, took)
			}
		}
	})
}
