package main

import (
	"fmt"
	"io"
	"os"
	"os/signal"
)

const rolePage = "page"

// play is what this program does as one of the other processes. It returns the
// exit code.
func play(role string, args []string) int {
	// Ctrl-C reaches all processes of a terminal. The one that started this one
	// ends it, so that no half of a run is mistaken for a failure.
	signal.Ignore(os.Interrupt)
	var err error
	switch {
	case role == rolePage && len(args) == 4:
		err = playPage(args[0], args[1], args[2], args[3], os.Stdin)
	case role == floor && len(args) == 1:
		go endWithInput()
		err = serveFloor(os.Stdout, args[0])
	case role == bare && len(args) == 1:
		go endWithInput()
		err = serveBare(os.Stdout, args[0])
	case role == roleList && len(args) == 1:
		go endWithInput()
		err = serveList(os.Stdout, args[0])
	default:
		err = fmt.Errorf("%s=%q with the arguments %q is no role", roleVariable, role, args)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// endWithInput ends this process when the one that started it is gone, however
// it ended.
func endWithInput() {
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}
