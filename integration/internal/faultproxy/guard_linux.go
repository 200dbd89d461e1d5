package faultproxy

import (
	"net"
	"net/netip"
	"os"
	"syscall"
)

// portGuard keeps a port while nothing listens on it: a socket that is bound but
// does not listen lets the kernel refuse connections, lets a listener with
// SO_REUSEADDR (Go sets it) come and go, and keeps the kernel from handing the
// port out as a free one.
type portGuard struct{ fd int }

// holdPort binds listen and returns the address with the port filled in.
func holdPort(listen string) (portGuard, string, error) {
	tcp, err := net.ResolveTCPAddr("tcp", listen)
	if err != nil {
		return portGuard{}, "", err
	}
	ap := tcp.AddrPort()
	ip := ap.Addr().Unmap()
	family := syscall.AF_INET6
	var sa syscall.Sockaddr = &syscall.SockaddrInet6{Port: int(ap.Port()), Addr: ip.As16()}
	if ip.Is4() {
		family = syscall.AF_INET
		sa = &syscall.SockaddrInet4{Port: int(ap.Port()), Addr: ip.As4()}
	}
	fd, err := syscall.Socket(family, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return portGuard{}, "", os.NewSyscallError("socket", err)
	}
	port, err := bind(fd, sa)
	if err != nil {
		_ = syscall.Close(fd)
		return portGuard{}, "", err
	}
	return portGuard{fd: fd}, netip.AddrPortFrom(ip, port).String(), nil
}

func bind(fd int, sa syscall.Sockaddr) (uint16, error) {
	if err := syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1); err != nil {
		return 0, os.NewSyscallError("setsockopt", err)
	}
	if err := syscall.Bind(fd, sa); err != nil {
		return 0, os.NewSyscallError("bind", err)
	}
	bound, err := syscall.Getsockname(fd)
	if err != nil {
		return 0, os.NewSyscallError("getsockname", err)
	}
	switch sa := bound.(type) {
	case *syscall.SockaddrInet4:
		return uint16(sa.Port), nil
	case *syscall.SockaddrInet6:
		return uint16(sa.Port), nil
	}
	return 0, syscall.EAFNOSUPPORT
}

func (g portGuard) release() { _ = syscall.Close(g.fd) }
