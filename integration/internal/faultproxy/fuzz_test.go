package faultproxy

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"slices"
	"testing"
)

// withPath are the operations whose requests begin with a path, and inMulti
// those that begin with the header of a first operation, as in zookeeper.jute.
var (
	withPath = []int32{1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 15, 17, 18, 19, 21, 106}
	inMulti  = []int32{14, 22}
)

// fields decodes a value of fixed size from the front of a buffer.
func fields(b *bytes.Buffer, v any) bool { return binary.Read(b, binary.BigEndian, v) == nil }

// path decodes a path from the front of a buffer; "" if there is none.
func path(b *bytes.Buffer) string {
	var size int32
	if !fields(b, &size) || size < 0 || int(size) > b.Len() {
		return ""
	}
	return string(b.Next(int(size)))
}

// referenceFrame describes a frame that is not a Connect, as Frame.String does.
// The operation and the path of a reply are its request's.
func referenceFrame(dir Direction, body []byte, sent map[int32][2]string) (string, bool) {
	b := bytes.NewBuffer(body)
	var h struct{ Xid, Op int32 }
	var r struct {
		Xid  int32
		Zxid int64
		Err  int32
	}
	kind, op, name := "Request", "", ""
	if dir == ToServer {
		if !fields(b, &h) {
			return "", false
		}
		r.Xid, op = h.Xid, fmt.Sprint(h.Op)
		if slices.Contains(inMulti, h.Op) {
			b.Next(9)
		}
		if slices.Contains(inMulti, h.Op) || slices.Contains(withPath, h.Op) {
			name = path(b)
		}
	} else {
		if !fields(b, &r) {
			return "", false
		}
		kind, op = "Reply", "0"
	}
	switch {
	case r.Xid == -2:
		kind, op = "Ping", "11"
	case r.Xid == -4:
		kind, op = "Auth", "100"
	case r.Xid == -1 && dir == ToClient:
		kind, op = "WatchEvent", "0"
		b.Next(8)
		name = path(b)
	case kind == "Request":
		sent[r.Xid] = [2]string{op, name}
	default:
		if request, ok := sent[r.Xid]; ok {
			op, name = request[0], request[1]
			delete(sent, r.Xid)
		}
	}
	return fmt.Sprintf("#1 %v %s xid=%d op=%s path=%q zxid=%#x err=%d", dir, kind, r.Xid, op, name, r.Zxid, r.Err), true
}

// referenceStream splits a stream into the frames that a filter should see, and
// returns them with the expected output of the proxy.
func referenceStream(dir Direction, stream []byte, verdict func(int) Verdict, raw *bool, sent map[int32][2]string) (frames []string, out []byte, cut bool) {
	for first := true; !*raw && len(stream) >= 4; first = false {
		size := int64(int32(binary.BigEndian.Uint32(stream)))
		if size < 0 || size > 128<<20 {
			*raw = true
			break
		}
		if size > int64(len(stream)-4) {
			break
		}
		whole := stream[:4+size]
		stream = stream[4+size:]
		text, ok := fmt.Sprintf(`#1 %v Connect xid=0 op=-10 path="" zxid=0x0 err=0`, dir), true
		known := maps.Clone(sent)
		if !first {
			text, ok = referenceFrame(dir, whole[4:], sent)
		}
		if !ok {
			out = append(out, whole...)
			continue
		}
		v := verdict(len(frames))
		frames = append(frames, text)
		if dir == ToServer && (v == DropFrame || v == CutBefore) { // no reply will come
			clear(sent)
			maps.Copy(sent, known)
		}
		switch v {
		case DropFrame:
			continue
		case CutBefore:
			return frames, out, true
		}
		out = append(out, whole...)
		if v == CutAfter {
			return frames, out, true
		}
	}
	return frames, append(out, stream...), false
}

// pieces is a stream that arrives in pieces of the given lengths, which it
// cycles through.
type pieces struct {
	rest, cuts []byte
	next       int
}

func (p *pieces) Read(b []byte) (int, error) {
	if len(p.rest) == 0 {
		return 0, io.EOF
	}
	if len(p.cuts) > 0 {
		b = b[:min(len(b), 1+int(p.cuts[p.next%len(p.cuts)]))]
		p.next++
	}
	n := copy(b, p.rest)
	p.rest = p.rest[n:]
	return n, nil
}

// FuzzFrames guards the parsing of both streams of a connection, whatever their
// contents and however the network splits them. A filter sees each frame once,
// a reply with the operation and path of its request. The frames that it passes
// come out unchanged and in order, and nothing else does.
func FuzzFrames(f *testing.F) {
	connect := framed(make([]byte, 44))
	multiRead := request(3, OpMulti, "/c")
	multiRead[7] = byte(OpMultiRead)
	requests := slices.Concat(
		connect,
		framed(request(1, OpCreate, "/a")),
		framed(request(2, OpMulti, "/b")),
		framed(request(-2, OpPing, "")),
		framed(multiRead),
	)
	event := append(binary.BigEndian.AppendUint32(nil, 0xffffffff), make([]byte, 20)...)
	replies := slices.Concat(
		framed(make([]byte, 36)),
		framed([]byte{0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2, 0xff, 0xff, 0xff, 0x9b}),
		framed(appendString(event, "/lock/a")),
		framed([]byte{0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 3, 0, 0, 0, 0, 1, 2, 3}),
		framed([]byte{0xff, 0xff, 0xff, 0xfe, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}),
	)
	f.Add(requests, replies, []byte{0}, []byte{200})
	f.Add(requests, replies, []byte{0, 1, 0, 0, 0, 0, 2}, []byte{1, 2, 6})
	f.Add(requests, replies, []byte{0, 0, 3}, []byte{0})
	f.Add([]byte("wchc"), replies, []byte{0}, []byte{0})                                                         // a four-letter word
	f.Add([]byte("\x16\x03\x01\x02\x00"), []byte("\x16\x03\x03"), []byte{0}, []byte{0})                          // TLS
	f.Add(requests[:60], replies[:50], []byte{0}, []byte{3})                                                     // cut short
	f.Add(slices.Concat(connect, framed(nil), framed(make([]byte, 7)), requests), replies, []byte{0}, []byte{0}) // short frames
	f.Add(slices.Concat(connect, []byte{0xff, 0xff, 0xff, 0xff}, requests), replies, []byte{0}, []byte{0})       // a negative length
	f.Add(requests, slices.Concat(framed(make([]byte, 36)), framed(make([]byte, 15))), []byte{0}, []byte{0})     // a short reply
	f.Add(requests, replies, []byte{2}, []byte{0})                                                               // cut at once
	auth, noPath, longPath := request(-4, OpSetAuth, ""), request(4, OpMulti, "")[:10], request(5, OpCreate, "/a")
	longPath[11] = 100
	f.Add(slices.Concat(connect, framed(auth), framed(noPath), framed(longPath)), replies, []byte{0}, []byte{0})
	f.Fuzz(func(t *testing.T, toServer, toClient, verdicts, cuts []byte) {
		p := &Proxy{ctx: t.Context()}
		p.judge.released = make(chan struct{})
		verdict := func(i int) Verdict {
			if len(verdicts) == 0 {
				return Pass
			}
			return []Verdict{Pass, DropFrame, CutBefore, CutAfter}[verdicts[i%len(verdicts)]&3]
		}
		c := newConn(p, 1, nil)
		defer c.cancel()
		raw, sent := false, make(map[int32][2]string)
		for _, way := range []struct {
			dir    Direction
			stream []byte
		}{{ToServer, toServer}, {ToClient, toClient}} {
			if hugeFrame(way.stream) {
				return
			}
			wantSeen, wantOut, wantCut := referenceStream(way.dir, way.stream, verdict, &raw, sent)
			var seen []string
			p.judge.filter = func(f Frame) Verdict {
				seen = append(seen, f.String())
				return verdict(len(seen) - 1)
			}
			pp := newPipe(c, way.dir, &pieces{rest: way.stream, cuts: cuts}, nil)
			err := pp.readFrames()
			var out []byte
			cut := false
			for it, ok := pp.queue.tryPop(); ok; it, ok = pp.queue.tryPop() {
				out = append(out, it.data...)
				cut = cut || it.kind == itemCut
			}
			if !slices.Equal(seen, wantSeen) {
				t.Fatalf("%v %x: saw\n%q, want\n%q", way.dir, way.stream, seen, wantSeen)
			}
			if !bytes.Equal(out, wantOut) || cut != wantCut || (err == io.EOF) == cut {
				t.Fatalf("%v %x: came out as\n%x, cut %v, %v, want\n%x, cut %v", way.dir, way.stream, out, cut, err, wantOut, wantCut)
			}
			if cut {
				return
			}
		}
		if c.raw.Load() != raw || len(c.pending.req) != len(sent) {
			t.Fatalf("raw %v, want %v; open are %v, want %v", c.raw.Load(), raw, c.pending.req, sent)
		}
	})
}

// hugeFrame reports whether a stream announces a frame that would take long to
// allocate.
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
