package child

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// PortLease reserves a TCP port for this process even while nothing listens on it: a restarted server needs its old port
// back. The kernel frees the lock when the process ends.
type PortLease struct {
	Port int
	file *os.File
}

// Ports lie below the range from which Linux takes the local ports of outgoing connections: otherwise some connection could
// occupy the port of a stopped server, and a client that retries it could even connect to itself.
const (
	firstPort = 12000
	lastPort  = 32000
)

// LeasePort finds a free port.
func LeasePort() (*PortLease, error) {
	dir := filepath.Join(os.TempDir(), "holdfast-ports")
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	for range 200 {
		port := firstPort + rand.IntN(lastPort-firstPort)
		f, err := lockFile(filepath.Join(dir, strconv.Itoa(port)))
		if err != nil {
			continue
		}
		if !free(port) {
			f.Close()
			continue
		}
		return &PortLease{Port: port, file: f}, nil
	}
	return nil, fmt.Errorf("no free port between %d and %d", firstPort, lastPort)
}

// free reports whether no program listens on a port. It holds off process starts: a child that has not yet called exec shares the listener,
// and keeps the port open.
func free(port int) bool {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	l, err := net.Listen("tcp4", "127.0.0.1:"+strconv.Itoa(port))
	if err != nil {
		return false
	}
	return l.Close() == nil
}

// Listen listens on a leased port. The port may be busy for a moment: see free.
func Listen(network, addr string) (net.Listener, error) {
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		l, err := net.Listen(network, addr)
		if !errors.Is(err, syscall.EADDRINUSE) || time.Now().After(end) {
			return l, err
		}
	}
}

// Release gives the port back.
func (p *PortLease) Release() {
	os.Remove(p.file.Name())
	p.file.Close()
}

// ReleasePorts gives ports back.
func ReleasePorts(ports []*PortLease) {
	for _, p := range ports {
		p.Release()
	}
}

// LeasePorts finds n free ports.
func LeasePorts(n int) ([]*PortLease, error) {
	var ports []*PortLease
	for range n {
		p, err := LeasePort()
		if err != nil {
			ReleasePorts(ports)
			return nil, err
		}
		ports = append(ports, p)
	}
	return ports, nil
}
