package faultproxy

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"sync"
	"testing"
)

func TestParseFrame(t *testing.T) {
	t.Parallel()
	event := make([]byte, 24)
	copy(event, []byte{0xff, 0xff, 0xff, 0xff})
	event = appendString(event, "/lock/a")
	reply := []byte{0, 0, 0, 7, 0, 0, 0, 1, 0, 0, 0, 2, 0xff, 0xff, 0xff, 0x9b} // err -101
	tests := map[string]struct {
		dir  Direction
		body []byte
		want Frame
		bad  bool
	}{
		"create":          {dir: ToServer, body: request(7, OpCreate, "/a"), want: Frame{Kind: KindRequest, Xid: 7, Op: OpCreate, Path: "/a"}},
		"sync":            {dir: ToServer, body: request(7, OpSync, "/a"), want: Frame{Kind: KindRequest, Xid: 7, Op: OpSync, Path: "/a"}},
		"multi":           {dir: ToServer, body: request(8, OpMulti, "/b"), want: Frame{Kind: KindRequest, Xid: 8, Op: OpMulti, Path: "/b"}},
		"empty multi":     {dir: ToServer, body: append(request(8, OpClose, "")[:4], 0, 0, 0, byte(OpMulti), 0xff, 0xff, 0xff, 0xff, 1, 0xff, 0xff, 0xff, 0xff), want: Frame{Kind: KindRequest, Xid: 8, Op: OpMulti}},
		"close":           {dir: ToServer, body: request(9, OpClose, ""), want: Frame{Kind: KindRequest, Xid: 9, Op: OpClose}},
		"ping":            {dir: ToServer, body: request(-2, OpPing, ""), want: Frame{Kind: KindPing, Xid: -2, Op: OpPing}},
		"auth":            {dir: ToServer, body: request(-4, OpSetAuth, ""), want: Frame{Kind: KindAuth, Xid: -4, Op: OpSetAuth}},
		"set watches":     {dir: ToServer, body: request(-8, OpSetWatches, ""), want: Frame{Kind: KindRequest, Xid: -8, Op: OpSetWatches}},
		"path too long":   {dir: ToServer, body: append(request(1, OpClose, "")[:4], 0, 0, 0, 1, 0, 0, 0, 9, 'x'), want: Frame{Kind: KindRequest, Xid: 1, Op: OpCreate}},
		"negative path":   {dir: ToServer, body: append(request(1, OpClose, "")[:4], 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff), want: Frame{Kind: KindRequest, Xid: 1, Op: OpCreate}},
		"reply":           {dir: ToClient, body: reply, want: Frame{Kind: KindReply, Xid: 7, Zxid: 0x1_0000_0002, Err: -101}},
		"pong":            {dir: ToClient, body: append([]byte{0xff, 0xff, 0xff, 0xfe}, make([]byte, 12)...), want: Frame{Kind: KindPing, Xid: -2, Op: OpPing}},
		"event":           {dir: ToClient, body: event, want: Frame{Kind: KindWatchEvent, Xid: -1, Op: OpNotification, Path: "/lock/a"}},
		"short request":   {dir: ToServer, body: make([]byte, 7), bad: true},
		"short reply":     {dir: ToClient, body: make([]byte, 15), bad: true},
		"no frame at all": {dir: ToClient, bad: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, ok := parseFrame(tt.dir, tt.body)
			if ok == tt.bad {
				t.Fatalf("ok = %v", ok)
			}
			if tt.bad {
				return
			}
			if !bytes.Equal(got.Payload, tt.body) {
				t.Errorf("payload %x, want %x", got.Payload, tt.body)
			}
			tt.want.Dir = tt.dir
			if got.String() != tt.want.String() {
				t.Errorf("got  %v\nwant %v", got, tt.want)
			}
		})
	}
}

func TestCounts(t *testing.T) {
	t.Parallel()
	p := startZK(t, newFakeZK(t).addr)
	c := dialZK(t, p)
	c.call(1, OpCreate, "/a")
	c.call(2, OpGetChildren2, "/a")
	c.call(-2, OpPing, "")
	c.call(-1, OpNotification, "") // the fake answers with an event's xid
	for _, tt := range []struct {
		name      string
		got, want int
	}{
		{"connects", p.CountKind(Both, KindConnect), 2},
		{"connect requests", p.Count(ToServer, OpConnect), 1},
		{"creates", p.Count(ToServer, OpCreate), 1},
		{"create replies", p.Count(ToClient, OpCreate), 1},
		{"creates both ways", p.Count(Both, OpCreate), 2},
		{"lists", p.Count(ToClient, OpGetChildren2), 1},
		{"deletes", p.Count(Both, OpDelete), 0},
		{"replies", p.CountKind(ToClient, KindReply), 2},
		{"pings", p.CountKind(Both, KindPing), 2},
		{"ping ops", p.Count(ToServer, OpPing), 1},
		{"events", p.CountKind(ToClient, KindWatchEvent), 1},
		{"event ops", p.Count(ToClient, OpNotification), 1},
	} {
		if tt.got != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, tt.got, tt.want)
		}
	}
	p.ResetCounts()
	if n := p.CountKind(Both, KindReply); n != 0 {
		t.Errorf("%d replies after the reset", n)
	}
	c.call(3, OpDelete, "/a")
	if n := p.CountKind(ToServer, KindRequest); n != 1 {
		t.Errorf("%d requests, want 1", n)
	}
}

// Frames are parsed alike whether they arrive in pieces or many at once.
func TestFrameBoundaries(t *testing.T) {
	t.Parallel()
	p := startZK(t, newFakeZK(t).addr)
	c := dialZK(t, p)
	var burst []byte
	for xid := range int32(50) {
		burst = append(burst, framed(request(xid+1, OpCreate, "/burst"))...)
	}
	for len(burst) > 0 {
		n := min(7, len(burst))
		if len(burst) < 700 {
			n = len(burst)
		}
		send(t, c, string(burst[:n]))
		burst = burst[n:]
	}
	for xid := range int32(50) {
		c.expectReply(xid + 1)
	}
	if n := p.Count(ToServer, OpCreate); n != 50 {
		t.Errorf("%d creates, want 50", n)
	}
}

func TestFourLetterWordPasses(t *testing.T) {
	t.Parallel()
	p := startZK(t, serve(t, func(c net.Conn) {
		word := make([]byte, 4)
		if _, err := io.ReadFull(c, word); err == nil {
			_, _ = c.Write(append([]byte{0, 0, 0, 3}, word...)) // looks like a frame but is not one
		}
	}))
	c := dial(t, p)
	send(t, c, "wchc")
	expect(t, c, "\x00\x00\x00\x03wchc")
	expectEOF(t, c)
	if n := p.CountKind(Both, KindConnect); n != 0 {
		t.Errorf("%d frames counted", n)
	}
}

// A stream that ends inside a frame is passed on as it is.
func TestTruncatedFrame(t *testing.T) {
	t.Parallel()
	p := startZK(t, echoServer(t))
	c := dial(t, p)
	part := string(binary.BigEndian.AppendUint32(nil, 100)) + "part"
	send(t, c, part)
	_ = c.(*net.TCPConn).CloseWrite()
	expect(t, c, part)
	expectEOF(t, c)
}

func TestFilterSeesEverything(t *testing.T) {
	t.Parallel()
	p := startZK(t, newFakeZK(t).addr)
	var mu sync.Mutex
	var seen []Frame
	p.SetFilter(func(f Frame) Verdict {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, f)
		return Pass
	})
	c := dialZK(t, p)
	c.call(1, OpCreate, "/a")
	dialZK(t, p)
	p.SetFilter(nil)
	c.call(2, OpCreate, "/a")

	mu.Lock()
	defer mu.Unlock()
	want := []string{
		`#1 ToServer Connect xid=0 op=-10 path="" zxid=0x0 err=0`,
		`#1 ToClient Connect xid=0 op=-10 path="" zxid=0x0 err=0`,
		`#1 ToServer Request xid=1 op=1 path="/a" zxid=0x0 err=0`,
		`#1 ToClient Reply xid=1 op=1 path="/a" zxid=0x1 err=0`,
		`#2 ToServer Connect xid=0 op=-10 path="" zxid=0x0 err=0`,
		`#2 ToClient Connect xid=0 op=-10 path="" zxid=0x0 err=0`,
	}
	if len(seen) != len(want) {
		t.Fatalf("saw %d frames, want %d: %v", len(seen), len(want), seen)
	}
	for i, f := range seen {
		if f.String() != want[i] {
			t.Errorf("frame %d: %v, want %v", i, f, want[i])
		}
	}
}
