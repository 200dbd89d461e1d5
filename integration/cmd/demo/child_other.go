//go:build !linux

package main

import "syscall"

// Workers end when their standard input does.
func childAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
