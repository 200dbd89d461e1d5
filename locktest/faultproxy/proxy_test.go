package faultproxy

import (
	"bufio"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/locktest"
)

// TestFaults checks for each fault of bytes what becomes of an old and of a new connection, during the fault and after Heal. The
// server answers each line.
func TestFaults(t *testing.T) {
	t.Parallel()
	const works, resets, refuses, silent, late = "works", "resets", "refuses", "silent", "late"
	for name, c := range map[string]struct {
		fault       func(*Proxy)
		before      string // of the old connection
		fresh       string
		serverReads bool   // the bytes that the client sends during the fault
		healed      string // of the old connection
	}{
		"cut":                  {(*Proxy).Cut, resets, refuses, false, ""},
		"refuse new":           {(*Proxy).RefuseNew, works, refuses, true, works},
		"drop":                 {(*Proxy).Drop, resets, works, true, ""},
		"half-open":            {(*Proxy).HalfOpen, works, silent, true, works},
		"black hole":           {func(p *Proxy) { p.BlackHole(Both) }, silent, silent, false, resets},
		"black hole to server": {func(p *Proxy) { p.BlackHole(ToServer) }, silent, silent, false, resets},
		"black hole to client": {func(p *Proxy) { p.BlackHole(ToClient) }, silent, silent, true, resets},
		"stall":                {func(p *Proxy) { p.Stall(Both) }, silent, silent, false, late},
		"stall to server":      {func(p *Proxy) { p.Stall(ToServer) }, silent, silent, false, late},
		"stall to client":      {func(p *Proxy) { p.Stall(ToClient) }, silent, silent, true, late},
		"turn to client":       {func(p *Proxy) { p.Stall(ToClient); p.Turn(ToClient) }, silent, silent, false, resets},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			read := make(chan string, 10)
			p := start(t, serve(t, func(conn net.Conn) {
				buf := make([]byte, 1)
				for {
					if _, err := io.ReadFull(conn, buf); err != nil {
						return
					}
					read <- string(buf)
					_, _ = conn.Write(buf)
				}
			}))
			old := dial(t, p)
			old.echo("a")
			<-read
			c.fault(p)
			is := func(c client, what, s string) {
				t.Helper()
				switch what {
				case works:
					c.echo(s)
				case resets:
					c.ends(reset)
				case silent:
					c.send(s)
					c.silent()
				case late:
					c.expect(s)
				}
			}
			is(old, c.before, "b")
			if c.fresh == refuses {
				refused(t, p)
			} else {
				is(dial(t, p), c.fresh, "c")
			}
			if got := len(read) > 0; got != c.serverReads {
				t.Errorf("the server reads in the fault: %v, want %v", got, c.serverReads)
			}
			heal(t, p)
			if c.healed == works {
				old.echo("d")
			} else if c.healed != "" {
				is(old, c.healed, "b")
			}
			dial(t, p).echo("e")
		})
	}
}

// TestLose gives the first of two messages of a connection each fate. The server answers each message.
func TestLose(t *testing.T) {
	t.Parallel()
	const late = 200 * time.Millisecond
	for fate, c := range map[locktest.Fate]struct {
		reads    string // what the server reads in the end
		answered bool
		later    bool // not at once
		goesOn   bool // the connection
	}{
		locktest.Arrives:     {"ab", true, false, true},
		locktest.LostRequest: {"", false, false, false},
		locktest.LostReply:   {"a", false, false, false},
		locktest.LateRequest: {"a", false, true, false},
		locktest.LateReply:   {"ab", true, true, true}, // the second after Lose
	} {
		t.Run(fate.String(), func(t *testing.T) {
			t.Parallel()
			read := make(chan string, 10)
			p, err := Start(serve(t, func(conn net.Conn) {
				buf := make([]byte, 1)
				for {
					if _, err := io.ReadFull(conn, buf); err != nil {
						return
					}
					read <- string(buf)
					_, _ = conn.Write(buf)
				}
			}), Options{
				Split:       func(int) (_, _ bufio.SplitFunc) { return bufio.ScanBytes, nil },
				LateRequest: late, LateReply: late,
			})
			started(t, p, err)
			fates := []locktest.Fate{fate}
			p.Lose(func() (next locktest.Fate) {
				if len(fates) > 0 {
					next, fates = fates[0], nil
				}
				return next
			})
			began := time.Now()
			conn := dial(t, p)
			conn.send("a")
			if c.answered {
				conn.expect("a")
				conn.send("b")
			} else if _, err := conn.Read(make([]byte, 1)); err == nil {
				t.Error("a reply arrived")
			}
			if c.answered && c.later {
				conn.silent() // the second message is held
				p.Lose(nil)
			}
			if c.goesOn {
				conn.expect("b")
			}
			var all []string
			for range len(c.reads) {
				all = append(all, <-read)
			}
			got := strings.Join(all, "")
			if took := time.Since(began); got != c.reads || c.later && took < late || len(read) > 0 {
				t.Errorf("the server read %q and %d more, after %v; want %q", got, len(read), took, c.reads)
			}
			dial(t, p).echo("e")
		})
	}
}
