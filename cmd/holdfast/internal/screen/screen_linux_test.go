package screen

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unicode"

	"golang.org/x/sys/unix"
)

// A pty is a terminal, and what it was sent.
type pty struct {
	fd            int // of the master
	master, slave *os.File

	mu   sync.Mutex
	sent strings.Builder
}

func newPTY(t *testing.T, width, height int) *pty {
	t.Helper()
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	master := os.NewFile(uintptr(fd), "/dev/ptmx") // closing it ends a read
	t.Cleanup(func() { _ = master.Close() })
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = slave.Close() })
	p := &pty{fd: fd, master: master, slave: slave}
	p.resize(t, width, height)
	go func() {
		for b := make([]byte, 4096); ; {
			n, err := master.Read(b)
			p.mu.Lock()
			p.sent.Write(b[:n])
			p.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return p
}

func (p *pty) resize(t *testing.T, width, height int) {
	t.Helper()
	size := &unix.Winsize{Col: uint16(width), Row: uint16(height)}
	if err := unix.IoctlSetWinsize(p.fd, unix.TIOCSWINSZ, size); err != nil {
		t.Fatal(err)
	}
}

func (p *pty) modes(t *testing.T) unix.Termios {
	t.Helper()
	modes, err := getModes(p.slave)
	if err != nil {
		t.Fatal(err)
	}
	return *modes
}

// takes returns what the terminal was sent, as soon as that ends in a text.
func (p *pty) takes(t *testing.T, end string) string {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
		p.mu.Lock()
		sent := p.sent.String()
		p.mu.Unlock()
		if strings.HasSuffix(sent, end) {
			return sent
		}
		if time.Now().After(deadline) {
			t.Fatalf("the terminal was sent %q, which does not end in %q", sent, end)
		}
	}
}

// forget returns nothing of what was sent up to now.
func (p *pty) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sent.Reset()
}

func open(t *testing.T, p *pty) *Screen {
	t.Helper()
	s, err := Open(p.slave, p.slave)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func draw(t *testing.T, s *Screen, rows ...Row) {
	t.Helper()
	if err := s.Draw(rows); err != nil {
		t.Fatal(err)
	}
}

// TestTerminalIsGivenBack tests the terminal's modes and its first screen: they
// are back after Close, called once or twice, and after a panic.
func TestTerminalIsGivenBack(t *testing.T) {
	for name, use := range map[string]func(*Screen){
		"closed":       func(s *Screen) { s.Close() },
		"closed twice": func(s *Screen) { s.Close(); s.Close() },
		"panic": func(s *Screen) {
			defer func() { _ = recover() }()
			defer s.Close()
			panic("as programs do")
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPTY(t, 80, 24)
			before := p.modes(t)
			s := open(t, p)
			if during := p.modes(t); during.Lflag&(unix.ICANON|unix.ECHO) != 0 || during.Lflag&unix.ISIG == 0 {
				t.Errorf("modes %x while in use: want no lines, no echo, and signals", during.Lflag)
			}
			draw(t, s, Row{Text: "a"})
			use(s)
			if after := p.modes(t); after != before {
				t.Errorf("modes are %+v, were %+v", after, before)
			}
			if sent := p.takes(t, leave); !strings.HasPrefix(sent, enter) || strings.Count(sent, leave) != 1 {
				t.Errorf("the terminal was sent %q", sent)
			}
		})
	}
}

// TestDraw tests what is sent for a page: all of it at first, then the rows that
// have changed, and all again after a change of size.
func TestDraw(t *testing.T) {
	p := newPTY(t, 10, 3)
	s := open(t, p)
	draw(t, s, Row{Text: "one"}, Row{Text: "two", Bold: true}, Row{Text: "three", Reverse: true})
	const at1, at2, at3 = "\x1b[1;1H\x1b[2K", "\x1b[2;1H\x1b[2K", "\x1b[3;1H\x1b[2K"
	p.takes(t, enter+at1+"one"+at2+"\x1b[1mtwo\x1b[0m"+at3+"\x1b[7mthree\x1b[0m")
	p.forget()
	draw(t, s, Row{Text: "one"}, Row{Text: "two"}, Row{Text: "three", Reverse: true}, Row{Text: "of no use"})
	if got := p.takes(t, at2+"two"); got != at2+"two" {
		t.Errorf("sent %q for one row", got)
	}
	p.forget()
	draw(t, s, Row{Text: "longer than the screen"})
	if got, want := p.takes(t, at3), at1+"longer th…"+at2+at3; got != want {
		t.Errorf("sent %q, want %q", got, want)
	}
	p.resize(t, 6, 2)
	p.forget()
	if err := s.Handle(syscall.SIGWINCH); err != nil {
		t.Fatal(err)
	}
	draw(t, s, Row{Text: "longer than the screen"})
	if got, want := p.takes(t, "longe…"), "\x1b[2J"+at1+"longe…"; got != want {
		t.Errorf("sent %q, want %q", got, want)
	}
}

// TestContinued tests a program that was stopped without its knowledge: when it
// goes on, the terminal is as it needs it.
func TestContinued(t *testing.T) {
	p := newPTY(t, 80, 24)
	before := p.modes(t)
	s := open(t, p)
	draw(t, s, Row{Text: "a"})
	if err := setModes(p.slave, &before); err != nil { // as a shell does
		t.Fatal(err)
	}
	p.forget()
	if err := s.Handle(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	draw(t, s, Row{Text: "a"})
	p.takes(t, enter+"\x1b[1;1H\x1b[2Ka")
	if during := p.modes(t); during.Lflag&unix.ICANON != 0 {
		t.Error("it reads lines, not characters")
	}
}

// sequence is one of those that Draw may send.
var sequence = regexp.MustCompile(`\x1b\[(\?1049h|\?25l|\?7l|2J|\d+;1H|2K|1m|7m|0m)`)

// TestNothingButText tests the terminal against what others have put into rows.
func TestNothingButText(t *testing.T) {
	for _, text := range []string{
		"\x1b[31mred", "\x1b]0;title\x07", "\u009b31m", "a\nb\r\tc\b", "\x00", "\x7f", "\xff\x9b31m", "\u202eabc", "\u2066a", "\u200b", "\ufeff",
	} {
		p := newPTY(t, 80, 24)
		draw(t, open(t, p), Row{Text: text}, Row{Text: "end"})
		sent := sequence.ReplaceAllString(p.takes(t, "end"), "")
		if i := strings.IndexFunc(sent, func(r rune) bool { return !unicode.IsPrint(r) }); i >= 0 {
			t.Errorf("for %q the terminal was sent %q", text, sent)
		}
	}
}

// TestInputs guards keys, each as it is typed, and the end of the terminal.
func TestInputs(t *testing.T) {
	p := newPTY(t, 80, 24)
	s := open(t, p)
	receive := func() Input {
		t.Helper()
		select {
		case in := <-s.Inputs():
			return in
		case <-time.After(30 * time.Second):
			t.Fatal("never: an input")
			return Input{}
		}
	}
	for _, key := range []byte{'q', 4, SuspendKey, 'L' - '@', 0xc3} {
		if _, err := p.master.Write([]byte{key}); err != nil {
			t.Fatal(err)
		}
		if in := receive(); in.Key != key || in.Lost != nil || in.Signal != nil {
			t.Errorf("%+v for key %d", in, key)
		}
	}
	if err := p.master.Close(); err != nil {
		t.Fatal(err)
	}
	if in := receive(); in.Lost == nil {
		t.Errorf("%+v for a terminal that is gone", in)
	}
	if err := s.Draw([]Row{{Text: "a"}}); err == nil {
		t.Error("drawing on a terminal that is gone is no error")
	}
}
