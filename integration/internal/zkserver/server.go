package zkserver

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/integration/internal/child"
)

const (
	// startPatience bounds a start for which the caller's ctx has no nearer deadline.
	startPatience = 60 * time.Second
	// stopPatience is how long a server may take to end before it is killed. It needs some tens of milliseconds.
	stopPatience = 5 * time.Second
)

// Server is a ZooKeeper server that runs as a child process. Its methods may be called from any goroutine.
type Server struct {
	addr   string
	secure string // the port with TLS, if there is one
	dir    string
	lock   *os.File
	ports  []*child.PortLease
	args   []string
	// control is the server's line protocol on its standard input and output, if it has one.
	control *control

	mu   sync.Mutex
	proc *child.Process
}

// Start starts a standalone server and returns when it serves. A ctx that ends first stops it again. Close it after use.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	ports, err := child.LeasePorts(1)
	if err != nil {
		return nil, err
	}
	s, err := newServer(cfg.withDefaults(100*time.Millisecond), ports, nil, nil, embedded)
	if err != nil {
		return nil, err
	}
	if err := s.Start(ctx); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// ownDir stands for a server's directory in the settings that newServer gets.
const ownDir = "{dir}"

// newServer lays out the directory of a server that is not yet running. It takes over the ports, of which the first is the
// clients'. controlled is the program that runs the server if [Config.Controlled].
func newServer(cfg Config, ports []*child.PortLease, settings, files map[string]string, controlled program) (_ *Server, err error) {
	s := &Server{ports: ports, addr: loopback(ports[0].Port)}
	defer func() {
		if err != nil {
			s.Close()
		}
	}()
	java, err := Java("java")
	if err != nil {
		return nil, err
	}
	cp, err := classpath()
	if err != nil {
		return nil, err
	}
	if s.dir, s.lock, err = child.NewDir("holdfast-zk-"); err != nil {
		return nil, err
	}
	data := filepath.Join(s.dir, "data")
	if err := os.Mkdir(data, 0o755); err != nil {
		return nil, err
	}
	all := cfg.settings(data, "127.0.0.1", ports[0].Port)
	for name, value := range settings {
		all[name] = strings.ReplaceAll(value, ownDir, s.dir)
	}
	texts := map[string]string{"zoo.cfg": cfg.render(all)}
	maps.Copy(texts, files)
	for name, text := range texts {
		if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o644); err != nil {
			return nil, err
		}
	}
	class := "org.apache.zookeeper.server.quorum.QuorumPeerMain"
	if cfg.Controlled {
		classes, err := Compile(controlled.class, controlled.source, cp)
		if err != nil {
			return nil, err
		}
		cp, class = classes+":"+cp, controlled.class
		s.control = &control{}
	}
	s.args = slices.Concat([]string{java}, cfg.jvmFlags(), []string{"-cp", cp, class, filepath.Join(s.dir, "zoo.cfg")})
	return s, nil
}

func loopback(port int) string { return "127.0.0.1:" + strconv.Itoa(port) }

// Addr is the host:port for clients. It stays the same over restarts.
func (s *Server) Addr() string { return s.addr }

// SecureAddr is the host:port for clients with TLS, or nothing.
func (s *Server) SecureAddr() string { return s.secure }

// LogPath is the file with all output of the server, across restarts.
func (s *Server) LogPath() string { return filepath.Join(s.dir, "log") }

// LogTail returns the end of the log, for failure messages.
func (s *Server) LogTail() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return child.Tail(s.LogPath())
}

// PID is the process's id, or 0 while it is stopped.
func (s *Server) PID() int {
	if p := s.running(); p != nil {
		return p.PID()
	}
	return 0
}

func (s *Server) running() *child.Process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.runningLocked()
}

func (s *Server) runningLocked() *child.Process {
	if s.proc == nil {
		return nil
	}
	select {
	case <-s.proc.Done():
		return nil
	default:
		return s.proc
	}
}

// Start starts a stopped or killed server again, with its old data and port, and returns when it serves. When it fails or
// ctx ends first, the server is stopped.
func (s *Server) Start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	if err := s.Launch(); err != nil {
		return err
	}
	if err := s.WaitReady(ctx); err != nil {
		s.Kill()
		return err
	}
	return nil
}

// Launch is Start without the wait: it returns as soon as the process runs.
func (s *Server) Launch() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dir == "" {
		return errors.New("zookeeper: server is closed")
	}
	if s.runningLocked() != nil {
		return fmt.Errorf("zookeeper %s: already running", s.addr)
	}
	s.closePipeLocked()
	p, err := child.Start(s.LogPath(), s.control != nil, s.args[0], s.args[1:]...)
	if err != nil {
		return err
	}
	s.proc = p
	return nil
}

// WaitReady returns when the server serves clients. It gives up when the process has ended or ctx is done.
func (s *Server) WaitReady(ctx context.Context) error {
	p := s.running()
	if p == nil {
		return fmt.Errorf("zookeeper %s: not running; its log ends:\n%s", s.addr, s.LogTail())
	}
	// An open port is not enough: the port opens before the server can answer.
	err := p.Await(ctx, func(ctx context.Context) error {
		_, err := Mode(ctx, s.addr)
		return err
	})
	if err != nil {
		return fmt.Errorf("zookeeper %s: %w; its log ends:\n%s", s.addr, err, s.LogTail())
	}
	return nil
}

// Stop ends the server in an orderly way, and by force when it takes too long or ctx ends. It returns when the process is
// gone; data, port and log stay for the next Start. Stopping a stopped server does nothing.
func (s *Server) Stop(ctx context.Context) {
	if p := s.running(); p != nil {
		p.Stop(ctx, stopPatience)
	}
}

// Kill ends the server with SIGKILL and returns when the process is gone. Otherwise it is like Stop.
func (s *Server) Kill() {
	if p := s.running(); p != nil {
		p.Kill()
	}
}

// Wipe removes all that a server that does not run has stored, as the loss of its disk does.
func (s *Server) Wipe() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dir == "" || s.runningLocked() != nil {
		return errors.New("zookeeper: wipe: the server is closed, or it runs")
	}
	return os.RemoveAll(filepath.Join(s.dir, "data", "version-2"))
}

// Pause stops the process; see [child.Process.Pause].
func (s *Server) Pause() error { return s.suspend((*child.Process).Pause) }

// Resume continues a paused process.
func (s *Server) Resume() error { return s.suspend((*child.Process).Resume) }

func (s *Server) suspend(step func(*child.Process) error) error {
	p := s.running()
	if p == nil {
		return fmt.Errorf("zookeeper %s: not running", s.addr)
	}
	return step(p)
}

// Close stops the server and removes its data and log. It may be called more than once.
func (s *Server) Close() {
	s.Stop(context.Background())
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closePipeLocked()
	child.ReleasePorts(s.ports)
	s.ports = nil
	if s.dir != "" {
		os.RemoveAll(s.dir)
		s.lock.Close()
		s.dir = ""
	}
}

// closePipeLocked closes the output of the last process, if it had a line protocol.
func (s *Server) closePipeLocked() {
	if s.proc != nil && s.proc.Stdout != nil {
		s.proc.Stdout.Close()
	}
}
