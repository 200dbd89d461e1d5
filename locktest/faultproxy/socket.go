package faultproxy

import "net"

// A socket is one side of a connection.
type socket struct{ net.Conn }

// CloseWrite ends what goes to this side; more may come from it. A pipe has no halves.
func (s socket) CloseWrite() error {
	if half, ok := s.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return s.Close()
}

// reset closes the socket so that the other end notices at once. Bytes in flight are lost.
func (s socket) reset() {
	if lingers, ok := s.Conn.(interface{ SetLinger(sec int) error }); ok {
		_ = lingers.SetLinger(0)
	}
	_ = s.Close()
}
