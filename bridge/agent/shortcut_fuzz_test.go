package agent

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
)

var anyUUID = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

// Whatever is posted in a session, client and page see the same of it whether the
// shortcut or the SDK answers.
func FuzzShortcut(f *testing.F) {
	for _, body := range []string{
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"p__t","arguments":{"n":1},"_meta":{"progressToken":7}}}`,
		`{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"p__t"}}`,
		`{"jsonrpc":"2.0","id":-0,"method":"tools/call","params":{"name":"p__t","arguments":null,"_meta":{"a":1}}}`,
		`{"jsonrpc":"2.0","id":2,"id":3,"method":"tools/call","params":{"name":"p__t"},"params":{"name":"p__none"}}`,
		`{"jsonrpc":"2.0","id":2,"METHOD":"tools/call","params":{"Name":"p__t"}} x`,
		`{"jsonrpc":"2.0","id":9007199254740993,"method":"tools/call","params":{"name":"p__t","arguments":"{\"n\":1}"}}`,
		`{"jsonrpc":"2.0","id":1.0,"method":"tools/call","params":{"name":"p__t","inputResponses":null,"requestState":null}}`,
		`{"jsonrpc":"2.0","id":"\u0061","method":"tools/call","params":{"name":"p__t","_meta":{"progressToken":"\u0062"}}}`,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		synctest.Test(t, func(t *testing.T) {
			with, without := seenOf(t, body, Options{}), seenOf(t, body, Options{NoShortcut: true})
			if with != without {
				t.Errorf("%q\nwith:    %s\nwithout: %s", body, with, without)
			}
		})
	})
}

// seenOf is what client and page see of a request.
func seenOf(t *testing.T, body []byte, opts Options) string {
	s := newFuzzSideWith(t, withSessions, opts)
	defer s.end()
	req := s.request(fuzzInSession, "", "", body)
	w := s.serve(req)
	kind, _, _ := strings.Cut(w.Header().Get("Content-Type"), ";")
	var b strings.Builder
	fmt.Fprintln(&b, w.Code)
	messages, err := messagesOf(kind, w.Body.Bytes())
	if err != nil {
		t.Errorf("%d %s %q: %v", w.Code, kind, w.Body, err)
	}
	for _, m := range messages {
		b.WriteString(inOneForm(t, m))
	}
	return anyUUID.ReplaceAllString(b.String()+s.pages[0].heard(), "id")
}

// inOneForm is a message whose members are in order, and its texts written alike.
func inOneForm(t *testing.T, m fuzzMessage) string {
	raw, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintln(v)
}
