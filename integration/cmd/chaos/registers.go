package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"sync"

	"github.com/holdfast-go/holdfast/integration/internal/history"
)

// registers are what the locks protect: for every key a fenced one, which refuses any token lower than the highest it
// has seen, and one that accepts everything. No fault hits them, or the connections to them.
type registers struct {
	listener net.Listener
	wrote    func(history.Record)
	tasks    sync.WaitGroup

	mu      sync.Mutex
	highest map[string]uint64
	conns   map[net.Conn]bool
	closed  bool
}

// write is a request to one of a key's registers. The answer says whether it was accepted.
type write struct {
	Process string `json:"process"`
	Key     string `json:"key"`
	Token   uint64 `json:"token"`
	Fenced  bool   `json:"fenced"`
}

// startRegisters serves registers on the loopback interface. wrote is called for each write, one at a time.
func startRegisters(wrote func(history.Record)) (*registers, error) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &registers{listener: listener, wrote: wrote, highest: make(map[string]uint64), conns: make(map[net.Conn]bool)}
	r.tasks.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			r.tasks.Go(func() { r.serve(conn) })
		}
	})
	return r, nil
}

func (r *registers) addr() string { return r.listener.Addr().String() }

func (r *registers) close() {
	r.listener.Close()
	r.mu.Lock()
	r.closed = true
	for conn := range r.conns {
		conn.Close()
	}
	r.mu.Unlock()
	r.tasks.Wait()
}

func (r *registers) serve(conn net.Conn) {
	defer conn.Close()
	r.mu.Lock()
	open := !r.closed
	r.conns[conn] = true
	r.mu.Unlock()
	in, out := json.NewDecoder(conn), json.NewEncoder(conn)
	for open {
		var w write
		// A killed client may send a truncated line.
		open = in.Decode(&w) == nil && out.Encode(r.take(w)) == nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.conns, conn)
}

// take carries out a write. One mutex serves all writes, so the records show their order.
func (r *registers) take(w write) (accepted bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	accepted = !w.Fenced || w.Token >= r.highest[w.Key]
	if w.Fenced && accepted {
		r.highest[w.Key] = w.Token
	}
	r.wrote(history.Record{
		At: history.Now(), What: history.Wrote, Process: w.Process,
		Key: w.Key, Token: w.Token, Fenced: w.Fenced, Accepted: accepted,
	})
	return accepted
}

// errNoRegisters: the process that serves the registers, and thus the run, is gone.
var errNoRegisters = errors.New("registers do not answer")

// writer is a client's connection to the registers.
type writer struct {
	mu   sync.Mutex
	conn net.Conn
	in   *json.Decoder
	out  *json.Encoder
}

func dialRegisters(addr string) (*writer, error) {
	conn, err := net.Dial("tcp4", addr)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNoRegisters, err)
	}
	return &writer{conn: conn, in: json.NewDecoder(conn), out: json.NewEncoder(conn)}, nil
}

// write asks a register to accept a value, and reports whether it did.
func (c *writer) write(w write) (accepted bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.out.Encode(w); err != nil {
		return false, fmt.Errorf("%w: %w", errNoRegisters, err)
	}
	if err := c.in.Decode(&accepted); err != nil {
		return false, fmt.Errorf("%w: %w", errNoRegisters, err)
	}
	return accepted, nil
}

func (c *writer) close() { c.conn.Close() }
