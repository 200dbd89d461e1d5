package zktest

import (
	"encoding/binary"
	"fmt"
)

// Frame encodes its parts (int32, int64, string, []byte) with their length in front.
func Frame(parts ...any) []byte {
	var b []byte
	for _, part := range parts {
		switch v := part.(type) {
		case int32:
			b = binary.BigEndian.AppendUint32(b, uint32(v))
		case int64:
			b = binary.BigEndian.AppendUint64(b, uint64(v))
		case string:
			b = binary.BigEndian.AppendUint32(b, uint32(len(v)))
			b = append(b, v...)
		case []byte:
			b = append(b, v...)
		default:
			panic(fmt.Sprintf("%T", part))
		}
	}
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...)
}

// ConnectRequest asks for a new session.
func ConnectRequest() []byte {
	return Frame(int32(0), int64(0), int32(10_000), int64(0), string(make([]byte, 16)))
}

// ConnectResponse gives a session.
func ConnectResponse(timeoutMS int32, session int64) []byte {
	return Frame(int32(0), timeoutMS, session, string(make([]byte, 16)), []byte{0})
}

// Reply answers a request.
func Reply(xid int32, zxid int64, err int32, body ...any) []byte {
	return Frame(append([]any{xid, zxid, err}, body...)...)
}
