package tenant

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"jsbridge/manifest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakePage is a page's socket with a page behind it that a test scripts.
type fakePage struct {
	link *Link

	mu       sync.Mutex
	calls    []CallFrame
	canceled []string
	probes   int
	labels   []string
	closed   []Reason
	answered map[string]Answer // by the id of the question
	watching []string          // in order: +uri, -uri
	told     []string          // complaints
	approved []*Registration
	renamed  []Registration
	moved    []Connect
	reg      Registration
	// on, when set, handles a call in a goroutine of its own.
	on func(CallFrame)
	// alive answers probes.
	alive bool
	// full refuses calls.
	full error
}

func (f *fakePage) Call(c CallFrame) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.full != nil {
		return f.full
	}
	f.calls = append(f.calls, c)
	if f.on != nil {
		go f.on(c)
	}
	return nil
}

func (f *fakePage) Cancel(id, _ string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.canceled = append(f.canceled, id)
}

func (f *fakePage) Probe() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.probes++
	if f.alive {
		go f.link.Heard()
	}
}

func (f *fakePage) Answer(id string, a Answer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.answered == nil {
		f.answered = make(map[string]Answer)
	}
	f.answered[id] = a
}

func (f *fakePage) Watch(uri string, on bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if on {
		f.watching = append(f.watching, "+"+uri)
	} else {
		f.watching = append(f.watching, "-"+uri)
	}
}

func (f *fakePage) Complain(message string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.told = append(f.told, message)
}

func (f *fakePage) Identify(label string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.labels = append(f.labels, label)
}

func (f *fakePage) Registered(reg Registration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.renamed = append(f.renamed, reg)
}

func (f *fakePage) Move(to Connect) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.moved = append(f.moved, to)
}

func (f *fakePage) Approved(reg *Registration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.approved = append(f.approved, reg)
}

func (f *fakePage) Close(r Reason) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = append(f.closed, r)
}

func (f *fakePage) sent() []CallFrame {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]CallFrame(nil), f.calls...)
}

// last is the id of the last call that it was sent.
func (f *fakePage) last() string {
	all := f.sent()
	return all[len(all)-1].ID
}

func declare(t testing.TB, label string, tools ...string) *manifest.Manifest {
	t.Helper()
	type tool struct {
		Name        string `json:"name"`
		Description string `json:"description"`
	}
	frame := struct {
		AppLabel string `json:"appLabel"`
		Tools    []tool `json:"tools"`
	}{AppLabel: label, Tools: []tool{}}
	for _, n := range tools {
		name, description, _ := strings.Cut(n, ":")
		frame.Tools = append(frame.Tools, tool{name, "does " + name + description})
	}
	b, err := json.Marshal(frame)
	if err != nil {
		t.Fatal(err)
	}
	m, err := manifest.Parse(b, manifest.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

type world struct {
	t *testing.T
	r *Registry
	*Tenant
}

func newWorld(t *testing.T, opts Options) *world {
	r := NewRegistry(opts)
	tn, err := r.Open()
	if err != nil {
		t.Fatal(err)
	}
	return &world{t, r, tn}
}

// Join brings a socket to the world's session tenant.
func (w *world) Join(j Joining) (*Link, error) { return w.r.Join(Connect{Session: w.ID()}, j) }

// socket brings a tab in that has registered nothing yet.
func (w *world) socket(instance string) *fakePage {
	w.t.Helper()
	f := &fakePage{alive: true}
	l, err := w.Join(Joining{Instance: instance, Origin: "http://a.test", Probes: true, Transport: f})
	if err != nil {
		w.t.Fatal(err)
	}
	f.link = l
	return f
}

// join brings a tab in and registers its tools.
func (w *world) join(instance, label string, tools ...string) *fakePage {
	w.t.Helper()
	f := w.socket(instance)
	if _, err := f.link.Register(declare(w.t, label, tools...)); err != nil {
		w.t.Fatal(err)
	}
	return f
}

func (w *world) names() string {
	var names []string
	for _, e := range w.Snapshot().Entries() {
		names = append(names, e.Name)
	}
	return strings.Join(names, " ")
}

func (w *world) wantNames(want string) {
	w.t.Helper()
	if got := w.names(); got != want {
		w.t.Errorf("published %q, want %q", got, want)
	}
}

// call calls a published tool and gives the result as text.
func (w *world) call(ctx context.Context, name string) (string, error) {
	e, ok := w.Snapshot().Find(name)
	if !ok {
		return "", fmt.Errorf("no tool %q", name)
	}
	a, err := e.Page.Call(ctx, e.Tool, Call{Args: json.RawMessage(`{}`)})
	return string(a.Result), err
}

// answering answers each call with the given text.
func (f *fakePage) answering(text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.on = func(c CallFrame) {
		_ = f.link.Answer(c.ID, Answer{Result: json.RawMessage(text)})
	}
}

func wantKind(t *testing.T, err error, kind CallErrorKind, mayHaveRun bool) {
	t.Helper()
	var ce *CallError
	if !errors.As(err, &ce) {
		t.Fatalf("error %v, want a CallError", err)
	}
	if ce.Kind != kind || ce.MayHaveRun != mayHaveRun {
		t.Fatalf("kind %d, may have run %v; want %d, %v (%v)", ce.Kind, ce.MayHaveRun, kind, mayHaveRun, err)
	}
}

func TestPrefixesStayWhenAnotherTabLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		defer w.Close()
		a := w.join("instance-a-000000", "Same", "foo")
		b := w.join("instance-b-000000", "Same", "foo")
		c := w.join("instance-c-000000", "Same", "foo")
		w.wantNames("same2__foo same3__foo same__foo")
		v := w.NewView(func() {})
		defer v.Close()
		v.Snapshot()
		for i, f := range []*fakePage{a, b, c} {
			f.answering(fmt.Sprint(i))
		}
		a.link.Leave()
		w.wantNames("same2__foo same3__foo")
		for name, want := range map[string]string{"same2__foo": "1", "same3__foo": "2"} {
			if got, err := w.call(t.Context(), name); got != want || err != nil {
				t.Errorf("%s answered %q, %v; want %q", name, got, err, want)
			}
		}
		if _, ok := v.Departed("same__foo"); !ok {
			t.Error("the page that left is not remembered")
		}
		w.join("instance-d-000000", "Same", "foo")
		w.wantNames("same2__foo same3__foo same__foo")
	})
}

func TestOrdinalNeverMeetsARealName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		defer w.Close()
		w.join("instance-a-000000", "shop", "x")
		w.join("instance-b-000000", "shop", "x")
		w.join("instance-c-000000", "shop2", "x")
		seen := map[string]bool{}
		for _, p := range w.Pages() {
			if seen[p.Info().Prefix] {
				t.Errorf("prefix %q given twice", p.Info().Prefix)
			}
			seen[p.Info().Prefix] = true
		}
	})
}

func TestReloadKeepsThePlaceAndMakesNoChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		defer w.Close()
		a := w.join("instance-a-000000", "App", "foo")
		before, id := w.Snapshot(), a.link.ID()
		a.link.Closed(Departure{MayReturn: true})
		if !w.Snapshot().Same(before, Tools) {
			t.Error("the list changed while the page reloads")
		}
		if s := w.Pages()[0].Info().State; s != Reconnecting {
			t.Errorf("state %q, want reconnecting", s)
		}
		time.Sleep(2 * time.Second)
		again := w.join("instance-a-000000", "Another title", "foo")
		if !w.Snapshot().Same(before, Tools) {
			t.Errorf("the list changed over a reload: %s", w.names())
		}
		if again.link.ID() != id {
			t.Error("the connection's id changed over a reload")
		}
		time.Sleep(time.Minute)
		w.wantNames("app__foo")
	})
}

func TestGraceEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		defer w.Close()
		a := w.join("instance-a-000000", "App", "foo")
		a.link.Closed(Departure{MayReturn: true})
		result := make(chan error)
		go func() {
			_, err := w.call(context.Background(), "app__foo")
			result <- err
		}()
		time.Sleep(3*time.Second - time.Millisecond)
		w.wantNames("app__foo")
		err := <-result
		w.wantNames("")
		wantKind(t, err, PageGone, false)
		synctest.Wait()
		if w.r.pages.Load() != 0 {
			t.Errorf("%d pages counted, want 0", w.r.pages.Load())
		}
	})
}

func TestSameInstanceOfAnotherOriginIsAnotherPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		defer w.Close()
		a := w.join("instance-a-000000", "App", "foo")
		thief := &fakePage{}
		l, err := w.Join(Joining{Instance: "instance-a-000000", Origin: "https://evil.test", Transport: thief})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.Register(declare(t, "App", "foo")); err != nil {
			t.Fatal(err)
		}
		w.wantNames("app2__foo app__foo")
		a.answering("1")
		if got, err := w.call(t.Context(), "app__foo"); got != "1" || err != nil {
			t.Errorf("answered %q, %v", got, err)
		}
	})
}

func TestNewerSocketReplacesTheOlder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		defer w.Close()
		a := w.join("instance-a-000000", "App", "foo")
		result := make(chan error)
		go func() {
			_, err := w.call(context.Background(), "app__foo")
			result <- err
		}()
		synctest.Wait()
		again := w.join("instance-a-000000", "App", "foo")
		wantKind(t, <-result, PageGone, true)
		if fmt.Sprint(a.closed) != fmt.Sprint([]Reason{Replaced}) {
			t.Errorf("old socket closed with %v", a.closed)
		}
		a.link.Closed(Departure{MayReturn: true}) // its end must not end the newer
		again.answering("1")
		if got, err := w.call(t.Context(), "app__foo"); got != "1" || err != nil {
			t.Errorf("answered %q, %v", got, err)
		}
		if _, err := a.link.Register(declare(t, "App", "bar")); !errors.Is(err, ErrReplaced) {
			t.Errorf("the replaced socket registered: %v", err)
		}
	})
}

func TestOlderScriptGetsItsPlaceBackByLabel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		defer w.Close()
		a := w.join("", "App", "foo")
		id := a.link.ID()
		a.link.Closed(Departure{MayReturn: true})
		b := w.join("", "App", "foo")
		w.wantNames("app__foo")
		if b.link.ID() != id || len(w.Pages()) != 1 || w.r.pages.Load() != 1 {
			t.Errorf("id %q, want %q; %d pages, counted %d", b.link.ID(), id, len(w.Pages()), w.r.pages.Load())
		}
	})
}

func TestRenameChangesThePrefixAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		defer w.Close()
		a := w.join("instance-a-000000", "App", "foo")
		w.join("instance-b-000000", "Other", "foo")
		reg, err := a.link.Rename("other")
		if err != nil || reg.Prefix != "other2" {
			t.Fatalf("renamed to %q, %v", reg.Prefix, err)
		}
		w.wantNames("other2__foo other__foo")
		a.link.Closed(Departure{MayReturn: true})
		w.join("instance-a-000000", "App", "foo")
		w.wantNames("other2__foo other__foo")
	})
}

func TestChangesAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		defer w.Close()
		told := 0
		v := w.NewView(func() { told++ })
		a := w.join("instance-a-000000", "App", "foo")
		before := w.Snapshot()
		if _, err := a.link.Register(declare(t, "App", "foo: better")); err != nil {
			t.Fatal(err)
		}
		if told != 2 || w.Snapshot().Same(before, Tools) {
			t.Errorf("told %d times, want 2; same list: %v", told, w.Snapshot().Same(before, Tools))
		}
		v.Close()
		a.link.Leave()
		if told != 2 {
			t.Error("told after the view ended")
		}
	})
}

func TestLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{MaxPages: 1, MaxTenants: 1, MaxCallsPerPage: 1})
		defer w.Close()
		a := w.join("instance-a-000000", "App", "foo")
		var le *LimitError
		if _, err := w.Join(Joining{Transport: &fakePage{}}); !errors.As(err, &le) {
			t.Errorf("second page: %v, want a limit", err)
		}
		if _, err := w.r.Open(); !errors.As(err, &le) {
			t.Errorf("second tenant: %v, want a limit", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() {
			_, err := w.call(ctx, "app__foo")
			done <- err
		}()
		synctest.Wait()
		_, err := w.call(t.Context(), "app__foo")
		wantKind(t, err, TooBusy, false)
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		a.link.Leave()
		if _, err := w.Join(Joining{Transport: &fakePage{}}); err != nil {
			t.Errorf("after one left: %v", err)
		}
	})
}

func TestClosedTenantTakesNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		a := w.join("instance-a-000000", "App", "foo")
		w.Close()
		w.Close()
		if fmt.Sprint(a.closed) != fmt.Sprint([]Reason{TenantEnded}) {
			t.Errorf("closed with %v", a.closed)
		}
		if _, err := w.Join(Joining{Transport: &fakePage{}}); !errors.Is(err, ErrNoTenant) {
			t.Errorf("joined a closed tenant: %v", err)
		}
		if w.r.Knows(Connect{Session: w.ID()}) || w.r.pages.Load() != 0 {
			t.Error("the tenant is still there")
		}
	})
}
