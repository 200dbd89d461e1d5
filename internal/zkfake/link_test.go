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
		"behind":   {func(w *Wire) { w.EndBehind(opCreate) }, nil, true, true},
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
