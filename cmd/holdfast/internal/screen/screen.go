//go:build unix

package screen

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A Screen is a terminal in use. Only one goroutine may call its methods.
type Screen struct {
	out, in   *os.File // in is nil if nobody can type
	saved     *unix.Termios
	shown     []Row // nil if unknown
	taken     bool  // the terminal shows our screen
	continued bool  // Suspend has already dealt with the next SIGCONT

	inputs  chan Input
	signals chan os.Signal
	quit    chan struct{} // closed by Close
	wake    *os.File      // a pipe; Close closes its other end
	hangUp  func() error
	reader  sync.WaitGroup
}

// Control sequences of ECMA-48 and, those with a question mark, of xterm, which all others
// imitate. Without automatic margins, text that is wider than expected does not wrap.
const (
	enter = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J" // alternate screen, no cursor, no margins, clear
	leave = "\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l"
)

// Able reports whether a terminal with this TERM understands them.
func Able(term string) bool { return term != "" && term != "dumb" }

// Open takes over the terminal out. It reads keys from in, or from the controlling
// terminal if in is not a terminal. Always close the screen, even after a panic.
func Open(in, out *os.File) (*Screen, error) {
	s := &Screen{out: out, inputs: make(chan Input), signals: make(chan os.Signal, 8), quit: make(chan struct{})}
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
	if s.in != nil {
		s.reader.Go(s.read)
	}
	return s, nil
}

// listen finds a terminal to read keys from.
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

// Close restores the terminal. It may be called again.
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
	s.reader.Wait()
	_ = s.wake.Close()
}

// Inputs delivers what the user types.
func (s *Screen) Inputs() <-chan Input { return s.inputs }

// Signals delivers the signals that are for Handle.
func (s *Screen) Signals() <-chan os.Signal { return s.signals }

func (s *Screen) send(i Input) {
	select {
	case s.inputs <- i:
	case <-s.quit:
	}
}

// Foreground reports whether this program may use its terminal. In the background, reading from the
// terminal or changing its modes would stop the program, and then not even SIGTERM would end it.
func Foreground(terminal *os.File) bool {
	group, err := unix.IoctlGetInt(int(terminal.Fd()), unix.TIOCGPGRP)
	return err != nil || group == unix.Getpgrp() // err: not our controlling terminal, or gone
}

// take switches to the alternate screen, unless another program has the foreground.
func (s *Screen) take() error {
	if s.taken || !Foreground(s.out) {
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

// release switches back. It ignores errors: the terminal may be gone.
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
		return 80, 24 // such as a serial line
	}
	return int(size.Col), int(size.Row)
}

// Draw shows these rows and nothing else; it sends only those that have changed. In the
// background it does nothing.
func (s *Screen) Draw(rows []Row) error {
	if err := s.take(); err != nil || !s.taken {
		return err
	}
	width, height := s.Size()
	var text string
	if text, s.shown = render(rows[:min(len(rows), height)], s.shown, width); text == "" {
		return nil
	}
	_, err := s.out.WriteString(text)
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

// Handle obeys a signal. Draw afterwards.
func (s *Screen) Handle(sig os.Signal) error {
	switch sig {
	case syscall.SIGCONT:
		if !s.continued { // stopped without Suspend; the shell may have changed the modes
			s.taken = false
		}
		s.continued = false
	case syscall.SIGWINCH:
		return s.Redraw()
	}
	return nil
}

// stopPatience is how long to wait for a stop signal to take effect. It has none if nobody
// could continue the program.
const stopPatience = 200 * time.Millisecond

// Suspend restores the terminal and stops this job, as Ctrl-Z does. It returns when the
// job continues. Draw afterwards.
func (s *Screen) Suspend() {
	s.release()
	continued := make(chan os.Signal, 1)
	signal.Notify(continued, syscall.SIGCONT)
	defer signal.Stop(continued)
	if err := syscall.Kill(0, syscall.SIGTSTP); err != nil {
		return
	}
	select {
	case <-continued:
		s.continued = true
	case <-time.After(stopPatience):
	}
}

// backgroundPause is how often to look whether the terminal is ours again.
const backgroundPause = 200 * time.Millisecond

// read delivers keys. It never blocks in a read, only in a poll: Close can end that, and it
// does not stop the program in the background, where keys belong to the shell.
func (s *Screen) read() {
	wake := unix.PollFd{Fd: int32(s.wake.Fd())} // poll always reports a hang-up
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
		case !Foreground(s.out):
			_, _ = unix.Poll(fds[:1], int(backgroundPause.Milliseconds()))
			continue
		}
		var key [1]byte
		if n, err := unix.Read(int(s.in.Fd()), key[:]); err == nil && n == 1 {
			s.send(Input{Key: key[0]})
		}
	}
}

// getModes fails if f is not a terminal.
func getModes(f *os.File) (*unix.Termios, error) {
	return unix.IoctlGetTermios(int(f.Fd()), ioctlGetModes)
}

func setModes(f *os.File, modes *unix.Termios) error {
	return unix.IoctlSetTermios(int(f.Fd()), ioctlSetModes, modes)
}

// unbuffered returns modes in which each typed character arrives at once without an echo,
// and reads do not block. Ctrl-C still sends a signal, but Ctrl-Z does not: see SuspendKey.
func unbuffered(modes *unix.Termios) *unix.Termios {
	m := *modes
	m.Lflag &^= unix.ICANON | unix.ECHO
	m.Cc[unix.VMIN], m.Cc[unix.VTIME] = 0, 0
	m.Cc[unix.VSUSP] = noKey
	return &m
}
