package rig

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// Main is the main function of a program: it runs until an interrupt, or for as
// long as is given at most, and exits with 1 and the error. An error of a context
// that has ended says why it did.
func Main(name string, longest time.Duration, run func(context.Context) error) {
	if err := within(longest, run); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}

func within(longest time.Duration, run func(context.Context) error) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeoutCause(ctx, longest, fmt.Errorf("the run took longer than %s", longest))
	defer cancel()
	err := run(ctx)
	if cause := context.Cause(ctx); cause != nil && err != nil {
		return fmt.Errorf("%w (%v)", cause, err)
	}
	return err
}
