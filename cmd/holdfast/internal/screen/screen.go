//go:build unix

package screen

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A Screen is a terminal in use. Its methods are for one goroutine.
type Screen struct {
	out, in *os.File // in is nil if nobody can type
	saved   *unix.Termios
	shown   []Row // what is there; nil if unknown
	taken   bool  // the terminal shows our screen
	known   bool  // Suspend has seen the next SIGCONT already

	inputs  chan Input
	signals chan os.Signal
	quit    chan struct{} // closed by Close
	wake    *os.File      // a pipe, of which Close closes the other end
	hangUp  func() error
	tasks   sync.WaitGroup
}

// The control sequences, of ECMA-48 and, with a question mark, of xterm, which
// all others imitate. Without automatic margins nothing that turns out wider than
// was thought goes on in the next row.
const (
	enter = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J" // other screen, no cursor, no margins, clear
	leave = "\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l"
)

// Able reports whether a terminal, by the value of TERM, understands them.
func Able(term string) bool { return term != "" && term != "dumb" }

// Open takes the terminal out; what is typed is read from in, or from the
// controlling terminal if in is none. Close it in any case, a panic included.
func Open(in, out *os.File) (*Screen, error) {
	s := &Screen{
		out:     out,
		inputs:  make(chan Input),
		signals: make(chan os.Signal, 8),
		quit:    make(chan struct{}),
	}
	wake, other, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("terminal: %w", err)
	}
	s.wake, s.hangUp = wake, other.Close
	s.listen(in)
	signal.Notify(s.signals, syscall.SIGWINCH, syscall.SIGCONT)
	if err := s.take(); err != nil {
		s.Close()
		return nil, err
	}
	s.tasks.Go(s.forward)
	if s.in != nil {
		s.tasks.Go(s.read)
	}
	return s, nil
}

// listen finds what keys can be read from.
func (s *Screen) listen(in *os.File) {
	if in != nil {
		if modes, err := getModes(in); err == nil {
			s.in, s.saved = in, modes
			return
		}
	}
	fd, err := unix.Open("/dev/tty", unix.O_RDONLY|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	in = os.NewFile(uintptr(fd), "/dev/tty")
	modes, err := getModes(in)
	if err != nil {
		_ = in.Close()
		return
	}
	s.in, s.saved = in, modes
}

// Close gives the terminal back. It does nothing if it has been called.
func (s *Screen) Close() {
	select {
	case <-s.quit:
		return
	default:
	}
	close(s.quit)
	_ = s.hangUp()
	signal.Stop(s.signals)
	s.release()
	s.tasks.Wait()
	_ = s.wake.Close()
}

// Inputs delivers what the user and the terminal have to say.
func (s *Screen) Inputs() <-chan Input { return s.inputs }

func (s *Screen) forward() {
	for {
		select {
		case sig := <-s.signals:
			s.send(Input{Signal: sig})
		case <-s.quit:
			return
		}
	}
}

func (s *Screen) send(i Input) {
	select {
	case s.inputs <- i:
	case <-s.quit:
	}
}

// foreground reports whether the terminal is this program's to use. Otherwise to
// change its modes, or to read from it, would stop the program, which could then
// not even be terminated.
func (s *Screen) foreground() bool {
	group, err := unix.IoctlGetInt(int(s.out.Fd()), unix.TIOCGPGRP)
	return err != nil || group == unix.Getpgrp() // err: it is not our controlling terminal, or is gone
}

// take switches to a screen of our own, unless somebody else has the foreground.
func (s *Screen) take() error {
	if s.taken || !s.foreground() {
		return nil
	}
	if s.in != nil {
		if err := setModes(s.in, unbuffered(s.saved)); err != nil {
			return fmt.Errorf("terminal: %w", err)
		}
	}
	s.taken, s.shown = true, nil
	_, err := s.out.WriteString(enter)
	return err
}

// release switches back. The terminal may be gone, so errors are of no interest.
func (s *Screen) release() {
	if !s.taken {
		return
	}
	s.taken = false
	_, _ = s.out.WriteString(leave)
	if s.in != nil {
		_ = setModes(s.in, s.saved)
	}
}

// Size returns the number of columns and rows.
func (s *Screen) Size() (width, height int) {
	size, err := unix.IoctlGetWinsize(int(s.out.Fd()), unix.TIOCGWINSZ)
	if err != nil || size.Col == 0 || size.Row == 0 {
		return 80, 24 // a serial line, say, of which nobody knows
	}
	return int(size.Col), int(size.Row)
}

// Draw shows these rows and nothing else, by sending those that have changed. In
// the background it does nothing.
func (s *Screen) Draw(rows []Row) error {
	if err := s.take(); err != nil || !s.taken {
		return err
	}
	width, height := s.Size()
	rows = rows[:min(len(rows), height)]
	var b bytes.Buffer
	for i := range max(len(rows), len(s.shown)) {
		var row Row
		if i < len(rows) {
			row = Row{Cut(printable(rows[i].Text), width), rows[i].Bold, rows[i].Reverse}
			rows[i] = row
		}
		if i < len(s.shown) && s.shown[i] == row {
			continue
		}
		// Erased first: in the last column, erasing would take the character there.
		fmt.Fprintf(&b, "\x1b[%d;1H\x1b[2K", i+1)
		if row.Bold {
			b.WriteString("\x1b[1m")
		}
		if row.Reverse {
			b.WriteString("\x1b[7m")
		}
		b.WriteString(row.Text)
		if row.Bold || row.Reverse {
			b.WriteString("\x1b[0m")
		}
	}
	s.shown = slices.Clone(rows)
	if b.Len() == 0 {
		return nil
	}
	_, err := s.out.Write(b.Bytes())
	return err
}

// Redraw forgets what the terminal shows, so that Draw sends everything.
func (s *Screen) Redraw() error {
	s.shown = nil
	if !s.taken {
		return nil
	}
	_, err := s.out.WriteString("\x1b[2J")
	return err
}

// stopPatience is how long to wait for a stop signal to this program to take
// effect. It has none where nobody could continue the program.
const stopPatience = 200 * time.Millisecond

// Handle does what a signal asks for. Draw afterwards.
func (s *Screen) Handle(sig os.Signal) error {
	switch sig {
	case syscall.SIGCONT:
		if !s.known { // after a stop without Suspend; the shell may have changed what we had set
			s.taken = false
		}
		s.known = false
	case syscall.SIGWINCH:
		return s.Redraw()
	}
	return nil
}

// Suspend gives the terminal back and stops the program, with all that the shell
// knows as the same job. It returns when that goes on. Draw afterwards.
func (s *Screen) Suspend() {
	s.release()
	continued := make(chan os.Signal, 1)
	signal.Notify(continued, syscall.SIGCONT)
	defer signal.Stop(continued)
	if err := syscall.Kill(0, syscall.SIGTSTP); err != nil {
		return
	}
	timer := time.NewTimer(stopPatience)
	defer timer.Stop()
	select {
	case <-continued:
		s.known = true
	case <-timer.C:
	}
}

// backgroundPause is between looks at whether the terminal is ours again.
const backgroundPause = 200 * time.Millisecond

// read delivers what is typed. It never waits in a read, only in a poll, which
// Close can end, and which stops nobody in the background. What is typed then is
// the shell's.
func (s *Screen) read() {
	wake := unix.PollFd{Fd: int32(s.wake.Fd())} // hanging up is always told
	for {
		fds := []unix.PollFd{wake, {Fd: int32(s.in.Fd()), Events: unix.POLLIN}}
		_, err := unix.Poll(fds, -1)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			s.send(Input{Lost: fmt.Errorf("terminal: %w", err)})
			return
		case fds[0].Revents != 0:
			return
		case fds[1].Revents&^unix.POLLIN != 0:
			s.send(Input{Lost: errors.New("terminal: it is gone")})
			return
		case !s.foreground():
			_, _ = unix.Poll(fds[:1], int(backgroundPause.Milliseconds()))
			continue
		}
		var key [1]byte
		if n, err := unix.Read(int(s.in.Fd()), key[:]); err == nil && n == 1 {
			s.send(Input{Key: key[0]})
		}
	}
}
