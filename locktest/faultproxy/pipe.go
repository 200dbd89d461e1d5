package faultproxy

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"io"
	"time"
)

// queued is how many items a pipe holds before it blocks the sender.
const queued = 1024

// maxMessage bounds a message.
const maxMessage = 1 << 30

type itemKind int

const (
	itemData  itemKind = iota
	itemEOF            // the source has closed its sending half
	itemReset          // the source is gone
	itemCut            // the proxy ends the connection here
	itemLate           // and delivers the data later
)

// item is one thing in a pipe.
type item struct {
	kind itemKind
	data []byte
	due  time.Time // zero: at once
}

// pipe carries one direction of a connection: read fills the queue, write empties it.
type pipe struct {
	c     *conn
	dir   Direction
	split bufio.SplitFunc
	src   io.Reader
	dst   *socket
	queue chan item
}

func newPipe(c *conn, dir Direction, split bufio.SplitFunc, src io.Reader, dst *socket) *pipe {
	if split == nil {
		split = anything
	}
	return &pipe{c: c, dir: dir, split: split, src: src, dst: dst, queue: make(chan item, queued)}
}

// push queues an item with the latency of this moment. An item that cannot be queued is dropped: its connection has ended.
func (pp *pipe) push(it item) bool {
	if pp.c.ctx.Err() != nil {
		return false
	}
	if d := pp.c.p.latency.Load(); d > 0 {
		it.due = time.Now().Add(time.Duration(d))
	}
	select {
	case pp.queue <- it:
		return true
	case <-pp.c.ctx.Done():
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

// readAll queues messages until the source fails; it returns that error, or nil if the connection has ended.
func (pp *pipe) readAll() error {
	first := true
	if pp.c.greet != nil && pp.dir == ToServer {
		greeting, err := pp.c.greet(pp.src)
		if err != nil {
			return err
		}
		pp.push(item{data: greeting})
		first = false
	}
	src := bufio.NewScanner(pp.src)
	src.Buffer(make([]byte, 32<<10), maxMessage)
	src.Split(pp.split)
	for src.Scan() {
		if !pp.forward(bytes.Clone(src.Bytes()), first) {
			return nil
		}
		first = false
	}
	return cmp.Or(src.Err(), io.EOF)
}

// anything makes each read a message.
func anything(data []byte, _ bool) (int, []byte, error) {
	if len(data) == 0 {
		return 0, nil, nil
	}
	return len(data), data, nil
}

// forward lets one message be judged, and queues it. It returns false if the connection has ended or is about to.
func (pp *pipe) forward(data []byte, first bool) bool {
	switch pp.c.p.judge(Message{Conn: pp.c.id, Dir: pp.dir, First: first, Data: data, Gone: pp.c.ctx.Done()}) {
	case Cut:
		pp.push(item{kind: itemCut})
		return false
	case Late:
		pp.push(item{kind: itemLate, data: data})
		return false
	}
	return pp.push(item{data: data})
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

// deliver applies one item; false ends the writing.
func (pp *pipe) deliver(it item) bool {
	if !it.due.IsZero() && !pp.c.p.sleepUntil(pp.c.ctx, it.due) {
		return false
	}
	switch it.kind { // This is the proxy's own act; no network fault holds it back.
	case itemCut:
		pp.c.finish()
		return false
	case itemLate:
		pp.c.deliverLate(it.data)
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
