package tenant

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"jsbridge/manifest"
)

// witness is an observer that writes down what it is told.
type witness struct {
	listens bool

	mu      sync.Mutex
	told    []string
	cancels []func()
}

func (w *witness) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.told = append(w.told, fmt.Sprintf(format, args...))
}

func (w *witness) Call(_ context.Context, b Beginning) (Trace, bool) {
	w.note("call %s %s of %s by %s in %s: %s", b.Method, b.Name, b.Label, b.Agent.Name, b.Session, b.Args)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cancels = append(w.cancels, b.Cancel)
	return w, w.listens
}

func (w *witness) Sent(id string) { w.note("sent %s", id) }

func (w *witness) Progress(p Progress) { w.note("progress %g %s", p.Progress, p.Message) }

func (w *witness) End(a Answer, err error) {
	switch {
	case err != nil:
		w.note("end %v", err)
	case a.Err != nil:
		w.note("thrown %s", a.Err.Message)
	default:
		w.note("end %s", a.Result)
	}
}

func (w *witness) Tool(_ context.Context, c ToolChange) {
	w.note("tool %s of %s removed %v by %s", c.Entry.Name, c.Label, c.Removed, c.Agent.Name)
}

func (w *witness) cancel(i int) {
	w.mu.Lock()
	cancel := w.cancels[i]
	w.mu.Unlock()
	cancel()
}

func (w *witness) want(t *testing.T, want ...string) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if !reflect.DeepEqual(w.told, want) {
		t.Errorf("the observer was told\n%s\nwant\n%s", strings.Join(w.told, "\n"), strings.Join(want, "\n"))
	}
	w.told = nil
}

func TestObserverHearsOfCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &witness{listens: true}
		w := newWorld(t, Options{Observer: o})
		defer w.Close()
		f := w.join("", "Page", "add")
		f.on = func(c CallFrame) {
			if !c.Progress {
				t.Error("the page was not asked for progress")
			}
			_ = f.link.Say(c.ID, Event{Progress: &Progress{Progress: 1, Message: "one"}})
			synctest.Wait()
			_ = f.link.Answer(c.ID, Answer{Result: json.RawMessage(`7`)})
		}
		e, _ := w.Snapshot().Find("page__add")
		heard := 0
		call := Call{Args: json.RawMessage(`{"a":1}`), Agent: Agent{Name: "agent"}, Session: "s1", Shown: "page2__add", OnEvent: func(Event) { heard++ }}
		if a, err := e.Page.Call(t.Context(), e.Tool, call); string(a.Result) != "7" || err != nil || heard != 1 {
			t.Errorf("%s, %v, %d events", a.Result, err, heard)
		}
		o.want(t, `call call page2__add of Page by agent in s1: {"a":1}`, "sent "+f.last(), "progress 1 one", "end 7")

		f.on = func(c CallFrame) { _ = f.link.Answer(c.ID, Answer{Err: &PageError{Message: "oops"}}) }
		if a, _ := e.Page.Call(t.Context(), e.Tool, Call{Args: json.RawMessage(`{}`)}); a.Err == nil {
			t.Error("no error")
		}
		o.want(t, `call call add of Page by  in : {}`, "sent "+f.last(), "thrown oops")

		f.link.Leave()
		_, err := e.Page.Call(t.Context(), e.Tool, Call{Args: json.RawMessage(`{}`)})
		o.want(t, `call call add of Page by  in : {}`, fmt.Sprintf("end %v", err))
	})
}

// Nobody is asked for what nobody wants.
func TestNoProgressUnlessSomebodyListens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{Observer: &witness{}})
		defer w.Close()
		f := w.join("", "Page", "add")
		f.answering("1")
		if _, err := w.call(t.Context(), "page__add"); err != nil || f.sent()[0].Progress {
			t.Errorf("%v, progress %v", err, f.sent()[0].Progress)
		}
	})
}

func TestCancelFromOutside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &witness{}
		w := newWorld(t, Options{Observer: o})
		defer w.Close()
		f := w.join("instance-a-000000", "Page", "add")
		done := w.start(t.Context(), "page__add")
		synctest.Wait()
		o.cancel(0)
		wantKind(t, <-done, Cancelled, true)
		o.cancel(0) // once more does nothing
		if len(f.canceled) != 1 || f.canceled[0] != f.sent()[0].ID {
			t.Errorf("the page was told to end %v", f.canceled)
		}

		// One that was not sent has not run.
		f.link.Closed(Departure{MayReturn: true})
		done = w.start(t.Context(), "page__add")
		synctest.Wait()
		o.cancel(1)
		wantKind(t, <-done, Cancelled, false)

		// The caller's own cancellation stays its own.
		ctx, cancel := context.WithCancel(t.Context())
		done = w.start(ctx, "page__add")
		synctest.Wait()
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("the caller's cancellation became %v", err)
		}
	})
}

func TestObserverHearsOfAPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &witness{}
		w := newWorld(t, Options{Observer: o})
		defer w.Close()
		f := w.join("", "Page", "add")
		f.on = func(c CallFrame) { _ = f.link.Say(c.ID, Event{Progress: &Progress{}}) }
		e, _ := w.Snapshot().Find("page__add")
		func() {
			defer func() { _ = recover() }()
			_, _ = e.Page.Call(t.Context(), e.Tool, Call{Args: json.RawMessage(`{}`), OnEvent: func(Event) { panic("no") }})
		}()
		o.want(t, "call call add of Page by  in : {}", "sent "+f.last(), "progress 0 ", "end jsbridge failed, see its log")
	})
}

func TestChangesAreNoted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		allowed := false
		r := NewRegistry(Options{Allow: func(string, bool) bool { return allowed }, EmptyTimeout: time.Second})
		defer r.Close()
		taken := func(what string, want bool) {
			t.Helper()
			synctest.Wait()
			select {
			case <-r.Changes():
				if !want {
					t.Errorf("%s was noted", what)
				}
			default:
				if want {
					t.Errorf("%s was not noted", what)
				}
			}
		}
		taken("nothing", false)
		own, _ := r.Open()
		v := own.NewView(func() {})
		taken("a session", true)
		_ = v.Join("c")
		taken("joining a channel", true)
		f := &fakePage{}
		l, err := r.Join(ParseConnect("c:x"), Joining{Instance: "instance-a-000000", Origin: "https://far.test", Transport: f})
		if err != nil {
			t.Fatal(err)
		}
		f.link = l
		taken("a page that waits", true)
		_, _ = l.Register(declare(t, "", "a"))
		taken("what it declares", true)
		allowed = true
		r.Recheck()
		taken("its approval", true)
		f.answering("1")
		e, _ := v.Snapshot().Find("x__a")
		if _, err := e.Page.Call(t.Context(), e.Tool, Call{Args: json.RawMessage(`{}`)}); err != nil {
			t.Fatal(err)
		}
		taken("a call", false)
		l.suspend()
		taken("its suspension", true)
		l.Heard()
		taken("its waking", true)
		_, _ = l.Rename("y")
		taken("its new name", true)
		l.Closed(Departure{MayReturn: true})
		taken("the loss of its socket", true)
		time.Sleep(DefaultReconnectGrace)
		taken("its end", true)
		time.Sleep(time.Second)
		taken("its channel's end", true)
		v.LeaveAll()
		taken("leaving a channel", true)
		v.Close()
		taken("the session's end", true)
		taken("nothing", false)
	})
}

func TestOutlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRegistry(Options{Allow: func(origin string, _ bool) bool { return origin == local }, Bare: "app"})
		defer r.Close()
		began := time.Now()
		time.Sleep(time.Second)
		f := enter(t, r, "app", local, "", "a", "b")
		m, err := manifest.Parse([]byte(`{"tools":[{"name":"a"},{}],"prompts":[{"name":"p"}],"resources":[{"uri":"x"}],"url":"http://localhost/x","title":"T","summary":"S"}`), manifest.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.link.Register(m); err != nil {
			t.Fatal(err)
		}
		enter(t, r, "c:far", "https://far.test", "", "a")
		var got []string
		for _, tn := range r.Tenants() {
			for _, o := range tn.Outlines() {
				p, ok := r.Page(o.ID)
				if !ok || p.Outline() != o || p.Tenant() != tn || p.Info().Outline != o {
					t.Errorf("%s is not found by its id", o.Label)
				}
				got = append(got, fmt.Sprintf("%s %s %q %v %v %v %v %d/%d/%d/%d %s", o.Label, o.State, o.Channel, o.Kind == tn.Kind(), o.Bare, o.Current, o.Since.Sub(began),
					o.ToolCount, o.PromptCount, o.ResourceCount, o.ProblemCount, strings.Join([]string{o.URL, o.Title, o.Summary}, " ")))
			}
		}
		want := []string{`app ready "" true true true 1s 1/1/1/1 http://localhost/x T S`, `far pending "c" true false true 1s 1/0/0/0   `}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("outlines:\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		before := f.link.page.Outline()
		f.offer(t, `"tools":[]`)
		if after := f.link.page.Outline(); after.Rev <= before.Rev || after.ToolCount != 0 {
			t.Errorf("after another declaration: %+v", after)
		}
		if _, ok := r.Page("nobody"); ok {
			t.Error("found a page that is not there")
		}
	})
}

func TestSteering(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRegistry(Options{})
		defer r.Close()
		v := watch(t, r)
		f := enter(t, r, "c:one", local, "", "a")
		if err := v.Join("c"); err != nil {
			t.Fatal(err)
		}
		p := f.link.page
		if err := p.Rename("two"); err != nil {
			t.Fatal(err)
		}
		v.want("two__a")
		if len(f.renamed) != 1 || f.renamed[0].Prefix != "two" || len(f.renamed[0].ToolNames) != 1 {
			t.Errorf("the page was told %+v", f.renamed)
		}
		if err := p.Move(ParseConnect("other:three")); err != nil || len(f.moved) != 1 || f.moved[0].String() != "other:three" {
			t.Errorf("moved to %v, %v", f.moved, err)
		}
		for _, nowhere := range []Connect{{}, {Session: "00000000-0000-4000-8000-000000000000"}} {
			if err := p.Move(nowhere); !errors.Is(err, ErrNoTenant) {
				t.Errorf("moving to %v: %v", nowhere, err)
			}
		}
		done := make(chan error, 1)
		e, _ := v.Snapshot().Find("two__a")
		go func() {
			_, err := p.Call(t.Context(), e.Tool, Call{Args: json.RawMessage(`{}`)})
			done <- err
		}()
		synctest.Wait()
		p.Disconnect()
		wantKind(t, <-done, PageGone, true)
		v.want("")
		if f.ends() != fmt.Sprint([]Reason{Disconnected}) {
			t.Errorf("closed with %s", f.ends())
		}
		if _, ok := r.Channel("c"); ok {
			t.Error("the empty channel stays")
		}
		p.Disconnect()
		if err := p.Rename("four"); err == nil {
			t.Error("renamed a page that is gone")
		}
		if err := p.Move(ParseConnect("x")); !errors.Is(err, ErrAway) {
			t.Errorf("moving a page that is gone: %v", err)
		}
	})
}

func TestRenameWhileAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		defer w.Close()
		f := w.join("instance-a-000000", "Page", "a")
		f.link.Closed(Departure{MayReturn: true})
		if err := f.link.page.Rename("Other"); err != nil || len(f.renamed) != 0 {
			t.Errorf("%v, told %+v", err, f.renamed)
		}
		w.join("instance-a-000000", "Page", "a")
		w.wantNames("other__a")
	})
}

// scripted answers the reserved calls as a page's script does, and keeps what it
// was told.
func (f *fakePage) scripted(t *testing.T, dynamic map[string]string, seen func(CallFrame)) {
	f.on = func(c CallFrame) {
		seen(c)
		var args struct{ Name, Code, ToolName string }
		if err := json.Unmarshal(c.Args, &args); err != nil {
			t.Error(err)
		}
		switch {
		case args.ToolName == "sticky":
			_ = f.link.Answer(c.ID, Answer{Result: json.RawMessage(`"done"`)})
			return
		case c.Tool == unregisterTool:
			delete(dynamic, args.ToolName)
		case args.Code == "throw":
			_ = f.link.Answer(c.ID, Answer{Err: &PageError{Name: "SyntaxError", Message: "bad\u202e code"}})
			return
		case args.Code == "shape":
			_ = f.link.Answer(c.ID, Answer{Result: json.RawMessage(`{"content":[{"type":"text","text":"no way"}],"isError":true}`)})
			return
		case args.Name != "" && args.Code != "lost":
			dynamic[args.Name] = fmt.Sprintf(`{"name":%q,"source":"dynamic"}`, args.Name)
		}
		tools := []string{`{"name":"host"}`}
		for _, d := range dynamic {
			tools = append(tools, d)
		}
		f.offer(t, `"tools":[`+strings.Join(tools, ",")+`]`)
		_ = f.link.Answer(c.ID, Answer{Result: json.RawMessage(`"done"`)})
	}
}

func TestAddAndRemoveTools(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &witness{}
		w := newWorld(t, Options{Observer: o})
		defer w.Close()
		f := w.join("", "Page", "host")
		var args string
		f.scripted(t, map[string]string{"sticky": `{"name":"sticky","source":"dynamic"}`}, func(c CallFrame) { args = string(c.Args) })
		p := f.link.page
		code := func(name, code string) NewTool {
			n := NewTool{Name: name, Description: "d"}
			n.Origin.Kind, n.Origin.Code = "code", code
			return n
		}
		call := Call{Agent: Agent{Name: "agent"}, Name: "register", Shown: "register"}
		if said, err := p.AddTool(t.Context(), code("x", "return 1"), call); said != "done" || err != nil {
			t.Errorf("%q, %v", said, err)
		}
		if !strings.Contains(args, `"params":{}`) || strings.Contains(args, "ask") {
			t.Errorf("the page was told %s", args)
		}
		o.want(t, `call call register of Page by agent in : `+args, "sent "+f.last(), `end "done"`, "tool page__x of Page removed false by agent")
		for _, bad := range []struct {
			tool NewTool
			kind ToolErrorKind
			want string
		}{
			{code("x", "return 1"), ToolExists, "page__x"},
			{code("host", "return 1"), ToolExists, "itself declares"},
			{code("", "return 1"), BadTool, "name"},
			{code("y", ""), BadTool, "empty"},
			{NewTool{Name: "y", Description: "d"}, BadTool, "path is empty"},
			{NewTool{Name: "y", Params: json.RawMessage(`{"n":{"type":"nonsense"}}`), Origin: code("", "1").Origin}, BadTool, "nonsense"},
			{code("__unregister_tool__", "1"), BadTool, "reserved"},
			{code("y", "throw"), PageRefused, "SyntaxError: bad code"},
			{code("y", "shape"), PageRefused, "no way"},
			{code("y", "lost"), PageRefused, "does not offer"},
		} {
			_, err := p.AddTool(t.Context(), bad.tool, call)
			var te *ToolError
			if !errors.As(err, &te) || te.Kind != bad.kind || !strings.Contains(err.Error(), bad.want) {
				t.Errorf("adding %+v: %v", bad.tool, err)
			}
		}
		o.mu.Lock()
		o.told = nil
		o.mu.Unlock()
		for name, kind := range map[string]ToolErrorKind{"host": HostTool, "none": NoSuchTool, "sticky": PageRefused} {
			var te *ToolError
			if _, err := p.RemoveTool(t.Context(), name, call); !errors.As(err, &te) || te.Kind != kind {
				t.Errorf("removing %s: %v", name, err)
			}
		}
		o.mu.Lock()
		o.told = nil
		o.mu.Unlock()
		if _, err := p.RemoveTool(t.Context(), "x", call); err != nil {
			t.Error(err)
		}
		o.want(t, `call call register of Page by agent in : {"toolName":"x"}`, "sent "+f.last(), `end "done"`, "tool page__x of Page removed true by agent")
		f.link.Leave()
		_, err := p.AddTool(t.Context(), code("z", "1"), call)
		wantKind(t, err, PageGone, false)
	})
}

func TestCodePolicy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for policy, want := range map[PageCode]string{RefuseCode: "--page-code off", AskCode: ""} {
			w := newWorld(t, Options{PageCode: policy})
			f := w.join("", "Page", "host")
			var args string
			f.scripted(t, map[string]string{}, func(c CallFrame) { args = string(c.Args) })
			n := NewTool{Name: "x", Description: "d"}
			n.Origin.Kind, n.Origin.Code = "code", "1"
			_, err := f.link.page.AddTool(t.Context(), n, Call{})
			if got := fmt.Sprint(err); want != "" && !strings.Contains(got, want) || want == "" && (err != nil || !strings.Contains(args, `"ask":true`)) {
				t.Errorf("%s: %v, the page was told %s", policy, err, args)
			}
			n.Name, n.Origin.Kind, n.Origin.Path = "y", "path", "a.b"
			if _, err := f.link.page.AddTool(t.Context(), n, Call{}); err != nil || strings.Contains(args, `"ask"`) {
				t.Errorf("%s, by path: %v, %s", policy, err, args)
			}
			w.Close()
		}
	})
}
