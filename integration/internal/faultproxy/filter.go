package faultproxy

import (
	"bufio"
	"encoding/binary"
	"io"
	"sync"
)

// Verdict decides the fate of a frame.
type Verdict int

const (
	// Pass forwards the frame.
	Pass Verdict = iota
	// DropFrame swallows the frame; the connection continues.
	DropFrame
	// CutBefore swallows the frame and closes the connection (FIN) after the earlier frames of the same direction have been delivered.
	CutBefore
)

// Filter decides about frames. It is called for each frame in the order of its direction, and concurrently for other directions and
// connections. It may block, which holds up only that direction of that connection, until [Frame.Gone] is closed. It must not call Close.
type Filter func(Frame) Verdict

// SetFilter shows all frames from now on to f, before the rules; nil removes the filter. The rules see only frames that it passes.
func (p *Proxy) SetFilter(f Filter) {
	p.judge.mu.Lock()
	defer p.judge.mu.Unlock()
	p.judge.filter = f
}

// judge holds the filter and the rules.
type judge struct {
	mu     sync.Mutex
	filter Filter
	rules  []*rule
}

// ruling is a verdict with its details.
type ruling struct {
	verdict Verdict
	until   <-chan struct{} // if not nil, hold the frame, and leave later ones unread, until it is closed
	done    func()          // called once the verdict has taken effect; may be nil
}

func (j *judge) rule(f Frame) ruling {
	j.mu.Lock()
	filter := j.filter
	j.mu.Unlock()
	if filter != nil {
		if v := filter(f); v != Pass {
			return ruling{verdict: v}
		}
	}
	return j.applyRules(f)
}

// maxFrame is above every jute.maxbuffer in use, and below the length that the first bytes of a four-letter word or a TLS record make.
const maxFrame = 128 << 20

// readFrames queues frames until the source fails; it returns that error, or nil if the connection has ended.
func (pp *pipe) readFrames() error {
	src := bufio.NewReaderSize(pp.src, 16<<10)
	for first := true; ; first = false {
		prefix, _ := src.Peek(4) // readRaw sees the error again
		if pp.c.raw.Load() || len(prefix) < 4 {
			return pp.readRaw(src)
		}
		size := int(int32(binary.BigEndian.Uint32(prefix)))
		if pp.c.p.protocol == mongoDB {
			size = int(int32(binary.LittleEndian.Uint32(prefix))) - len(prefix)
		}
		if size < 0 || size > maxFrame {
			// Set before the bytes go on, hence before their answer comes.
			pp.c.raw.Store(true)
			return pp.readRaw(src)
		}
		buf := make([]byte, 4+size)
		if n, err := io.ReadFull(src, buf); err != nil {
			pp.push(item{data: buf[:n]})
			if err == io.ErrUnexpectedEOF {
				err = io.EOF
			}
			return err
		}
		if !pp.forward(buf, first) {
			return nil
		}
	}
}

// forward counts one frame, lets it be judged, and queues it. It returns false if the connection has ended or is about to.
func (pp *pipe) forward(buf []byte, first bool) bool {
	f, ok := Frame{Dir: pp.dir, Kind: KindConnect, Op: OpConnect, Payload: buf[4:]}, true
	switch {
	case pp.c.p.protocol == mongoDB:
		f, ok = parseMessage(pp.dir, buf[4:])
	case !first:
		f, ok = parseFrame(pp.dir, buf[4:])
	}
	if !ok {
		return pp.push(item{data: buf})
	}
	f.Conn = pp.c.id
	f.Gone = pp.c.ctx.Done()
	if f.Kind == KindReply {
		pp.c.pending.answer(&f)
	}
	pp.c.p.counts.add(f)

	r := pp.c.p.judge.rule(f)
	if r.until != nil {
		select {
		case <-r.until:
		case <-pp.c.ctx.Done():
			return false
		}
	}
	switch r.verdict {
	case DropFrame:
		return true
	case CutBefore:
		pp.push(item{kind: itemCut, done: r.done})
		return false
	}
	if f.Kind == KindRequest {
		pp.c.pending.add(f)
	}
	return pp.push(item{data: buf})
}
