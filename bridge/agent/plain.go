package agent

import (
	"bytes"
	"cmp"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/segmentio/encoding/json"

	"jsbridge/manifest"
)

// maxBodyDepth is how deep a body may nest for the shortcut.
const maxBodyDepth = 1000

// A plainCall is a tools/call with nothing unusual about it.
type plainCall struct {
	id    json.RawMessage // as it was sent
	name  string
	args  json.RawMessage
	token json.RawMessage // for progress, nil for none
}

// readPlain reads the body. It can be read again.
func (h *Handler) readPlain(r *http.Request) (p plainCall, ok bool) {
	if r.ContentLength <= 0 || r.ContentLength > h.opts.MaxBody {
		return p, false
	}
	body := &readBody{ReadCloser: r.Body}
	body.text, body.err = readAll(r.Body, r.ContentLength)
	r.Body = body
	if body.err != nil {
		return p, false
	}
	if p, ok = parsePlain(body.text); !ok {
		return p, false
	}
	_, own := h.builtins[p.name]
	return p, !own
}

// trusted is how many bytes there is room for because a client says that it sends them.
const trusted = 256 << 10

// readAll reads what should be so many bytes, and up to the end.
func readAll(r io.Reader, size int64) ([]byte, error) {
	b := make([]byte, 0, min(size, trusted)+1) // one more, so that the end is met without growing
	for {
		n, err := r.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		switch {
		case err == io.EOF:
			return b, nil
		case err != nil:
			return b, err
		case len(b) == cap(b):
			b = slices.Grow(b, 1)
		}
	}
}

// readBody is a body that was read, to be read again.
type readBody struct {
	io.ReadCloser
	text []byte
	err  error // of the reading, nil for the end
}

func (b *readBody) Read(p []byte) (int, error) {
	if len(b.text) == 0 {
		return 0, cmp.Or(b.err, io.EOF)
	}
	n := copy(p, b.text)
	b.text = b.text[n:]
	return n, nil
}

// parsePlain reads a body with the SDK's own decoder, so that both see the same.
func parsePlain(body []byte) (p plainCall, ok bool) {
	if manifest.DeeperThan(body, maxBodyDepth) {
		return p, false
	}
	var msg struct {
		JSONRPC string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Method  string          `json:"method"`
		Params  json.RawMessage `json:"params"`

		inParams struct {
			Name         string          `json:"name"`
			Arguments    json.RawMessage `json:"arguments"`
			Meta         json.RawMessage `json:"_meta"`
			Responses    json.RawMessage `json:"inputResponses"`
			RequestState json.RawMessage `json:"requestState"`
		}
	}
	if !parseAs(body, &msg) || msg.JSONRPC != "2.0" || msg.Method != "tools/call" || !isPlainID(msg.ID) || len(msg.Params) == 0 {
		return p, false
	}
	in := &msg.inParams
	if !parseAs(msg.Params, in) || in.Responses != nil || in.RequestState != nil {
		return p, false
	}
	token, ok := plainToken(in.Meta)
	name := strings.Clone(in.Name) // it is kept, with the call, for the dashboard: not so the body
	return plainCall{msg.ID, name, in.Arguments, token}, ok && name != ""
}

// parseAs decodes like the SDK; what it gives is part of the text.
func parseAs(text []byte, into any) bool {
	rest, err := json.Parse(text, into, json.DontMatchCaseInsensitiveStructFields|json.ZeroCopy)
	return err == nil && len(rest) == 0
}

// plainToken is the progress token of a request whose _meta holds nothing else that
// the SDK looks at.
func plainToken(meta json.RawMessage) (json.RawMessage, bool) {
	if meta == nil {
		return nil, true
	}
	var known struct {
		Token json.RawMessage `json:"progressToken"`
	}
	if meta[0] != '{' || bytes.Contains(meta, []byte("modelcontextprotocol")) || bytes.IndexByte(meta, '\\') >= 0 {
		return nil, false
	}
	ok := parseAs(meta, &known)
	return known.Token, ok && (known.Token == nil || isPlainID(known.Token))
}

// isPlainID takes whole numbers and texts that are written in one way only.
func isPlainID(id json.RawMessage) bool {
	if len(id) == 0 || len(id) > 128 {
		return false
	}
	if id[0] == '"' {
		return bytes.IndexByte(id, '\\') < 0 && utf8.Valid(id)
	}
	n, err := strconv.ParseInt(string(id), 10, 53)
	return err == nil && strconv.FormatInt(n, 10) == string(id)
}
