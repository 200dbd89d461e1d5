package child

import "syscall"

// Attr are the attributes of a child that ends with its parent.
//
// A separate process group keeps the terminal's ^C, meant for the test or the
// demo, away from the server.
func Attr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
