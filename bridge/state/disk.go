package state

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
)

// lockRetry is how often a held lock is tried again.
const lockRetry = 2 * time.Millisecond

// load reads the file. It gives the zero contents and no FileInfo when there is
// none, and errDamaged with the FileInfo when it can't be used.
func load(path string) (contents, fs.FileInfo, error) {
	// Before it is opened: opening a pipe waits for its other end.
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return contents{}, nil, fmt.Errorf("%s is no regular file", path)
	}
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return contents{}, nil, nil
	}
	if err != nil {
		return contents{}, nil, err
	}
	defer file.Close()
	// Of the open file: another may have taken its name by the time it is read.
	info, err := file.Stat()
	if err != nil {
		return contents{}, nil, err
	}
	b, err := io.ReadAll(io.LimitReader(file, MaxFile+1))
	if err != nil {
		return contents{}, nil, err
	}
	c, err := decode(b)
	return c, info, err
}

// lock keeps other processes from changing the file. It makes the file's folder
// if need be, and gives the file behind symbolic links: that one is replaced,
// and two processes that reach it by different links must share one lock.
func (f *File) lock() (path string, unlock func(), err error) {
	path, err = target(f.path)
	if err != nil {
		return "", nil, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", nil, err
	}
	l := flock.New(path + ".lock")
	ctx, cancel := context.WithTimeout(context.Background(), f.lockWait)
	defer cancel()
	_, err = l.TryLockContext(ctx, lockRetry)
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("another process has held %s for %v; end it or try again", l.Path(), f.lockWait)
	}
	if err != nil {
		return "", nil, err
	}
	// The lock file stays: a process that waits for it holds it open, and would
	// share its lock with nobody if another file took its name.
	return path, func() { _ = l.Unlock() }, nil
}

// target follows symbolic links, also to a file that does not exist yet.
func target(path string) (string, error) {
	for range 40 { // as many as Linux follows
		link, err := os.Readlink(path)
		if err != nil {
			return path, nil // no link, or nothing: using it tells
		}
		if !filepath.IsAbs(link) {
			dir, err := filepath.EvalSymlinks(filepath.Dir(path))
			if err != nil {
				return "", err
			}
			link = filepath.Join(dir, link)
		}
		path = link
	}
	return "", fmt.Errorf("%s is a circle of symbolic links", path)
}

// write replaces the file. The lock must be held, which is why the new file can
// have a fixed name: one that is there was left by a process that was killed.
func write(path string, c contents) (info fs.FileInfo, err error) {
	b, err := c.encode()
	if err != nil {
		return nil, err
	}
	temp := path + ".tmp"
	if err := os.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	file, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(temp)
		}
	}()
	_, err = file.Write(b)
	// Synced before it is renamed: after a power cut the name may else lead to
	// an empty file.
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return nil, err
	}
	if err := os.Rename(temp, path); err != nil {
		return nil, err
	}
	syncFolder(filepath.Dir(path))
	info, _ = os.Stat(path) // without one the next poll reads the file
	return info, nil
}

// syncFolder makes a rename outlast a power cut, where the system can (Windows
// and some network file systems can't). The file is replaced by now, so that a
// failure would be no reason to say it is not.
func syncFolder(dir string) {
	if d, err := os.Open(dir); err == nil {
		_ = d.Sync()
		_ = d.Close()
	}
}

// setAside renames a damaged file, so that people can mend it. The lock must be
// held.
func (f *File) setAside(path string, why error) error {
	aside := path + ".damaged-" + time.Now().UTC().Format("20060102T150405.000000000Z")
	if err := os.Rename(path, aside); err != nil {
		return err
	}
	f.log.Warn(why.Error()+"; it was set aside", "path", f.path, "now", aside)
	return nil
}
