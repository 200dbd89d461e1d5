package faultproxy

import (
	"encoding/binary"
	"sync"
)

// Op is a ZooKeeper operation code, as in org.apache.zookeeper.ZooDefs.OpCode.
type Op int32

// Operation codes, not all. OpConnect and OpNotification are not sent: they stand for the frames that open a session and for watch events.
const (
	OpNotification    Op = 0
	OpCreate          Op = 1
	OpDelete          Op = 2
	OpGetData         Op = 4
	OpSetData         Op = 5
	OpGetChildren     Op = 8
	OpSync            Op = 9
	OpPing            Op = 11
	OpGetChildren2    Op = 12
	OpMulti           Op = 14
	OpCreateContainer Op = 19
	OpSetAuth         Op = 100
	OpSetWatches      Op = 101
	OpConnect         Op = -10
	OpClose           Op = -11
)

// Kind is the role of a frame.
type Kind int

// Kinds. Connect, Ping and Auth occur in both directions, Request only towards the server, Reply and WatchEvent only towards the client.
const (
	KindConnect Kind = iota
	KindPing
	KindAuth
	KindRequest
	KindReply
	KindWatchEvent
)

// Transaction ids with a meaning of their own.
const (
	xidWatchEvent int32 = -1
	xidPing       int32 = -2
	xidAuth       int32 = -4
)

// Frame is one message of the ZooKeeper protocol.
type Frame struct {
	Conn int       // number of the connection, from 1 in the order of acceptance
	Dir  Direction // ToServer or ToClient
	Kind Kind
	Xid  int32 // 0 for Connect
	Op   Op    // of a reply: the Op of its request, or 0 if the proxy has not seen it

	Err int32 // only in replies, ping replies and watch events; 0 is success

	// Path of the node, if the request begins with one; for OpMulti the path of the first operation; for a reply the path of its request.
	Path string

	// Payload is the whole frame without its length prefix. Read only.
	Payload []byte

	// Gone is closed when the connection has ended.
	Gone <-chan struct{}
}

// parseFrame reads the header of a frame that is not a Connect. It returns false if the frame is too short to have one.
func parseFrame(dir Direction, body []byte) (Frame, bool) {
	f := Frame{Dir: dir, Payload: body}
	if dir == ToServer {
		if len(body) < 8 {
			return f, false
		}
		f.Xid = int32(binary.BigEndian.Uint32(body))
		f.Op = Op(int32(binary.BigEndian.Uint32(body[4:])))
		f.Path = requestPath(f.Op, body[8:])
		f.Kind = KindRequest
	} else {
		if len(body) < 16 {
			return f, false
		}
		f.Xid = int32(binary.BigEndian.Uint32(body))
		f.Err = int32(binary.BigEndian.Uint32(body[12:]))
		f.Kind = KindReply
	}
	switch f.Xid {
	case xidPing:
		f.Kind, f.Op = KindPing, OpPing
	case xidAuth:
		f.Kind, f.Op = KindAuth, OpSetAuth
	case xidWatchEvent:
		if dir == ToClient {
			f.Kind, f.Op = KindWatchEvent, OpNotification
			f.Path = pathAt(body, 16+8) // after type and state
		}
	}
	return f, true
}

func requestPath(op Op, body []byte) string {
	switch op {
	case OpPing, OpSetAuth, OpSetWatches, OpConnect, OpClose:
		return ""
	case OpMulti:
		return pathAt(body, 4+1+4) // after type, done and err of the first operation
	}
	return pathAt(body, 0)
}

// pathAt reads a length-prefixed string, or "" if there is none.
func pathAt(body []byte, at int) string {
	if len(body) < at+4 {
		return ""
	}
	n := int64(int32(binary.BigEndian.Uint32(body[at:])))
	rest := body[at+4:]
	if n < 0 || n > int64(len(rest)) {
		return ""
	}
	return string(rest[:n])
}

// pending holds the requests of a connection that have no reply yet, because a reply does not name its operation.
type pending struct {
	mu  sync.Mutex
	req map[int32]Frame
}

func (p *pending) add(f Frame) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.req == nil {
		p.req = make(map[int32]Frame)
	}
	p.req[f.Xid] = Frame{Op: f.Op, Path: f.Path}
}

// answer fills in the operation and path of the reply f, and forgets the request.
func (p *pending) answer(f *Frame) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if req, ok := p.req[f.Xid]; ok {
		f.Op, f.Path = req.Op, req.Path
		delete(p.req, f.Xid)
	}
}
