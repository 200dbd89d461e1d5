package faultproxy

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"testing"
	"testing/iotest"

	bytesproxy "github.com/holdfast-go/holdfast/locktest/faultproxy"
)

// frames are streams of both directions, and the frames that a filter sees.
var frames = []struct {
	dir  Direction
	body []byte
	want string // "" is a frame that is too short to parse
}{
	{ToServer, make([]byte, 44), `Connect xid=0 op=-10 path="" err=0`},
	{ToServer, request(7, OpCreate, "/a"), `Request xid=7 op=1 path="/a" err=0`},
	{ToServer, request(8, OpSync, "/a"), `Request xid=8 op=9 path="/a" err=0`},
	{ToServer, request(9, OpMulti, "/b"), `Request xid=9 op=14 path="/b" err=0`},
	{ToServer, request(10, OpMulti, "/b")[:17], `Request xid=10 op=14 path="" err=0`},
	{ToServer, request(12, OpClose, ""), `Request xid=12 op=-11 path="" err=0`},
	{ToServer, request(-2, OpPing, ""), `Ping xid=-2 op=11 path="" err=0`},
	{ToServer, request(-4, OpSetAuth, ""), `Auth xid=-4 op=100 path="" err=0`},
	{ToServer, request(-8, OpSetWatches, ""), `Request xid=-8 op=101 path="" err=0`},
	{ToServer, []byte{0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 9, 'x'}, `Request xid=1 op=1 path="" err=0`},
	{ToServer, []byte{0, 0, 0, 2, 0, 0, 0, 1, 255, 255, 255, 255}, `Request xid=2 op=1 path="" err=0`},
	{ToServer, make([]byte, 7), ""},
	{ToClient, make([]byte, 36), `Connect xid=0 op=-10 path="" err=0`},
	{
		ToClient,
		[]byte{0, 0, 0, 7, 0, 0, 0, 1, 0, 0, 0, 2, 255, 255, 255, 0x9b},
		`Reply xid=7 op=1 path="/a" err=-101`,
	},
	{ToClient, append([]byte{0, 0, 0, 99}, make([]byte, 12)...), `Reply xid=99 op=0 path="" err=0`},
	{ToClient, append([]byte{255, 255, 255, 254}, make([]byte, 12)...), `Ping xid=-2 op=11 path="" err=0`},
	{
		ToClient, appendString(append([]byte{255, 255, 255, 255}, make([]byte, 20)...), "/lock/a"),
		`WatchEvent xid=-1 op=0 path="/lock/a" err=0`,
	},
	{ToClient, make([]byte, 15), ""},
}

var kinds = [...]string{"Connect", "Ping", "Auth", "Request", "Reply", "WatchEvent"}

// stream is all frames of one direction.
func stream(dir Direction) (b []byte) {
	for _, f := range frames {
		if f.dir == dir {
			b = append(b, framed(f.body)...)
		}
	}
	return b
}

// parse reads a stream as the proxy would, and returns the frames that a filter sees and the bytes for the other side.
func parse(p *Proxy, dir Direction, src io.Reader) (seen []string, out []byte) {
	p.judge.filter = func(f Frame) Verdict {
		seen = append(seen, fmt.Sprintf("%v %v %s xid=%d op=%d path=%q err=%d", f.Conn, f.Dir, kinds[f.Kind], f.Xid, f.Op, f.Path, f.Err))
		return Pass
	}
	messages := bufio.NewScanner(src)
	messages.Buffer(nil, maxFrame+4)
	messages.Split(p.conns[1].split)
	for first := true; messages.Scan(); first = false {
		out = append(out, messages.Bytes()...)
		p.see(bytesproxy.Message{Conn: 1, Dir: dir, First: first, Data: bytes.Clone(messages.Bytes())})
	}
	return seen, out
}

// oneConn returns a proxy with a connection.
func oneConn() *Proxy {
	p := newProxy()
	p.options().Split(1)
	return p
}

func TestFrames(t *testing.T) {
	t.Parallel()
	p := oneConn()
	for _, dir := range []Direction{ToServer, ToClient} {
		var want []string
		for _, f := range frames {
			if f.dir == dir && f.want != "" {
				want = append(want, fmt.Sprintf("1 %v %s", dir, f.want))
			}
		}
		seen, out := parse(p, dir, bytes.NewReader(stream(dir)))
		if !slices.Equal(seen, want) {
			t.Errorf("saw\n%q, want\n%q", seen, want)
		}
		if !bytes.Equal(out, stream(dir)) {
			t.Errorf("%v: %x came out as %x", dir, stream(dir), out)
		}
	}
}

// FuzzFrames guards that both streams of a connection come out unchanged and that a filter sees the same frames,
// however the network splits them.
func FuzzFrames(f *testing.F) {
	requests, replies := stream(ToServer), stream(ToClient)
	connect := framed(make([]byte, 44))
	f.Add(requests, replies)
	f.Add([]byte("wchc"), replies)                                               // a four-letter word
	f.Add([]byte("\x16\x03\x01\x02\x00"), []byte("\x16\x03\x03"))                // TLS
	f.Add(requests[:60], replies[:50])                                           // cut short
	f.Add(slices.Concat(connect, framed(nil), requests), replies)                // short frames
	f.Add(slices.Concat(connect, []byte{255, 255, 255, 255}, requests), replies) // a negative length
	f.Fuzz(func(t *testing.T, toServer, toClient []byte) {
		if hugeFrame(toServer) || hugeFrame(toClient) {
			return
		}
		whole, split := oneConn(), oneConn()
		for dir, in := range map[Direction][]byte{ToServer: toServer, ToClient: toClient} {
			seen, out := parse(whole, dir, bytes.NewReader(in))
			if !bytes.Equal(out, in) {
				t.Fatalf("%v: %x came out as %x", dir, in, out)
			}
			if again, _ := parse(split, dir, iotest.OneByteReader(bytes.NewReader(in))); !slices.Equal(seen, again) {
				t.Fatalf("%v: %x: saw\n%q, in single bytes\n%q", dir, in, seen, again)
			}
		}
	})
}

// hugeFrame reports whether a stream announces a frame that would take long to allocate.
func hugeFrame(stream []byte) bool {
	for len(stream) >= 4 {
		size := int64(binary.BigEndian.Uint32(stream))
		if size > 1<<16 && size <= maxFrame {
			return true
		}
		stream = stream[min(4+size, int64(len(stream))):]
	}
	return false
}

func framed(body []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
}

func appendString(b []byte, s string) []byte {
	return append(binary.BigEndian.AppendUint32(b, uint32(len(s))), s...)
}

func request(xid int32, op Op, path string) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(xid))
	b = binary.BigEndian.AppendUint32(b, uint32(op))
	switch op {
	case OpPing, OpClose:
		return b
	case OpMulti:
		b = append(b, 0, 0, 0, byte(OpDelete), 0, 0xff, 0xff, 0xff, 0xff)
	}
	return appendString(b, path)
}
