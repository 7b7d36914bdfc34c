package dashboard

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// maxBody bounds a request's body, in bytes.
const maxBody = 1 << 20

// WrongToken is the type of the problem that a page of an earlier start of the
// server meets.
const WrongToken = "about:blank#token"

// read decodes a request's body, one JSON object. It answers itself when it can't.
func read(w http.ResponseWriter, r *http.Request, into any) bool {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		Problem(w, http.StatusRequestEntityTooLarge, fmt.Sprintf("the body is larger than %d bytes", tooLarge.Limit))
	case err != nil:
		Problem(w, http.StatusBadRequest, fmt.Sprintf("the body can't be read: %v", err))
	default:
		// A null would pass for an object.
		var object map[string]json.RawMessage
		if err = json.Unmarshal(body, &object); err == nil && object == nil {
			err = errors.New("it is no object")
		}
		if err == nil {
			err = json.Unmarshal(body, into)
		}
		if err == nil {
			return true
		}
		Problem(w, http.StatusBadRequest, fmt.Sprintf("the body must be a JSON object as docs/dashboard-api.md has it: %v", err))
	}
	return false
}

func reply(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		Problem(w, http.StatusInternalServerError, err.Error())
		return
	}
	w.Header().Set("Content-Type", "application/json")
	write(w, status, body)
}

// Problem answers with a JSON problem (RFC 9457).
func Problem(w http.ResponseWriter, status int, detail string) {
	TypedProblem(w, "about:blank", status, detail)
}

// TypedProblem answers with a JSON problem of a type that programs look for.
func TypedProblem(w http.ResponseWriter, kind string, status int, detail string) {
	p := map[string]any{"title": http.StatusText(status), "status": status, "detail": detail}
	if kind != "about:blank" { // which is what no type means
		p["type"] = kind
	}
	body, _ := json.Marshal(p) // texts and a number
	w.Header().Set("Content-Type", "application/problem+json")
	write(w, status, body)
}

func write(w http.ResponseWriter, status int, body []byte) {
	secure(w)
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n'))
}

func done(w http.ResponseWriter) {
	secure(w)
	w.WriteHeader(http.StatusNoContent)
}

// secure keeps what the API says out of caches, and out of other sites' pages.
func secure(w http.ResponseWriter) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Cross-Origin-Resource-Policy", "same-origin")
}
