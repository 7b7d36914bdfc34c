//go:build unix

package main

import "syscall"

const (
	sigStop = syscall.SIGSTOP
	sigGoOn = syscall.SIGCONT
)

func kill(pid int, sig syscall.Signal) error { return syscall.Kill(pid, sig) }
