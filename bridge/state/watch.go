package state

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"time"
)

// DefaultWatch is how often a server looks for changes of other processes.
const DefaultWatch = 500 * time.Millisecond

// settled is how old a file must be before its size and time tell that it is
// still the same one: file systems count time in steps, of up to two seconds.
const settled = 3 * time.Second

// Watch looks for changes that other processes made, and calls changed after
// each one that Allows and Origins show, until the context ends. An every of 0
// or less is DefaultWatch. Changes made through this File are not reported. A
// file that is damaged while it is watched changes nothing until it is whole
// again, since it may be open in an editor; one that is gone for two looks allows nothing.
// One Watch at a time.
func (f *File) Watch(ctx context.Context, every time.Duration, changed func()) {
	if f.path == "" {
		<-ctx.Done()
		return
	}
	if every <= 0 {
		every = DefaultWatch
	}
	ticks := time.NewTicker(every)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
			if f.poll() {
				changed()
			}
		}
	}
}

// poll reads the file if it seems to be another one than before, and tells
// whether another process changed something.
func (f *File) poll() bool {
	if !f.writing.TryLock() {
		return false // a change of ours may wait long for the lock; it reads the file, too
	}
	defer f.writing.Unlock()
	f.retryWriteLocked()
	news := f.news
	f.news = false
	info, err := os.Stat(f.path)
	if sameFile(f.seen, info, err) {
		f.missing = false
		return news
	}
	// Editors and backup tools take a file away for a moment.
	if missing := errors.Is(err, fs.ErrNotExist); missing && !f.missing {
		f.missing = true
		return news
	}
	f.missing = false
	c, seen, err := load(f.path)
	f.seen = seen
	if err != nil {
		f.warn(err.Error(), "; what it held before stays in force")
		return news
	}
	f.warn(c.problem, "")
	news = news || !c.sameOrigins(f.current)
	f.remember(c.withUnwritten(f.unwritten))
	return news
}

// retryWriteLocked tries to write what could not be written, now and then. f.writing
// must be held.
func (f *File) retryWriteLocked() {
	if len(f.unwritten) == 0 || time.Now().Before(f.retry) {
		return
	}
	f.retry = time.Now().Add(retryWrite)
	_, err := f.changeFile(func(c contents) (contents, bool, error) { return c, true, nil })
	if err == nil { // else the log has it from the first time
		f.log.Info("the state file was written again", "path", f.path)
	}
}

// sameFile is true when there is surely nothing new to read.
func sameFile(seen, info fs.FileInfo, err error) bool {
	if seen == nil || err != nil {
		return seen == nil && errors.Is(err, fs.ErrNotExist)
	}
	return os.SameFile(seen, info) && seen.Size() == info.Size() && seen.ModTime().Equal(info.ModTime()) &&
		time.Since(info.ModTime()) > settled
}
