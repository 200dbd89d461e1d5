package zkserver

import (
	"encoding/binary"
	"fmt"
	"io"
)

// introduce returns what replaces the first message of a connection to a server's election port: the same with another address
// of the sender. The message is a protocol version (-65536 or -65535) and a server id, 8 bytes each, then the length, 4 bytes,
// and text of the sender's election address.
//
// Why: of two servers, the one with the higher id makes the connection. When a lower one connects to it, it hangs up and
// connects back, not to the address in its own zoo.cfg but to the one that the lower one has just sent
// (QuorumCnxManager.handleConnection), its real port. That would bypass the fault proxies, and an "isolated" server would
// go on voting.
func introduce(in io.Reader, callback string) ([]byte, error) {
	head := make([]byte, 20)
	if _, err := io.ReadFull(in, head); err != nil {
		return nil, err
	}
	version, length := int64(binary.BigEndian.Uint64(head)), binary.BigEndian.Uint32(head[16:])
	if (version != -65536 && version != -65535) || length == 0 || length > 2048 {
		return nil, fmt.Errorf("unknown introduction % x", head)
	}
	if _, err := io.CopyN(io.Discard, in, int64(length)); err != nil {
		return nil, err
	}
	binary.BigEndian.PutUint32(head[16:], uint32(len(callback)))
	return append(head, callback...), nil
}
