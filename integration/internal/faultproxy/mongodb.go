package faultproxy

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"slices"
	"time"

	bytesproxy "github.com/holdfast-go/holdfast/locktest/faultproxy"
)

// StartMongoDB is Start for a server of MongoDB: requests of locks and their replies can be lost, or so late.
func StartMongoDB(upstream string, lateRequest, lateReply time.Duration) (*Proxy, error) {
	return new(Proxy).start(upstream, bytesproxy.Options{
		Split:       func(int) (_, _ bufio.SplitFunc) { return splitMongoDB, splitMongoDB },
		Asks:        asksMongoDB,
		LateRequest: lateRequest,
		LateReply:   lateReply,
	})
}

// splitMongoDB is a [bufio.SplitFunc] for messages of MongoDB, which begin with their length.
func splitMongoDB(data []byte, _ bool) (int, []byte, error) {
	if len(data) < 4 {
		return 0, nil, nil
	}
	size := int(binary.LittleEndian.Uint32(data))
	if len(data) < size {
		return 0, nil, nil
	}
	return size, data[:size], nil
}

// asksMongoDB reports whether a message is a request of locks. The driver sends other messages of its own.
func asksMongoDB(m bytesproxy.Message) bool {
	const header = 4*4 + 4 + 1 + 4 + 1 // length, ids and code; flags, kind of section, length of the document, type of its first element
	if len(m.Data) < header {
		return false
	}
	command, _, _ := bytes.Cut(m.Data[header:], []byte{0})
	return slices.Contains([]string{"find", "getMore", "insert", "update", "createIndexes"}, string(command))
}
