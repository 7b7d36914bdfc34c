package tenant

import (
	"fmt"
	"time"
)

// CallErrorKind says why a call failed other than by its function.
type CallErrorKind int

const (
	// PageGone: the tab closed, navigated or lost its connection.
	PageGone CallErrorKind = iota + 1
	// PageSuspended: the tab's JavaScript does not run.
	PageSuspended
	// TimedOut: the limit passed without an answer.
	TimedOut
	// NotOffered: the page reloaded and has no such tool any more.
	NotOffered
	// TooBusy: too many calls to this page are running.
	TooBusy
	// NotSent: the page's queue would not take the call.
	NotSent
	// ServerStopping: no calls are taken any more.
	ServerStopping
	// Cancelled: a human ended the call.
	Cancelled
)

// CallError is why a call failed other than by its function. Its text is
// written for the agent: what happened, whether it may have run, what to do.
type CallError struct {
	Kind CallErrorKind
	// MayHaveRun: the function may have run, or may still.
	MayHaveRun bool
	// Page is the connection's id, and ID that under which the page was sent the
	// call, "" if it was not; for logs.
	Page, ID string

	tool  string
	page  pageName
	limit time.Duration
	most  int
	cause error
}

type pageName struct{ label, prefix string }

func (n pageName) String() string {
	if n.prefix == "" {
		return "the page"
	}
	return fmt.Sprintf("the page %q (%s)", n.label, n.prefix)
}

func (e *CallError) Error() string {
	ran := " The call did not run."
	if e.MayHaveRun {
		ran = " The call may have run: check the page's state before you repeat it."
	}
	what := "the call"
	if e.tool != "" {
		what = fmt.Sprintf("%q", e.tool)
	}
	switch e.Kind {
	case PageGone:
		return fmt.Sprintf("%s went away (closed, reloaded, navigated or lost its connection) before %s answered.%s Use describe_tools to see which pages are connected.", e.page, what, ran)
	case PageSuspended:
		return fmt.Sprintf("%s gave no sign of life for %s: its tab is frozen or suspended in the background, stopped in a debugger, or busy. Bring that tab to the front and try again.%s", e.page, seconds(e.limit), ran)
	case TimedOut:
		if !e.MayHaveRun {
			return fmt.Sprintf("%s did not come back within the limit of %s, so %s was not sent.", e.page, seconds(e.limit), what)
		}
		return fmt.Sprintf("%s in %s gave no answer within the limit of %s; its AbortSignal was fired, but it may still finish. The limit is --call-timeout, or timeoutMs of the tool.", what, e.page, seconds(e.limit))
	case NotOffered:
		return fmt.Sprintf("%s was reloaded and no longer offers %s.%s Use describe_tools to see what it offers now.", e.page, what, ran)
	case TooBusy:
		return fmt.Sprintf("%s was refused: %d calls to its page are running, which is the limit (--max-calls). Wait for some of them to end.", what, e.most)
	case NotSent:
		return fmt.Sprintf("%s could not be sent to %s: %v.%s", what, e.page, e.cause, ran)
	case Cancelled:
		return fmt.Sprintf("%s in %s was cancelled by the user, in jsbridge's dashboard.%s Ask the user before you repeat it.", what, e.page, ran)
	case ServerStopping:
		return "jsbridge is stopping and takes no more calls. The call did not run."
	}
	return "the call failed"
}

func seconds(d time.Duration) string {
	if d%time.Second == 0 || d > 10*time.Second {
		return fmt.Sprintf("%d s", int64(d.Round(time.Second)/time.Second))
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}
