package zkserver

import "syscall"

// A process group of its own keeps the terminal's ^C, meant for the test or the demo, away from the server.
func sysProcAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
