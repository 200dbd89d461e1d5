package faultproxy

import (
	"errors"
	"io"
	"net"
	"time"
)

// pipe carries one direction of a connection: read fills the queue, write
// empties it.
type pipe struct {
	c       *conn
	dir     Direction
	src     io.Reader
	dst     *net.TCPConn
	queue   *queue
	sleeper sleeper
}

func newPipe(c *conn, dir Direction, src io.Reader, dst *net.TCPConn) *pipe {
	return &pipe{c: c, dir: dir, src: src, dst: dst, queue: newQueue()}
}

// push queues an item with the latency of this moment. An item that cannot be
// queued is dropped: its connection has ended.
func (pp *pipe) push(it item) bool {
	if d := pp.c.p.latency.Load(); d > 0 {
		it.due = time.Now().Add(time.Duration(d))
	}
	ok := pp.queue.push(pp.c.ctx, it)
	if !ok && it.done != nil {
		it.done()
	}
	return ok
}

func (pp *pipe) read() {
	var err error
	if pp.c.parse {
		err = pp.readFrames()
	} else {
		err = pp.readRaw(pp.src)
	}
	switch {
	case err == nil: // the connection was cut, or has ended
	case errors.Is(err, io.EOF):
		pp.push(item{kind: itemEOF})
	default:
		pp.push(item{kind: itemReset})
	}
}

// readRaw queues bytes until the source fails; it returns that error, or nil if
// the connection has ended.
func (pp *pipe) readRaw(src io.Reader) error {
	buf := make([]byte, 32<<10)
	for {
		n, err := src.Read(buf)
		if n > 0 && !pp.push(item{data: append([]byte(nil), buf[:n]...)}) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (pp *pipe) write() {
	defer pp.flush()
	for {
		it, ok := pp.queue.pop(pp.c.ctx)
		if !ok {
			return
		}
		if !pp.deliver(it) {
			return
		}
	}
}

// flush settles the items that a finished connection left in the queue.
func (pp *pipe) flush() {
	for {
		it, ok := pp.queue.tryPop()
		if !ok {
			return
		}
		if it.done != nil {
			it.done()
		}
	}
}

// deliver applies one item; false ends the writing.
func (pp *pipe) deliver(it item) bool {
	if it.done != nil {
		defer it.done()
	}
	if !it.due.IsZero() && !pp.sleeper.until(pp.c.ctx, it.due) {
		return false
	}
	if it.kind == itemCut {
		// This is the proxy's own act; no network fault holds it back.
		pp.c.finish()
		return false
	}
	switch pp.await() {
	case open:
	case blackHole:
		if it.kind == itemData {
			return true
		}
		// Neither side may notice that the source is gone until Heal resets the
		// connection.
		<-pp.c.ctx.Done()
		return false
	default:
		return false
	}
	return pp.apply(it)
}

// await waits while the direction is stalled. It returns open, blackHole, or
// stalled if the connection ended during the wait.
func (pp *pipe) await() mode {
	for {
		g := pp.c.p.gate.Load()
		m := g.mode[pp.dir.lane()]
		if m != stalled {
			return m
		}
		select {
		case <-g.changed:
		case <-pp.c.ctx.Done():
			return stalled
		}
	}
}

func (pp *pipe) apply(it item) bool {
	switch it.kind {
	case itemData:
		if pp.c.broken.Load() {
			return true
		}
		if _, err := pp.dst.Write(it.data); err != nil {
			// The source must learn this through the other direction, whose
			// reader is about to notice, and subject to its faults.
			pp.c.broken.Store(true)
		}
		return true
	case itemEOF:
		if pp.c.broken.Load() {
			pp.c.reset()
			return false
		}
		_ = pp.dst.CloseWrite()
		return false
	default:
		pp.c.reset()
		return false
	}
}
