//go:build !linux

package child

import "syscall"

// Attr are the attributes of a child. Nothing ends it with its parent on this system.
func Attr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
