package zkfake

import (
	"errors"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
)

// What happens to single requests: whether the call fails, and whether the request is carried out, at once or later.
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

// What goes to a member and what comes from it can be held apart from each other.
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

// What a client has sent before its connections were severed arrives.
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
