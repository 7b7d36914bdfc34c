package tenant

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"jsbridge/manifest"
)

// A page that comes later takes nothing over: neither what an earlier one's template
// stands for, nor the clients that watch it.
func TestTemplatesOfAnEarlierPageStay(t *testing.T) {
	for name, theirs := range map[string]string{
		"template": `"resourceTemplates":[{"uriTemplate":"test://item/{+rest}"}]`,
		"static":   `"resources":[{"uri":"test://item/5"}]`,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, Options{})
				defer w.Close()
				first := w.join("instance-a-000000", "Shop")
				first.offer(t, `"resourceTemplates":[{"uriTemplate":"test://item/{id}"}]`)
				before, ok := w.Snapshot().FindResource("test://item/5")
				if !ok {
					t.Fatal("not found")
				}
				w.join("instance-b-000000", "Evil").offer(t, theirs)
				after, _ := w.Snapshot().FindResource("test://item/5")
				if after.Page != before.Page {
					t.Errorf("test://item/5 was the page %q's, and is now answered by %q", before.Label, after.Label)
				}
			})
		})
	}
}

// Another page under the watched URI is a change of what is there.
func TestAnotherPageIsAnUpdate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		defer w.Close()
		var v *View
		v = w.NewView(func() { go v.Rebind() })
		defer v.Close()
		var updates []string
		v.Updates(func(uris []string) { updates = append(updates, uris...) })
		a := w.join("instance-a-000000", "App")
		a.offer(t, `"resources":[{"uri":"cart"}]`)
		if err := v.Watch("page://app/cart"); err != nil {
			t.Fatal(err)
		}
		a.link.Leave() // a reload that takes longer than the grace is the same
		synctest.Wait()
		w.join("instance-b-000000", "App").offer(t, `"resources":[{"uri":"cart"}]`)
		time.Sleep(time.Second)
		synctest.Wait()
		if len(updates) == 0 {
			t.Error("the watched resource is another page's now, and nobody was told")
		}
	})
}

// However fast they are answered, a call's questions come to an end.
func TestQuestionsOfACallAreFinite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		defer w.Close()
		a := w.join("instance-a-000000", "A", "foo")
		asks, done := w.asked(t, "a__foo", 10*time.Second)
		id := a.sent()[0].ID
		begun := time.Now()
		for i := range 10_000 { // each takes a model's time
			if err := a.link.Ask(id, fmt.Sprint(i), Sample, nil); err != nil {
				if !errors.Is(err, ErrLateAnswer) {
					a.link.Closed(Departure{})
				}
				<-done
				return
			}
			ask := <-asks
			time.Sleep(10 * time.Second)
			ask.Answer(Answer{})
		}
		t.Errorf("a call with a limit of 10 s had the client's model answer 10,000 times in %s, and goes on", time.Since(begun))
		a.link.Closed(Departure{})
		<-done
	})
}

// The contract (page protocol): subscribe comes after registered, which the socket
// can only send once Register has returned.
func TestSubscribeComesAfterRegistered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		defer w.Close()
		v := w.NewView(func() {})
		defer v.Close()
		a := w.join("instance-a-000000", "App")
		a.offer(t, `"resources":[{"uri":"cart"}]`)
		if err := v.Watch("page://app/cart"); err != nil {
			t.Fatal(err)
		}
		a.link.Closed(Departure{MayReturn: true})
		b := w.socket("instance-a-000000")
		m, err := manifest.Parse([]byte(`{"tools":[],"resources":[{"uri":"cart"}]}`), manifest.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.link.Register(m); err != nil {
			t.Fatal(err)
		}
		if len(b.watching) > 0 {
			t.Errorf("%s was sent before Register gave the socket what to send as registered", b.watching)
		}
	})
}
