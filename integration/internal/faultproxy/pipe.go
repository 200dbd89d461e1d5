package faultproxy

import (
	"errors"
	"io"
	"time"
)

// queued is how many items a pipe holds before it blocks the sender.
const queued = 1024

type itemKind int

const (
	itemData  itemKind = iota
	itemEOF            // the source has closed its sending half
	itemReset          // the source is gone
	itemCut            // the proxy ends the connection here
)

// item is one thing in a pipe.
type item struct {
	kind itemKind
	data []byte
	due  time.Time // zero: at once
	done func()    // if not nil, called when the item has taken effect
}

// pipe carries one direction of a connection: read fills the queue, write empties it.
type pipe struct {
	c     *conn
	dir   Direction
	src   io.Reader
	dst   socket
	queue chan item
}

func newPipe(c *conn, dir Direction, src io.Reader, dst socket) *pipe {
	return &pipe{c: c, dir: dir, src: src, dst: dst, queue: make(chan item, queued)}
}

// push queues an item with the latency of this moment. An item that cannot be queued is dropped: its connection has ended.
func (pp *pipe) push(it item) bool {
	if d := pp.c.p.latency.Load(); d > 0 {
		it.due = time.Now().Add(time.Duration(d))
	}
	select {
	case pp.queue <- it:
		return true
	case <-pp.c.ctx.Done():
		if it.done != nil {
			it.done()
		}
		return false
	}
}

func (pp *pipe) read() {
	err := pp.readAll()
	switch {
	case err == nil: // the connection was cut, or has ended
	case errors.Is(err, io.EOF):
		pp.push(item{kind: itemEOF})
	default:
		pp.push(item{kind: itemReset})
	}
}

func (pp *pipe) readAll() error {
	if pp.c.p.protocol != raw {
		return pp.readFrames()
	}
	if pp.c.greet != nil && pp.dir == ToServer {
		greeting, err := pp.c.greet(pp.src)
		if err != nil {
			return err
		}
		pp.push(item{data: greeting})
	}
	return pp.readRaw(pp.src)
}

// readRaw queues bytes until the source fails; it returns that error, or nil if the connection has ended.
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
	for {
		select {
		case it := <-pp.queue:
			if !pp.deliver(it) {
				return
			}
		case <-pp.c.ctx.Done():
			return
		}
	}
}

// settle ends the items that a finished connection left in the queue.
func (pp *pipe) settle() {
	for len(pp.queue) > 0 {
		if it := <-pp.queue; it.done != nil {
			it.done()
		}
	}
}

// deliver applies one item; false ends the writing.
func (pp *pipe) deliver(it item) bool {
	if it.done != nil {
		defer it.done()
	}
	if !it.due.IsZero() && !pp.c.p.sleepUntil(pp.c.ctx, it.due) {
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
		// Neither side may notice that the source is gone until Heal resets the connection.
		<-pp.c.ctx.Done()
		return false
	default:
		return false
	}
	return pp.apply(it)
}

// await waits while the direction is stalled. It returns open, blackHole, or stalled if the connection ended during the wait.
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
			// The source learns this through the other direction, subject to its faults.
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
