package zkconn

import (
	"slices"

	"github.com/holdfast-go/holdfast/internal/strict"
)

// state says what a link has reached with its newest connection.
type state int

const (
	down    state = iota // there is no connection
	dialled              // there is one, on which a server is asked for a session
	joined               // the server has given one; go-zookeeper sends its credentials and renews its watches
	open                 // calls may be made
)

// transitions are all that there are.
var transitions = map[state][]state{
	down:    {dialled},
	dialled: {joined, down},
	joined:  {open, down},
	open:    {down},
}

func (s state) String() string { return [...]string{"down", "dialled", "joined", "open"}[s] }

// enterLocked makes a transition, and opens or shuts the gate for calls.
func (l *Link) enterLocked(next state) {
	strict.Check(slices.Contains(transitions[l.state], next), "zkconn: the connection is %v, and then %v", l.state, next)
	before := l.state
	l.state = next
	if before == joined || before == open {
		l.joinedLast = l.host.Now()
	}
	switch {
	case next == open:
		l.lastErr = nil
		close(l.gate)
		l.config.Connected(true)
	case before == open:
		l.gate = make(chan struct{})
		l.config.Connected(false)
	}
}

// connected is called when a connection has been opened.
func (l *Link) connected(w *Wire) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wire = w
	l.enterLocked(dialled)
}

// lost is called when a connection is gone, perhaps more than once.
func (l *Link) lost(w *Wire, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if w == nil || l.wire != w {
		return
	}
	l.wire = nil
	l.lastErr = err
	l.enterLocked(down)
}
