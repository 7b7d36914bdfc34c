//go:build !unix

package main

import (
	"errors"
	"syscall"
)

// There are none here. The package is built for its checks only.
const (
	sigStop = syscall.SIGKILL
	sigGoOn = syscall.SIGKILL
)

func kill(int, syscall.Signal) error { return errors.ErrUnsupported }
