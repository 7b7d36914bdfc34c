package page

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
	"unsafe"

	"jsbridge/manifest"
	"jsbridge/tenant"
)

// The frames in testdata/wire are shared with web/test: what a page sends must
// be understood here, and what is sent from here must be one of them.

func wireFrames(t *testing.T, side string) map[string][]byte {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("testdata", "wire", side+"-*.json"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no frames of %s: %v", side, err)
	}
	frames := make(map[string][]byte)
	for _, p := range paths {
		b, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		frames[strings.TrimSuffix(strings.TrimPrefix(filepath.Base(p), side+"-"), ".json")] = b
	}
	return frames
}

func TestPageFramesAreUnderstood(t *testing.T) {
	for name, data := range wireFrames(t, "page") {
		f, err := decodeFrame(data)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		typ, _, _ := strings.Cut(name, "-")
		if f.typ != typ {
			t.Errorf("%s: type %q", name, f.typ)
		}
		switch typ {
		case "call_result":
			_, a, err := f.answer()
			_, failed := f.fields["error"]
			if err != nil || failed != (a.Err != nil) || (a.Result != nil) != (f.fields["result"] != nil) {
				t.Errorf("%s: %+v, %v", name, a, err)
			}
		case "progress":
			_, _, err = f.progress()
		case "log":
			_, _, err = f.log()
		case "register_tools":
			_, err = manifest.Parse(data, manifest.Limits{})
		case "ask":
			_, _, _, err = f.ask()
		case "resource_updated":
			err = f.text("uri", new(string))
		case "alive", "leave_channel", "rename_connection":
		default:
			t.Errorf("%s: nothing here handles it", name)
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestServerFramesAreThose(t *testing.T) {
	frames := wireFrames(t, "server")
	same := func(name string, sent any) {
		t.Helper()
		b, ok := sent.([]byte)
		if !ok {
			var err error
			if b, err = json.Marshal(sent); err != nil {
				t.Fatal(err)
			}
		}
		var got, want any
		if json.Unmarshal(b, &got) != nil || json.Unmarshal(frames[name], &want) != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: sent %s, want %s", name, b, frames[name])
		}
	}
	// Each is decoded into what is sent here and encoded again: a field that is
	// named otherwise, or missing, shows.
	for name, into := range map[string]any{
		"welcome": &welcomeMsg{}, "welcome-pending": &welcomeMsg{}, "welcome-channel": &welcomeMsg{}, "approved": &approvedMsg{}, "init": &initMsg{}, "registered": &registeredMsg{}, "registered-problems": &registeredMsg{},
		"cancel": &cancelMsg{}, "identify": &identifyMsg{}, "identify-label": &identifyMsg{}, "probe": &probeMsg{}, "registered-offerings": &registeredMsg{},
		"answer": &answerMsg{}, "answer-error": &answerMsg{}, "move_channel": &moveMsg{}, "subscribe": &watchMsg{}, "unsubscribe": &watchMsg{}, "error": &errorMsg{}, "error-untyped": &errorMsg{},
	} {
		if err := json.Unmarshal(frames[name], into); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		same(name, into)
	}
	for name, v1 := range map[string]bool{
		"call": true, "call-older": false, "call-retry": true, "get_prompt": true, "get_prompt-retry": true, "read_resource": true, "read_resource-template": true,
		"complete-prompt": true, "complete-resource": true,
	} {
		var call struct {
			Type           tenant.Method
			ID, Name       string
			Args           json.RawMessage
			TimeoutMs      int64
			Progress       bool
			Agent          tenant.Agent
			InputResponses json.RawMessage
			RequestState   string
		}
		if err := json.Unmarshal(frames[name], &call); err != nil {
			t.Fatal(err)
		}
		if call.Type != tenant.RunTool { // its own fields are all that is not common to the four
			var fields map[string]json.RawMessage
			if err := json.Unmarshal(frames[name], &fields); err != nil {
				t.Fatal(err)
			}
			for _, common := range []string{"type", "id", "timeoutMs", "progress", "agent", "inputResponses", "requestState"} {
				delete(fields, common)
			}
			call.Args, _ = json.Marshal(fields)
		}
		same(name, encodeCall(tenant.CallFrame{ID: call.ID, Method: call.Type, Tool: call.Name, Args: call.Args, Timeout: time.Duration(call.TimeoutMs) * time.Millisecond,
			Progress: call.Progress, Agent: call.Agent, Retry: tenant.Retry{Responses: call.InputResponses, State: call.RequestState}}, v1))
	}
}

func FuzzDecodeFrame(f *testing.F) {
	for _, side := range []string{"page", "server"} {
		paths, _ := filepath.Glob(filepath.Join("testdata", "wire", side+"-*.json"))
		for _, p := range paths {
			if b, err := os.ReadFile(p); err == nil {
				f.Add(b)
			}
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		fr, err := decodeFrame(data)
		if err == nil && (fr.typ == "" && !strings.Contains(string(data), `""`) || fr.fields == nil) {
			t.Errorf("accepted %q as %+v", data, fr)
		}
		if fr.fields != nil {
			_, _, _ = fr.answer()
			_, p, err := fr.progress()
			if err == nil && p.Progress != p.Progress {
				t.Error("progress is no number")
			}
			_, _, _ = fr.log()
			_, _, _, _ = fr.ask()
		}
	})
}

// What nests too deep could not be put into an MCP answer, and its caller would wait
// for nothing.
func TestDeepValuesAreRefused(t *testing.T) {
	deep := strings.Repeat("[", 2000) + strings.Repeat("]", 2000)
	for typ, members := range map[string]string{
		"call_result": `"id":"1","result":` + deep,
		"log":         `"id":"1","level":"info","data":` + deep,
		"ask":         `"id":"q","callId":"1","kind":"elicit","params":` + deep,
	} {
		f, err := decodeFrame([]byte(`{"type":"` + typ + `",` + members + `}`))
		if err != nil {
			t.Fatal(err)
		}
		switch typ {
		case "call_result":
			_, _, err = f.answer()
		case "log":
			_, _, err = f.log()
		case "ask":
			_, _, _, err = f.ask()
		}
		if err == nil || !strings.Contains(err.Error(), "deeper") {
			t.Errorf("%s: %v", typ, err)
		}
	}
}

// What is kept of a frame, such as a result in the log of calls, must not keep all of a
// large one.
func TestSmallFieldsOfLargeFramesAreTheirOwn(t *testing.T) {
	data := []byte(`{"type":"call_result","id":"1","result":{"a":1},"more":"` + strings.Repeat("x", 10<<10) + `"}`)
	f, err := decodeFrame(data)
	if err != nil {
		t.Fatal(err)
	}
	_, a, err := f.answer()
	if err != nil || string(a.Result) != `{"a":1}` {
		t.Fatalf("%s, %v", a.Result, err)
	}
	at, begin := uintptr(unsafe.Pointer(&a.Result[0])), uintptr(unsafe.Pointer(&data[0]))
	if at >= begin && at < begin+uintptr(len(data)) {
		t.Error("the result is part of the frame")
	}
}
