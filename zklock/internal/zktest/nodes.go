package zktest

import (
	"context"
	"encoding/binary"
	"io"
	"maps"
	"net"
	"slices"
	"sync"
)

// A NodeServer speaks enough of ZooKeeper's protocol to read znodes' czxids and to delete znodes. The zero value is
// ready to use.
type NodeServer struct {
	mu      sync.Mutex
	czxids  map[string]int64
	deleted []string
}

// Set replaces the znodes, of which each path has a czxid.
func (s *NodeServer) Set(czxids map[string]int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.czxids = maps.Clone(czxids)
}

// Deleted returns the paths that were to be deleted, in order.
func (s *NodeServer) Deleted() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.deleted)
}

// Dial opens a connection to it, as a network.Dialer does.
func (s *NodeServer) Dial(context.Context, string, string) (net.Conn, error) {
	client, server := net.Pipe()
	go s.serve(server)
	return client, nil
}

func (s *NodeServer) serve(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	answer := ConnectResponse(10_000, 1)
	for {
		var size [4]byte
		if _, err := io.ReadFull(conn, size[:]); err != nil {
			return
		}
		body := make([]byte, binary.BigEndian.Uint32(size[:]))
		if _, err := io.ReadFull(conn, body); err != nil {
			return
		}
		if answer == nil {
			answer = s.reply(body)
		}
		if _, err := conn.Write(answer); err != nil {
			return
		}
		answer = nil
	}
}

func (s *NodeServer) reply(body []byte) []byte {
	const remove, getData, getChildren2, noNode = 2, 4, 12, -101
	xid, op := int32(binary.BigEndian.Uint32(body)), int32(binary.BigEndian.Uint32(body[4:]))
	if op != getData && op != remove && op != getChildren2 {
		return Reply(xid, 1, 0)
	}
	path := string(body[12 : 12+binary.BigEndian.Uint32(body[8:])])
	s.mu.Lock()
	defer s.mu.Unlock()
	czxid, ok := s.czxids[path]
	switch {
	case op == remove:
		s.deleted = append(s.deleted, path)
		return Reply(xid, 1, 0)
	case !ok:
		return Reply(xid, 1, noNode)
	}
	zero := int64(0)
	return Reply(xid, 1, 0, "", czxid, zero, zero, zero, int32(0), int32(0), int32(0), zero, int32(0), int32(0), zero)
}
