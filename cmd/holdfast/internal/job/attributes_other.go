//go:build unix && !linux

package job

import "syscall"

// attributes has no word for dying with the parent here.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
