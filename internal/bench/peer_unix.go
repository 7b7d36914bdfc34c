//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// group gives the command a process group of its own, which ends as a whole: a
// launcher such as npx is not the server itself.
func group(cmd *exec.Cmd) (kill func()) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	return func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) } // who is left
}
