//go:build !linux

package faultproxy

import "net"

// portGuard does nothing where a port cannot be held without listening on it.
type portGuard struct{}

// holdPort finds a free port, if listen asks for one.
func holdPort(listen string) (portGuard, string, error) {
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return portGuard{}, "", err
	}
	addr := l.Addr().String()
	return portGuard{}, addr, l.Close()
}

func (portGuard) release() {}
