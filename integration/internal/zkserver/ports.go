package zkserver

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// portLease is a TCP port that is this process's own, also while nothing listens on it: a restarted server needs its old
// port back. The kernel frees the lock when the process ends.
type portLease struct {
	Port int
	file *os.File
}

// Ports lie below the range from which Linux takes the local ports of outgoing connections: otherwise some connection could
// occupy the port of a stopped server, and a client that retries it could even connect to itself.
const (
	firstPort = 12000
	lastPort  = 32000
)

func leasePort() (*portLease, error) {
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
		l, err := net.Listen("tcp4", "127.0.0.1:"+strconv.Itoa(port))
		if err != nil {
			f.Close()
			continue
		}
		l.Close()
		return &portLease{Port: port, file: f}, nil
	}
	return nil, fmt.Errorf("no free port between %d and %d", firstPort, lastPort)
}

func (p *portLease) release() {
	os.Remove(p.file.Name())
	p.file.Close()
}

func releasePorts(ports []*portLease) {
	for _, p := range ports {
		p.release()
	}
}

func leasePorts(n int) ([]*portLease, error) {
	var ports []*portLease
	for range n {
		p, err := leasePort()
		if err != nil {
			releasePorts(ports)
			return nil, err
		}
		ports = append(ports, p)
	}
	return ports, nil
}

var errLocked = errors.New("locked by another process or by another server of this one")

// lockFile creates and locks a file without waiting.
func lockFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o666)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, errLocked
	}
	// Whoever held the lock before may have removed the file after we opened it; then the lock is on a file nobody else sees.
	held, err1 := f.Stat()
	named, err2 := os.Stat(path)
	if err1 != nil || err2 != nil || !os.SameFile(held, named) {
		f.Close()
		return nil, errLocked
	}
	return f, nil
}
