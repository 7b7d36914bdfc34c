package tenant

import "time"

// A process that is stopped, or whose machine sleeps or is swamped, finds all its
// timers over when it goes on, and what its pages said meanwhile still unread. A
// limit that is noticed so late has not been kept by anybody: it is given catchUp
// once more, in which what lies there is read.
const (
	lateAfter = 500 * time.Millisecond
	catchUp   = time.Second
)

// isLate tells that what was due then is noticed only now.
func isLate(due time.Time) bool { return time.Since(due) >= lateAfter }

// A limit is a timer that notices when it fires late. Use [newLimit].
type limit struct {
	*time.Timer
	due time.Time
}

func newLimit(d time.Duration) *limit { return &limit{time.NewTimer(d), time.Now().Add(d)} }

func (l *limit) reset(d time.Duration) {
	l.due = time.Now().Add(d)
	l.Reset(d)
}

// late is to be asked once the timer has fired. If it did so late, it will again
// after catchUp.
func (l *limit) late() bool {
	late := isLate(l.due)
	if late {
		l.reset(catchUp)
	}
	return late
}
