package zkconn

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
)

// dial opens a link to servers, and closes it again.
func dial(ctx context.Context, t *testing.T, servers []string, config *tls.Config) error {
	var c Config
	if config != nil {
		c.TLS = func() (*tls.Config, error) { return config, nil }
	}
	l := New(ctx, testHost(t, nil), complete(c))
	defer l.Close()
	return l.Connect(ctx, servers)
}

// serving is a server on a free port, until the end of the test.
func serving(t *testing.T, serve func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				serve(conn)
			}()
		}
	}()
	return l.Addr().String()
}

// answering is a server that answers its first input with a text, and hangs up at the end
// of the test, or at once if the text is empty.
func answering(t *testing.T, text string) string {
	return serving(t, func(conn net.Conn) {
		if _, err := conn.Read(make([]byte, 1)); err == nil && text != "" {
			_, _ = io.WriteString(conn, text)
			_, _ = io.Copy(io.Discard, conn)
		}
	})
}

// TestStrangers tests hazard Z25: if another program answers at a wrong port, the client soon names
// it, shows little of its output, and trusts no length from it.
func TestStrangers(t *testing.T) {
	const secret = "a long secret that is not for everybody's eyes"
	for name, c := range map[string]struct{ answer, says string }{
		"HTTP":         {"HTTP/1.1 400 Bad Request\r\nServer: Jetty\r\n\r\n" + secret, `only over TLS: its answer begins with "HTTP/1.1 400`},
		"SSH":          {"SSH-2.0-OpenSSH_9.2\r\n", `only over TLS: its answer begins with "SSH-2.0-OpenSSH_9.2"`},
		"SMTP":         {"220 mail.example ESMTP " + secret + "\r\n", `only over TLS: its answer begins with "220 mail.example ESMTP a"`},
		"Redis":        {"-ERR unknown command\r\n", `only over TLS: its answer begins with "-ERR unknown command"`},
		"TLS alert":    {"\x15\x03\x03\x00\x02\x02\x46", "only over TLS"},
		"TLS hello":    {"\x16\x03\x03\x40\x00\x02\x00\x3f\xfc", "only over TLS"},
		"HTTP/2":       {"\x00\x00\x12\x04\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x80", "it does not speak ZooKeeper's protocol"},
		"HTTP/2 terse": {"\x00\x00\x00\x04\x00\x00\x00\x00\x00", "it does not speak ZooKeeper's protocol"},
		"MySQL":        {"\x4a\x00\x00\x00\x0a8.0.36\x00" + secret, "it does not speak ZooKeeper's protocol"},
		"escapes":      {"\x1b[2J\x1b[31mred\r\n", "it does not speak ZooKeeper's protocol"},
		"no timeout":   {string(connectResponse(0, 7)), "it does not speak ZooKeeper's protocol: it gives a session"},
		"a negative":   {string(connectResponse(-1, 7)), "it does not speak ZooKeeper's protocol: it gives a session"},
		"all ones":     {"\xff\xff\xff\xff", "it does not speak ZooKeeper's protocol"},
	} {
		t.Run(name, func(t *testing.T) {
			addr := answering(t, c.answer)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			err := dial(ctx, t, []string{addr}, nil)
			runtime.ReadMemStats(&after)
			if err == nil {
				t.Fatal("there is a session")
			}
			t.Log(err)
			if !errors.Is(err, holdfast.ErrDisconnected) || ctx.Err() != nil || errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%v, want ErrDisconnected, long before the ctx ends", err)
			}
			if !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "secret") {
				t.Errorf("%q, want the address and %q, and no more of the answer", err, c.says)
			}
			if taken := after.TotalAlloc - before.TotalAlloc; taken > 64<<20 {
				t.Errorf("%d bytes were allocated", taken)
			}
		})
	}
}

// TestReplyTooLong: the wire bounds lengths after the greeting, too, and reads long replies. A reply that is too long fails its own
// request, and then the connection ends.
func TestReplyTooLong(t *testing.T) {
	for _, c := range []struct {
		size int
		code int32 // of the reply that go-zookeeper gets
		fail bool
	}{
		{size: leastReply - 1, fail: true},
		{size: leastReply},
		{size: mostReply},
		{size: mostReply + 1, code: codeTooLong},
		{size: 1<<32 - 1, code: codeTooLong},
	} {
		l, _ := testLink(t, Config{})
		conn := &scripted{}
		w := newestWire(l, conn, time.Second)
		w.Write(connectRequest())
		if err := feed(w, connectResponse(4000, 7)); err != nil {
			t.Fatal(err)
		}
		w.noteRequest(clientRequest(1, 12, "/q"))
		conn.in = append(binary.BigEndian.AppendUint32(nil, uint32(c.size)), make([]byte, min(c.size, mostReply))...)
		conn.in[7] = 1 // xid
		err := w.readFrame()
		if (err != nil) != c.fail || err == nil && int32(binary.BigEndian.Uint32(w.frame[16:])) != c.code {
			t.Errorf("a length of %d: %v, %x", c.size, err, w.frame[:min(20, len(w.frame))])
		}
		if err := w.readFrame(); c.code != 0 && err != errTooLong {
			t.Errorf("behind a length of %d: %v", c.size, err)
		}
	}
}

// FuzzRead checks that no stream of replies makes the wire panic, or hand on more than it has read.
func FuzzRead(f *testing.F) {
	greeting := connectResponse(4000, 7)
	for _, tail := range [][]byte{nil, reply(1, 5, 0), reply(xidPing, 5, 0), {0, 0, 0, 3, 1}, {0xff, 0xff, 0xff, 0xff}, reply(2, 5, 0, int32(-1))} {
		f.Add(append(bytes.Clone(greeting), tail...))
		f.Add(append(connectResponse(-1, 7), tail...))
		f.Add(append(connectResponse(0, 0), tail...))
	}
	f.Add(frame(int32(0), int32(4000), int64(7), int32(1<<30)))
	f.Fuzz(func(t *testing.T, stream []byte) {
		l, _ := testLink(t, Config{})
		w := newestWire(l, &scripted{in: bytes.Clone(stream)}, time.Second)
		w.Write(connectRequest())
		w.noteRequest(clientRequest(1, opCreate, "/q"))
		w.noteRequest(clientRequest(2, opMulti, "/q"))
		var got []byte
		for b := make([]byte, 1<<10); ; {
			n, err := w.Read(b)
			if got = append(got, b[:n]...); err != nil {
				break
			}
		}
		if w.failed == nil && !bytes.HasPrefix(stream, got) {
			t.Errorf("read %x of %x", got, stream)
		}
	})
}

// TestTLS_IsConfiguredForEachConnection checks that each attempt at a connection makes its own configuration, and that a failure to make
// one ends no other attempt.
func TestTLS_IsConfiguredForEachConnection(t *testing.T) {
	secure := httptest.NewTLSServer(nil) // for its certificate
	defer secure.Close()
	config := &tls.Config{Certificates: secure.TLS.Certificates, ClientAuth: tls.RequireAnyClientCert}
	addr := serving(t, func(conn net.Conn) {
		if server := tls.Server(conn, config); server.Handshake() == nil {
			_, _ = io.WriteString(server, "220 mail.example ESMTP\r\n") // which ends the wait
			_, _ = io.Copy(io.Discard, server)
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	attempts := 0
	l := New(ctx, testHost(t, nil), complete(Config{TLS: func() (*tls.Config, error) {
		if attempts++; attempts == 1 {
			return nil, errors.New("half written")
		}
		return &tls.Config{InsecureSkipVerify: true, Certificates: secure.TLS.Certificates}, nil
	}}))
	defer l.Close()
	err := l.Connect(ctx, []string{addr})
	if ctx.Err() != nil || err == nil || !strings.Contains(err.Error(), "220 mail.example") {
		t.Errorf("after %d attempts: %v", attempts, err)
	}
}
