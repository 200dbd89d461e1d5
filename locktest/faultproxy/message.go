package faultproxy

import (
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/locktest"
)

// A Message is what one side of a connection has sent.
type Message struct {
	Conn  int             // number of the connection, from 1 in the order of acceptance
	Dir   Direction       // ToServer or ToClient
	First bool            // of its direction
	Data  []byte          // with its frame; read only
	Gone  <-chan struct{} // closed when the connection has ended
}

// Verdict decides the fate of a message.
type Verdict int

const (
	// Pass forwards the message.
	Pass Verdict = iota
	// Cut swallows the message and closes the connection (FIN) after the earlier messages of the same direction have been delivered.
	Cut
	// Late closes the connection for the client. The message reaches the server after Options.LateRequest; the answer is lost.
	Late
)

// Filter decides about messages. It is called for each message in the order of its direction, and concurrently for other directions and
// connections. It may block, which holds up only that direction of that connection, until [Message.Gone] is closed. It must not call Close.
type Filter func(Message) Verdict

// SetFilter shows all messages from now on to f, before [Proxy.Lose] decides about them; nil removes the filter.
func (p *Proxy) SetFilter(f Filter) { p.filter.Store(&f) }

// judge decides about a message, and waits until it may go on.
func (p *Proxy) judge(m Message) Verdict {
	if f := p.filter.Load(); f != nil && *f != nil {
		if v := (*f)(m); v != Pass {
			return v
		}
	}
	v, wait, delay := p.mail.judge(p.opts, m)
	if delay > 0 {
		timer := time.NewTimer(delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-m.Gone:
		}
	}
	if wait != nil {
		select {
		case <-wait:
		case <-m.Gone:
		}
	}
	return v
}

// Lose calls next for the fate of each message to the server that Options.Asks selects. It serves as Lose of a [locktest.Client].
// [Proxy.Heal], or another call of Lose, ends it. A nil next lets all messages arrive.
func (p *Proxy) Lose(next func() locktest.Fate) { p.mail.lose(next) }

// mail gives messages their fates.
type mail struct {
	mu      sync.Mutex
	next    func() locktest.Fate // nil: all arrive
	pending map[int]request      // whose answer does not arrive as it should, by connection
	held    chan struct{}        // closed when what the client sends arrives again; nil while it does
}

type request struct {
	Message
	fate locktest.Fate
}

func (l *mail) lose(next func() locktest.Fate) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.next, l.pending = next, make(map[int]request)
	if l.held != nil {
		close(l.held)
		l.held = nil
	}
}

// judge returns the verdict on a message, what it has to wait for before, and how late it is.
func (l *mail) judge(o Options, m Message) (v Verdict, wait <-chan struct{}, delay time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if m.Dir == ToClient {
		asked, ok := l.pending[m.Conn]
		if !ok || o.Answers != nil && !o.Answers(asked.Message, m) {
			return Pass, nil, 0
		}
		delete(l.pending, m.Conn)
		if asked.fate == locktest.LateReply {
			return Pass, nil, o.LateReply
		}
		return Cut, nil, 0
	}
	if l.next == nil || o.Asks != nil && !o.Asks(m) {
		return Pass, l.held, 0
	}
	switch fate := l.next(); {
	case l.held != nil, fate == locktest.Arrives:
	case fate == locktest.LostRequest:
		return Cut, nil, 0
	case fate == locktest.LateRequest && o.LateRequest > 0:
		return Late, nil, 0
	default:
		l.pending[m.Conn] = request{m, fate}
		if fate == locktest.LateReply {
			l.held = make(chan struct{})
			return Pass, nil, 0 // the last
		}
	}
	return Pass, l.held, 0
}
