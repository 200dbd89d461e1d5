package zkconn

import (
	"bufio"
	"net"
)

// buffered is a connection that reads ahead. go-zookeeper reads the length of a
// frame and the frame itself by a call each, and a busy session has several
// frames waiting: most of those calls then need no system call.
//
// What the wire notes of a reply, it still notes when go-zookeeper reads it,
// which is later than it came: that errs on the safe side.
type buffered struct {
	net.Conn
	reader *bufio.Reader
}

func newBuffered(conn net.Conn) *buffered {
	return &buffered{conn, bufio.NewReader(conn)}
}

func (b *buffered) Read(p []byte) (int, error) { return b.reader.Read(p) }

// ahead returns what has come and was not read yet, n bytes at most.
func (b *buffered) ahead(n int) []byte {
	p, _ := b.reader.Peek(min(n, b.reader.Buffered()))
	return p
}
