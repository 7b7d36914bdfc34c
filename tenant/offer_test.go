package tenant

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"jsbridge/manifest"
)

// offer registers a whole frame, without its braces.
func (f *fakePage) offer(t *testing.T, members string) Registration {
	t.Helper()
	m, err := manifest.Parse([]byte(`{"tools":[],`+members+`}`), manifest.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Problems) > 0 {
		t.Fatal(m.Problems)
	}
	reg, err := f.link.Register(m)
	if err != nil {
		t.Fatal(err)
	}
	f.link.Watched()
	return reg
}

func published(s *Snapshot) string {
	var all []string
	for _, e := range s.Prompts() {
		all = append(all, e.Name)
	}
	for _, e := range s.Resources() {
		all = append(all, e.URI)
	}
	return strings.Join(all, " ")
}

func TestPromptsAndResourcesArePublished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		defer w.Close()
		v := w.NewView(func() {})
		defer v.Close()
		a, b := w.join("instance-a-000000", "App"), w.join("instance-b-000000", "App")
		const offers = `"prompts":[{"name":"p"}],"resources":[{"uri":"cart"},{"uri":"test://one"}],"resourceTemplates":[{"uriTemplate":"item/{id}"}]`
		a.offer(t, offers)
		reg := b.offer(t, offers)
		const want = "app2__p app__p page://app/cart page://app/item/{id} page://app2//test://one page://app2/cart page://app2/item/{id} test://one"
		if got := published(v.Snapshot()); got != want {
			t.Errorf("published %s, want %s", got, want)
		}
		for i, uri := range reg.ResourceURIs { // what it is told is what leads to it
			at, ok := v.Snapshot().FindResource(strings.NewReplacer("{id}", "7").Replace(uri))
			if !ok || at.Page.ID() != b.link.ID() || at.Resource != reg.Declared.Resources[i] {
				t.Errorf("%s leads to %+v, %v", uri, at, ok)
			}
		}
		at, _ := v.Snapshot().FindResource("page://app/item/a%20b")
		if at.Page.ID() != a.link.ID() || at.Variables["id"] != "a b" || at.Own != "item/a%20b" {
			t.Errorf("template: %+v", at)
		}
		a.link.Leave()
		if at, ok := v.Snapshot().FindResource("test://one"); !ok || at.Page.ID() != b.link.ID() {
			t.Errorf("the other page does not have its own URI now: %s", published(v.Snapshot()))
		}
	})
}

// A page among the roots and one of a session's own, each with a prefix and URIs of
// its own in the view.
func TestOffersOfTwoTenantsInAView(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{Bare: "App"})
		defer w.Close()
		v := w.NewView(func() {})
		defer v.Close()
		const offers = `"prompts":[{"name":"p"}],"resources":[{"uri":"cart"},{"uri":"test://one"}]`
		own := w.join("instance-a-000000", "App")
		own.offer(t, offers)
		root := &fakePage{}
		l, err := w.r.Join(Connect{Name: "App"}, Joining{Instance: "instance-r-000000", Transport: root})
		if err != nil {
			t.Fatal(err)
		}
		root.link = l
		root.offer(t, offers)
		if got, want := published(v.Snapshot()), "app2__p p page://app/cart page://app2//test://one page://app2/cart test://one"; got != want {
			t.Errorf("published %s, want %s", got, want)
		}
		if at, ok := v.Snapshot().FindResource("page://app2/cart"); !ok || at.Page.ID() != l.ID() {
			t.Errorf("the root's: %+v", at)
		}
		if e, ok := v.Snapshot().FindPrompt("p"); !ok || e.Page.ID() != own.link.ID() {
			t.Errorf("the bare one: %+v", e)
		}
		own.link.Leave()
		if _, ok := v.Departed("p"); !ok {
			t.Error("a bare name is not remembered")
		}
	})
}

func TestWatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		defer w.Close()
		var v *View
		v = w.NewView(func() { go v.Rebind() })
		defer v.Close()
		var updates []string
		v.Updates(func(uris []string) { updates = append(updates, uris...) })
		const offers = `"resources":[{"uri":"cart"}],"resourceTemplates":[{"uriTemplate":"item/{id}"}]`
		told := func(f *fakePage) string {
			synctest.Wait()
			f.mu.Lock()
			defer f.mu.Unlock()
			got := strings.Join(f.watching, " ")
			f.watching = nil
			return got
		}
		updated := func() string {
			time.Sleep(time.Second)
			synctest.Wait()
			got := strings.Join(updates, " ")
			updates = nil
			return got
		}

		for range 2 { // also before there is such a resource
			if err := v.Watch("page://app/item/1"); err != nil {
				t.Fatal(err)
			}
		}
		a := w.join("instance-a-000000", "App")
		a.offer(t, offers)
		if got := told(a); got != "+item/1" {
			t.Errorf("the page was told %s", got)
		}
		for range 1000 {
			a.link.Updated("item/1")
			a.link.Updated("item/2")
		}
		if got := updated(); got != "page://app/item/1" {
			t.Errorf("updated: %s", got)
		}

		// A reload: the page is told again, and nobody knows what it missed.
		a.link.Closed(Departure{MayReturn: true})
		b := w.socket("instance-a-000000")
		b.offer(t, offers)
		if got := told(b); got != "+item/1" {
			t.Errorf("the reloaded page was told %s", got)
		}
		if got := updated(); got != "page://app/item/1" {
			t.Errorf("after the reload: %s", got)
		}
		a.link.Updated("item/1") // the old socket has no say
		if got := updated(); got != "" {
			t.Errorf("an old socket: %s", got)
		}

		v.Unwatch("page://app/item/1")
		if got := told(b); got != "" {
			t.Errorf("one of two left, and the page was told %s", got)
		}
		v.Unwatch("page://app/item/1")
		v.Unwatch("page://app/item/1")
		if got := told(b); got != "-item/1" {
			t.Errorf("both left, and the page was told %s", got)
		}
		b.link.Updated("item/1")
		if got := updated(); got != "" {
			t.Errorf("nobody watches: %s", got)
		}

		// A rename moves the URIs.
		if err := v.Watch("page://other/cart"); err != nil {
			t.Fatal(err)
		}
		if _, err := b.link.Rename("Other"); err != nil {
			t.Fatal(err)
		}
		if got := told(b); got != "+cart" {
			t.Errorf("after the rename: %s", got)
		}
		v.Close()
		if got := told(b); got != "-cart" {
			t.Errorf("after the view's end: %s", got)
		}
	})
}

func TestWatchesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		defer w.Close()
		v := w.NewView(func() {})
		defer v.Close()
		var err error
		for i := 0; i <= maxWatches && err == nil; i++ {
			err = v.Watch("page://app/" + strings.Repeat("x", i))
		}
		var limit *LimitError
		if !errors.As(err, &limit) {
			t.Errorf("%v", err)
		}
	})
}

// asked begins a call whose questions come out of the channel.
func (w *world) asked(t *testing.T, name string, limit time.Duration) (<-chan *Ask, <-chan error) {
	t.Helper()
	e, ok := w.Snapshot().Find(name)
	if !ok {
		t.Fatalf("no tool %s", name)
	}
	asks, done := make(chan *Ask, 2*MaxAsks), make(chan error, 1)
	e.Tool = &manifest.Tool{Name: e.Tool.Name, Timeout: limit}
	go func() {
		_, err := e.Page.Call(t.Context(), e.Tool, Call{Args: json.RawMessage(`{}`), OnAsk: func(a *Ask) { asks <- a }})
		done <- err
	}()
	synctest.Wait()
	return asks, done
}

func TestQuestionsStopTheClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		defer w.Close()
		a := w.join("instance-a-000000", "A", "foo")
		asks, done := w.asked(t, "a__foo", 10*time.Second)
		id := a.sent()[0].ID
		time.Sleep(5 * time.Second)
		for _, q := range []string{"one", "two"} {
			if err := a.link.Ask(id, q, Elicit, json.RawMessage(`{}`)); err != nil {
				t.Fatal(err)
			}
		}
		one, two := <-asks, <-asks
		time.Sleep(time.Minute)
		one.Answer(Answer{Result: json.RawMessage(`1`)})
		time.Sleep(time.Minute)
		select {
		case err := <-done:
			t.Fatalf("it ended while a question was open: %v", err)
		default:
		}
		two.Answer(Answer{Result: json.RawMessage(`2`)})
		two.Answer(Answer{Result: json.RawMessage(`3`)}) // once is all
		begun := time.Now()
		wantKind(t, <-done, TimedOut, true)
		if left := time.Since(begun); left < 4*time.Second || left > 6*time.Second {
			t.Errorf("it ended %s after the last answer, want the 5 s that were left", left)
		}
		if string(a.answered["one"].Result) != "1" || string(a.answered["two"].Result) != "2" {
			t.Errorf("answered %v", a.answered)
		}
		if err := a.link.Ask(id, "late", Elicit, nil); !errors.Is(err, ErrLateAnswer) {
			t.Errorf("a question after the end: %v", err)
		}
	})
}

func TestQuestionsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		defer w.Close()
		a := w.join("instance-a-000000", "A", "foo")
		b := w.join("instance-b-000000", "B", "foo")
		asks, done := w.asked(t, "a__foo", time.Minute)
		id := a.sent()[0].ID
		if err := b.link.Ask(id, "q", Elicit, nil); !errors.Is(err, ErrForeignCall) {
			t.Errorf("a question during another page's call: %v", err)
		}
		for range MaxAsks {
			if err := a.link.Ask(id, "q", Sample, nil); err != nil {
				t.Fatal(err)
			}
		}
		if err := a.link.Ask(id, "q", Sample, nil); err == nil {
			t.Error("one too many was taken")
		}
		(<-asks).Answer(Answer{})
		if err := a.link.Ask(id, "q", Sample, nil); err != nil {
			t.Errorf("after an answer: %v", err)
		}
		// The page's end ends the call, whatever is open.
		a.link.Closed(Departure{})
		wantKind(t, <-done, PageGone, true)
		before := len(a.answered)
		for len(asks) > 0 {
			(<-asks).Answer(Answer{})
		}
		if len(a.answered) != before {
			t.Error("a page that is gone was answered")
		}

		w.start(t.Context(), "b__foo") // of a caller that answers nothing
		if err := b.link.Ask(b.sent()[0].ID, "q", ListRoots, nil); err == nil {
			t.Error("a question that nobody answers was taken")
		}
		_ = b.link.Answer(b.sent()[0].ID, Answer{})
	})
}

// What a page said before it asks reaches the caller before the question.
func TestEventsComeBeforeTheQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		defer w.Close()
		a := w.join("instance-a-000000", "A", "foo")
		said := make(chan struct{})
		a.on = func(c CallFrame) {
			for n := range 20 {
				_ = a.link.Say(c.ID, Event{Progress: &Progress{Progress: float64(n)}})
			}
			_ = a.link.Ask(c.ID, "q", Elicit, json.RawMessage(`{}`))
			close(said)
		}
		e, _ := w.Snapshot().Find("a__foo")
		e.Tool = &manifest.Tool{Name: e.Tool.Name}
		n, first := 0, true
		_, err := e.Page.Call(t.Context(), e.Tool, Call{Args: json.RawMessage(`{}`),
			OnEvent: func(Event) {
				if first { // slow enough for all to be there
					first = false
					<-said
				}
				n++
			},
			OnAsk: func(*Ask) {
				if n != 20 {
					t.Errorf("asked after %d of 20 events", n)
				}
				_ = a.link.Answer(a.sent()[0].ID, Answer{})
			}})
		if err != nil {
			t.Error(err)
		}
	})
}
