package zkserver

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// relay forwards connections to a server's election port, and replaces the address by which the connecting server
// introduces itself.
//
// Why: of two servers, the one with the higher id makes the connection. When a lower one connects to it, it hangs up and
// connects back, not to the address in its own zoo.cfg but to the one that the lower one has just sent
// (QuorumCnxManager.handleConnection), its real port. That would bypass the fault proxies, and an "isolated" server would
// go on voting.
type relay struct {
	listener net.Listener
	upstream string
	callback string // the address to connect back to

	mu     sync.Mutex
	conns  map[net.Conn]bool
	closed bool
	wg     sync.WaitGroup
}

func startRelay(upstream string) (*relay, error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	return &relay{listener: l, upstream: upstream, conns: make(map[net.Conn]bool)}, nil
}

func (r *relay) addr() string { return r.listener.Addr().String() }

// serve begins to accept connections; earlier ones wait in the kernel.
func (r *relay) serve(callback string) {
	r.callback = callback
	r.wg.Go(func() {
		for {
			c, err := r.listener.Accept()
			if err != nil {
				return
			}
			r.wg.Go(func() { r.forward(c) })
		}
	})
}

func (r *relay) forward(in net.Conn) {
	defer in.Close()
	if !r.add(in) {
		return
	}
	defer r.remove(in)
	out, err := net.DialTimeout("tcp4", r.upstream, 5*time.Second)
	if err != nil {
		return
	}
	defer out.Close()
	if !r.add(out) {
		return
	}
	defer r.remove(out)
	var wg sync.WaitGroup
	// The end of either stream ends both: servers do not use half-closed connections.
	wg.Go(func() {
		io.Copy(in, out)
		in.Close()
	})
	if r.introduce(out, in) == nil {
		io.Copy(out, in)
	}
	out.Close()
	wg.Wait()
}

// introduce forwards the first message of a connection: protocol version (-65536 or -65535) and server id, 8 bytes each,
// then the length, 4 bytes, and text of the sender's election address.
func (r *relay) introduce(out io.Writer, in io.Reader) error {
	var head [20]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return err
	}
	version, length := int64(binary.BigEndian.Uint64(head[:8])), binary.BigEndian.Uint32(head[16:])
	if (version != -65536 && version != -65535) || length == 0 || length > 2048 {
		return fmt.Errorf("unknown introduction % x", head)
	}
	if _, err := io.CopyN(io.Discard, in, int64(length)); err != nil {
		return err
	}
	binary.BigEndian.PutUint32(head[16:], uint32(len(r.callback)))
	// In one piece: the receiver reads the address with a single read.
	_, err := out.Write(append(head[:], r.callback...))
	return err
}

func (r *relay) add(c net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed {
		r.conns[c] = true
	}
	return !r.closed
}

func (r *relay) remove(c net.Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.conns, c)
}

func (r *relay) close() {
	r.listener.Close()
	r.mu.Lock()
	r.closed = true
	for c := range r.conns {
		c.Close()
	}
	r.mu.Unlock()
	r.wg.Wait()
}
