package main

import "syscall"

// Workers die with the demo, even while they are paused. A separate process group keeps the terminal's ^C from them: the demo
// ends them.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
