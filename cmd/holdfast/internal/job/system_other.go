//go:build unix && !linux

package job

import (
	"errors"
	"syscall"
	"time"
)

// onlyZombies relies on the error of kill(2) for a group of zombies on the BSDs.
func onlyZombies(group int) bool { return errors.Is(syscall.Kill(-group, 0), syscall.EPERM) }

// Reap does nothing: this program is never the first process here.
func (*Job) Reap(*Guard) {}

// attributes cannot make a process die with its parent here.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// A Guard does not exist here, so a *Guard is always nil and does nothing.
type Guard struct{}

// BeGuard does nothing.
func BeGuard() {}

// StartGuard returns no guard.
func StartGuard(string) (*Guard, error) { return nil, nil }

// Watch does nothing.
func (*Guard) Watch(*Job, time.Time) {}

// Ended returns nil.
func (*Guard) Ended() <-chan struct{} { return nil }

// Failed returns nil.
func (*Guard) Failed() error { return nil }

// Again returns nil.
func (g *Guard) Again(*Job) (*Guard, error) { return g, nil }

// Dismiss does nothing.
func (*Guard) Dismiss() {}
