package zkconn

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"time"
)

// A reply that is too long to be read fails its own request, and no other: the connection goes on behind it. Otherwise the request would
// be repeated on the next connection, meet the same, and end that one, too. It fails at once, and what is left of the reply is skipped
// then: that may take longer than a heartbeat waits for its answer.

// mostSkipped is the length of the longest reply that is skipped. What announces more is no reply.
const mostSkipped = 1 << 30

// codeTooLong is the code that such a reply is given. No server has it.
const codeTooLong = math.MinInt32 + 1

var errTooLong = fmt.Errorf("the answer is longer than the %d MiB that are read; that is a list of some hundred thousands of znodes", mostReply>>20)

// readLength is for the length of a frame. If that is too long, it reads the frame, and has another one read in its place, which is an
// error.
func (w *Wire) readLength(b []byte) (int, error) {
	if err := w.skip(); err != nil {
		return 0, err
	}
	n, err := io.ReadFull(w.Conn, b)
	size := int64(binary.BigEndian.Uint32(b))
	if err != nil || size <= mostReply || size > mostSkipped {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			err = io.EOF // as Read says
		}
		return n, err
	}
	frame := make([]byte, headerBytes)
	if _, err := io.ReadFull(w.Conn, frame[len(b):]); err != nil {
		return 0, err
	}
	w.unwanted = size - int64(headerBytes-len(b))
	binary.BigEndian.PutUint32(frame, uint32(headerBytes-len(b)))
	binary.BigEndian.PutUint32(frame[headerBytes-4:], uint32(codeTooLong&math.MaxUint32))
	w.instead = frame[copy(b, frame):]
	return n, nil
}

// skip reads what is left of such a frame. A server that goes on sending it is not silent. If the connection is left meanwhile, since
// nothing else comes through, the request has had its answer.
func (w *Wire) skip() error {
	const part = 1 << 20
	for w.unwanted > 0 {
		w.mu.Lock()
		limit := time.Now().Add(w.silence)
		w.mu.Unlock()
		if err := w.Conn.SetReadDeadline(limit); err != nil {
			return err
		}
		n, err := io.CopyN(io.Discard, w.Conn, min(w.unwanted, part))
		w.unwanted -= n
		if err != nil {
			return err
		}
	}
	return nil
}
