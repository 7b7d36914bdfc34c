package page

import (
	"errors"

	"github.com/coder/websocket"

	"jsbridge/tenant"
)

// Close codes of the page protocol, beside those of RFC 6455.
const (
	codeUnknownTenant websocket.StatusCode = 4404 // never retried
	codeTooSlow       websocket.StatusCode = 4408
	codeReplaced      websocket.StatusCode = 4409 // never retried
	codePageHide      websocket.StatusCode = 4000 // sent by the page
)

// A closing is why this side ends a socket.
type closing struct {
	code   websocket.StatusCode
	reason string // at most 123 bytes, RFC 6455 section 5.5
}

func closingFor(r tenant.Reason) closing {
	switch r {
	case tenant.Replaced:
		return closing{codeReplaced, "replaced by a newer connection of this tab"}
	case tenant.TenantEnded:
		return closing{codeUnknownTenant, "the MCP session of this snippet has ended; ask your agent for a new one"}
	case tenant.Refused:
		return closing{websocket.StatusPolicyViolation, "this origin was refused, or its approval was taken back"}
	case tenant.NotApproved:
		return closing{websocket.StatusPolicyViolation, "nobody approved this origin within ten minutes"}
	case tenant.Unused:
		return closing{websocket.StatusTryAgainLater, "nobody used this channel for long"}
	case tenant.Disconnected:
		return closing{websocket.StatusNormalClosure, "disconnected by the user, in jsbridge's dashboard"}
	default:
		return closing{websocket.StatusGoingAway, "jsbridge is stopping"}
	}
}

// refusalOf tells a page why it may not join.
func refusalOf(err error, connect tenant.Connect) closing {
	switch {
	case errors.Is(err, tenant.ErrStopping):
		return closingFor(tenant.Stopping)
	case !errors.Is(err, tenant.ErrNoTenant):
		return closing{websocket.StatusTryAgainLater, err.Error()}
	case connect.Session != "":
		return closing{codeUnknownTenant, "this snippet names no session that is here; ask your agent for a new one"}
	}
	return closing{codeUnknownTenant, `the connect string is empty: use "name" or "channel:name" of letters, digits, - and _`}
}

// mayReturn tells which ends of a socket keep the page's place for the grace.
func mayReturn(code websocket.StatusCode) bool {
	switch code {
	case websocket.StatusNormalClosure, websocket.StatusUnsupportedData, websocket.StatusPolicyViolation, codeUnknownTenant, codeReplaced:
		return false
	}
	return true
}
