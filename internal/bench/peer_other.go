//go:build !unix

package main

import "os/exec"

// group does nothing here: the command's own process ends, and no other.
func group(*exec.Cmd) (kill func()) { return func() {} }
