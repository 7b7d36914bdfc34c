// Package state keeps what must outlive the process: the origins whose pages
// may connect by a name of their own, and the tenants of named workspaces. It is
// one JSON file, which a running server and "jsbridge allow" may change at the
// same time:
//
//	{"version": 1, "origins": [{"origin": "https://app.example", "at": "2026-01-02T15:04:05Z"}],
//	 "workspaces": [{"key": "my-project", "tenant": "<uuid>", "at": "2026-01-02"}]}
//
// A change takes the lock beside the file, reads the file again, and replaces
// it by a renamed one, so that no process loses another's change and a reader
// sees the file before or after a change, never in between. Members that this
// version does not know are kept.
package state

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// MaxOrigins is how many origins may be allowed at once.
	MaxOrigins = 1000
	// MaxFile is the largest state file, in bytes.
	MaxFile = 1 << 20

	// lockWait bounds how long a change waits for another process's: one takes
	// milliseconds, but a process may be stopped in the middle of it.
	lockWait = 5 * time.Second
	// retryWrite is how often a server tries again to write what it could not.
	retryWrite = time.Minute
)

// An Origin is one whose pages a human let in.
type Origin struct {
	// Origin as browsers send it, such as https://app.example.
	Origin string
	// At is when it was allowed, in UTC; zero when the file does not say.
	At time.Time
}

// File is the state file of one process. Its methods may be called at the same
// time.
type File struct {
	path     string // "" keeps all in memory
	log      *slog.Logger
	lockWait time.Duration

	// writing is held through a whole change or poll, so also while waiting for
	// the file system. It is locked before mu.
	writing sync.Mutex
	seen    fs.FileInfo // the file that was read or written last; nil: there was none
	news    bool        // a change of ours met one of another process, of which Watch has not told yet
	missing bool        // the last look did not find it
	warned  string      // the trouble that was logged last and lasts; "": none
	// unwritten are workspaces that could not be written, which is tried again at retry.
	unwritten []workspace
	retry     time.Time

	mu      sync.RWMutex
	current contents
}

// DefaultPath is where the state file is when nobody says otherwise:
// jsbridge/state.json in the user's configuration folder. It fails when the
// environment names no such folder.
func DefaultPath() (string, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("no configuration folder for the state file: %w", err)
	}
	return filepath.Join(dir, "jsbridge", "state.json"), nil
}

// Open reads the state file. One that does not exist is empty, and made by the
// first change. A damaged one is renamed to <path>.damaged-<time>, with one
// warning in the log, and counts as empty. With path "" nothing outlives the
// process. A nil log drops warnings. Open fails when the file can't be read or
// is no regular file.
func Open(path string, log *slog.Logger) (*File, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	f := &File{path: path, log: log, lockWait: lockWait}
	if path == "" {
		return f, nil
	}
	c, seen, err := load(path)
	if errors.Is(err, errDamaged) {
		c, seen, err = f.openDamaged(seen, err)
	}
	if err != nil {
		return nil, fmt.Errorf("the state file can't be read: %w", err)
	}
	if c.problem != "" { // else what openDamaged said may last
		f.warn(c.problem, "")
	}
	f.current, f.seen = c, seen
	return f, nil
}

// openDamaged sets the file aside, unless another process did so while we
// waited for the lock.
func (f *File) openDamaged(seen fs.FileInfo, why error) (contents, fs.FileInfo, error) {
	path, unlock, err := f.lock()
	if err != nil {
		f.warn(why.Error(), fmt.Sprintf(", and it can't be set aside: %v", err))
		return contents{}, seen, nil
	}
	defer unlock()
	c, seen, err := load(path)
	if !errors.Is(err, errDamaged) {
		return c, seen, err
	}
	if err := f.setAside(path, err); err != nil {
		f.warn(why.Error(), fmt.Sprintf(", and it can't be set aside: %v", err))
		return contents{}, seen, nil
	}
	return contents{}, nil, nil
}

// Origins gives the allowed origins, sorted. The caller owns the slice.
func (f *File) Origins() []Origin {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return slices.Clone(f.current.origins)
}

// Allows tells whether pages of an origin may connect by a name of their own.
// The origin is compared as browsers send it (see ParseOrigin).
func (f *File) Allows(origin string) bool {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.current.allows(origin)
}

// Allow lets an origin's pages in from now on. It tells whether that is new.
// Any form that ParseOrigin takes is fine. When Allow fails, nothing has changed.
func (f *File) Allow(origin string) (added bool, err error) {
	origin, err = ParseOrigin(origin)
	if err != nil {
		return false, err
	}
	return f.change(func(c contents) (contents, bool, error) { return c.with(origin, time.Now()) })
}

// Remove takes an origin back. It tells whether it was allowed. When Remove
// fails, nothing has changed.
func (f *File) Remove(origin string) (removed bool, err error) {
	origin, err = ParseOrigin(origin)
	if err != nil {
		return false, err
	}
	return f.change(func(c contents) (contents, bool, error) {
		next, removed := c.without(origin)
		return next, removed, nil
	})
}

// change edits what the file holds now, which may be more than this process
// has seen.
func (f *File) change(edit func(contents) (next contents, changed bool, err error)) (bool, error) {
	f.writing.Lock()
	defer f.writing.Unlock()
	if f.path == "" {
		next, changed, err := edit(f.current)
		if err != nil {
			return false, err
		}
		f.remember(next)
		return changed, nil
	}
	changed, err := f.changeFile(edit)
	if err != nil {
		return false, fmt.Errorf("the state file %s was not changed: %w", f.path, err)
	}
	return changed, nil
}

// changeFile needs f.writing to be held.
func (f *File) changeFile(edit func(contents) (contents, bool, error)) (bool, error) {
	path, unlock, err := f.lock()
	if err != nil {
		return false, err
	}
	defer unlock()
	c, seen, err := load(path)
	damaged := errors.Is(err, errDamaged)
	if damaged {
		if aside := f.setAside(path, err); aside != nil {
			return false, fmt.Errorf("%w, and it can't be set aside: %w", err, aside)
		}
		c = f.current // the best there is: nobody took back what we have read before
	} else if err != nil {
		return false, err
	}
	next, changed, err := edit(c.withUnwritten(f.unwritten))
	if err != nil {
		return false, err
	}
	if changed || damaged {
		if seen, err = write(path, next); err != nil {
			return false, err
		}
		f.unwritten = nil
	}
	f.news = f.news || !c.sameOrigins(f.current)
	f.seen = seen
	f.remember(next)
	return changed, nil
}

func (f *File) remember(c contents) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.current = c
}

// warn logs a trouble, and what follows from it, unless it is the
// last one still; "" is that there is none.
func (f *File) warn(trouble, more string) {
	if trouble != "" && trouble != f.warned {
		f.log.Warn(trouble+more, "path", f.path)
	}
	f.warned = trouble
}

// allows needs origins to be sorted.
func (c contents) allows(origin string) bool {
	_, found := slices.BinarySearchFunc(c.origins, origin, func(o Origin, s string) int { return strings.Compare(o.Origin, s) })
	return found
}
