package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// releaseFlags are those of a build that is given to others.
var releaseFlags = []string{"-trimpath", "-ldflags", "-s -w"}

// A size is that of jsbridge's binary as it is built by some command.
type size struct {
	built string // by which command
	bytes int64
}

// measureSizes gives the size of the binary that is measured and, if wanted, of one
// that is built for release.
func measureSizes(ctx context.Context, binary, dir string, release bool) ([]size, error) {
	sizes, err := sizeOf(nil, "go build", binary)
	if err != nil || !release {
		return sizes, err
	}
	released := filepath.Join(dir, "jsbridge-release")
	args := append([]string{"build"}, releaseFlags...)
	args = append(args, "-o", released, "jsbridge/cmd/jsbridge")
	if out, err := exec.CommandContext(ctx, "go", args...).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("building jsbridge for release: %w\n%s", err, out)
	}
	return sizeOf(sizes, `go build -trimpath -ldflags "-s -w"`, released)
}

func sizeOf(sizes []size, built, file string) ([]size, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	return append(sizes, size{built, info.Size()}), nil
}
