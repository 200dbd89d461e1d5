package faultproxy

import (
	"slices"
	"strings"
	"sync"
)

// rule waits for one request, and acts once: on that request or on its reply.
type rule struct {
	op     Op
	prefix string
	reply  bool // act on the reply
	act    func(Frame) ruling

	// The request whose reply is awaited; conn 0 is none.
	conn int
	xid  int32
}

func (r *rule) wants(f Frame) bool {
	if r.conn != 0 || f.Dir != ToServer || !strings.HasPrefix(f.Path, r.prefix) {
		return false
	}
	return f.Op == r.op
}

func (r *rule) awaits(f Frame) bool {
	return r.conn != 0 && r.conn == f.Conn && f.Dir == ToClient &&
		f.Kind != KindWatchEvent && r.xid == f.Xid
}

// applyRules offers the frame to the rules in the order of their arming; the first match takes it.
func (j *judge) applyRules(f Frame) ruling {
	j.mu.Lock()
	defer j.mu.Unlock()
	for i, r := range j.rules {
		switch {
		case r.awaits(f), r.wants(f) && !r.reply:
			j.rules = slices.Delete(j.rules, i, i+1)
			return r.act(f)
		case r.wants(f):
			r.conn, r.xid = f.Conn, f.Xid
			return ruling{}
		}
	}
	return ruling{}
}

// forget re-arms the rules that awaited a reply on a closed connection.
func (j *judge) forget(conn int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, r := range j.rules {
		if r.conn == conn {
			r.conn = 0
		}
	}
}

// Disarm ends the rules that have not acted.
func (p *Proxy) Disarm() {
	p.judge.mu.Lock()
	defer p.judge.mu.Unlock()
	p.judge.rules = nil
}

func (p *Proxy) arm(r *rule) {
	p.judge.mu.Lock()
	defer p.judge.mu.Unlock()
	p.judge.rules = append(p.judge.rules, r)
}

// LoseReply arms a rule: the next request with operation op whose path begins with pathPrefix reaches the server, its reply is swallowed,
// and the connection is closed (FIN). The channel then receives the lost reply. If the connection ends before the reply, the rule waits for
// the next such request.
//
// Each rule acts once. Of several armed rules, the first one that matches takes the request. OpPing and OpConnect have an empty path.
func (p *Proxy) LoseReply(op Op, pathPrefix string) <-chan Frame {
	return p.lose(op, pathPrefix, true)
}

// LoseRequest arms a rule: the next matching request is swallowed and the connection is closed (FIN). The channel then receives the
// request.
func (p *Proxy) LoseRequest(op Op, pathPrefix string) <-chan Frame {
	return p.lose(op, pathPrefix, false)
}

func (p *Proxy) lose(op Op, prefix string, reply bool) <-chan Frame {
	hit := make(chan Frame, 1)
	p.arm(&rule{op: op, prefix: prefix, reply: reply, act: func(f Frame) ruling {
		go func() {
			<-f.Gone
			hit <- f
		}()
		return ruling{verdict: Cut}
	}})
	return hit
}

// HoldReply arms a rule: the next matching request reaches the server, and its reply is held, with everything that the server sends after
// it on that connection, until release. The channel receives the held reply. release may be called at any time and more than once.
func (p *Proxy) HoldReply(op Op, pathPrefix string) (hit <-chan Frame, release func()) {
	return p.hold(op, pathPrefix, true)
}

// HoldRequest arms a rule: the next matching request is held, with everything that the client sends after it on that connection, until
// release. The channel receives the held request.
func (p *Proxy) HoldRequest(op Op, pathPrefix string) (hit <-chan Frame, release func()) {
	return p.hold(op, pathPrefix, false)
}

func (p *Proxy) hold(op Op, prefix string, reply bool) (<-chan Frame, func()) {
	hit := make(chan Frame, 1)
	released := make(chan struct{})
	p.arm(&rule{op: op, prefix: prefix, reply: reply, act: func(f Frame) ruling {
		hit <- f
		return ruling{until: released}
	}})
	return hit, sync.OnceFunc(func() { close(released) })
}
