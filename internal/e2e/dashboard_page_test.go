package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	cdpbrowser "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
)

// board is the dashboard, in a tab.
type board struct{ *tab }

func (s *server) dashboard(t *testing.T) board {
	b := board{newTab(t).open(s.base + "/")}
	b.shows("live")
	return b
}

// at goes to a view.
func (b board) at(hash string) { eval[string](b.tab, fmt.Sprintf("location.hash = %q", hash)) }

// shows waits until the page has a text.
func (b board) shows(text string) {
	b.t.Helper()
	waitFor(b.t, "the dashboard shows "+text, func() bool { return strings.Contains(b.text(), text) })
}

func (b board) lacks(text string) {
	b.t.Helper()
	waitFor(b.t, "the dashboard has no "+text, func() bool { return !strings.Contains(b.text(), text) })
}

func (b board) text() string { return eval[string](b.tab, "document.body.innerText") }

// click clicks the button of this text, within what the selector gives, once it is
// there.
func (b board) click(within, button string) {
	b.t.Helper()
	waitFor(b.t, "a button "+button, func() bool {
		return eval[bool](b.tab, fmt.Sprintf(`(() => {
			const found = [...document.querySelectorAll(%q)].flatMap((root) => [...root.querySelectorAll('button')]).find((button) => button.textContent.trim() == %q);
			found?.click();
			return !!found;
		})()`, within, button))
	})
}

// types puts text where the focus is.
func (b board) types(text string) {
	b.t.Helper()
	b.do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, input.InsertText, input.InsertTextParams{Text: text})
		return err
	}))
}

const counting = `[
	{name: 'wait', description: 'waits', fn: (_, { signal }) => new Promise((_, no) => { signal.onabort = () => no(signal.reason) })},
	{name: '<img src=x onerror="document.title=1">', description: '<script>document.title = 1</scr' + 'ipt>', fn: () => '<b>bold</b>'}
]`

// From a tool that an agent registers by code to the same one from a file.
func TestDashboardFollowsATool(t *testing.T) {
	site := newSite(t)
	s := serve(t)
	c := s.connect()
	b := s.dashboard(t)
	b.shows("No page")
	newTab(t).open(site.page("/", autoPage(s.base, "notes", "", counting)))
	b.shows("notes__")
	id := list[connections](c, "describe_tools", nil).Connections[0].ID

	c.ok("register_page_tool_by_code", map[string]any{"name": "double", "description": "Doubles a number.", "code": "return args.n * 2", "params": map[string]any{"n": map[string]any{"type": "number"}}})
	b.shows("return args.n * 2") // the toast
	b.at("#/try/" + id + "/double")
	b.shows("Doubles a number.")
	eval[bool](b.tab, `new Promise((done) => { const look = () => { const field = document.querySelector('.fields input, .fields textarea'); field ? (field.focus(), done(true)) : setTimeout(look, 20) }; look() })`)
	b.types("21")
	b.click("main", "Call")
	b.shows("42")
	b.at("#/activity")
	b.shows("notes__double")
	b.shows("you, here")

	b.at("#/connection/" + id)
	dir := t.TempDir()
	b.do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, cdpbrowser.SetDownloadBehavior, cdpbrowser.SetDownloadBehaviorParams{Behavior: "allow", DownloadPath: dir})
		return err
	}))
	waitFor(t, "the tool's entry", func() bool {
		return eval[bool](b.tab, `(() => {
			const summary = [...document.querySelectorAll('.tool summary')].find((s) => s.textContent.includes('double'));
			if (summary && !summary.parentElement.open) summary.click();
			return !!summary?.parentElement.open;
		})()`)
	})
	b.click(".tool", "Save")
	var file string
	waitFor(t, "the file", func() bool {
		files, _ := filepath.Glob(filepath.Join(dir, "*.json"))
		if len(files) == 1 {
			file = files[0]
		}
		return file != ""
	})
	if raw, err := os.ReadFile(file); err != nil || !strings.Contains(string(raw), `"js-bridge-mcp-tool"`) || !strings.Contains(string(raw), "return args.n * 2") {
		t.Fatalf("%s, %v", raw, err)
	}

	b.click(".tool", "Remove")
	b.click("dialog", "Remove")
	waitFor(t, "the tool's end", func() bool { return c.tool("notes__double") == nil })

	b.click("main", "Import")
	b.do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		doc, err := cdp.Call(ctx, t, dom.GetDocument, dom.GetDocumentParams{})
		if err != nil {
			return err
		}
		field, err := cdp.Call(ctx, t, dom.QuerySelector, dom.QuerySelectorParams{NodeID: doc.Root.NodeID, Selector: "dialog input[type=file]"})
		if err != nil {
			return err
		}
		_, err = cdp.Call(ctx, t, dom.SetFileInputFiles, dom.SetFileInputFilesParams{NodeID: field.NodeID, Files: []string{file}})
		return err
	}))
	b.shows("as notes__double")
	b.click("dialog", "Done")
	if got := c.ok("notes__double", map[string]any{"n": 4}); got != "8" {
		t.Errorf("the imported tool gave %s", got)
	}
	if title := eval[string](b.tab, "document.title"); !strings.Contains(title, "jsbridge") {
		t.Errorf("a page's text ran: the title is %q", title)
	}
	if errors := b.lines("error"); len(errors) > 0 {
		t.Errorf("the console has %q", errors)
	}
}

func TestDashboardSteers(t *testing.T) {
	site := newSite(t)
	state := filepath.Join(t.TempDir(), "state.json")
	s := serve(t, "--state", state)
	c := s.connect()
	c.ok("join_channel", map[string]any{"channel": "room"})
	b := s.dashboard(t)
	newTab(t).open(site.page("/", autoPage(s.base, "app", "", counting)))
	b.shows("app__")
	id := func() string { return list[connections](c, "describe_tools", nil).Connections[0].ID }

	// Cancel what runs.
	done := make(chan string, 1)
	go func() {
		if r := c.call("app__wait", nil); r.IsError {
			done <- text(t, r)
		}
		close(done)
	}()
	b.at("#/activity")
	b.shows("running")
	b.click("main", "Cancel")
	if msg := <-done; !strings.Contains(msg, "cancelled by the user") {
		t.Errorf("the agent was told %q", msg)
	}
	b.shows("cancelled")

	// Move it to a channel.
	b.at("#/connection/" + id())
	b.click("main", "Move")
	waitFor(t, "the dialog", func() bool { return eval[bool](b.tab, `document.activeElement?.matches('dialog input')`) })
	eval[bool](b.tab, `document.activeElement.select() ?? true`)
	b.types("room:inside")
	eval[bool](b.tab, `document.querySelector('dialog form').requestSubmit() ?? true`)
	waitFor(t, "the moved page", func() bool { return c.tool("inside__wait") != nil })

	// The theme is remembered.
	for range 2 {
		eval[bool](b.tab, `document.querySelector('button[aria-label^="Theme"]').click() ?? true`)
	}
	if theme := eval[string](b.tab, `document.documentElement.dataset.theme`); theme != "dark" {
		t.Errorf("the theme is %q", theme)
	}
	b.do(chromedp.Reload())
	b.shows("live")
	if theme := eval[string](b.tab, `getComputedStyle(document.documentElement).colorScheme`); theme != "dark" {
		t.Errorf("after a reload the theme is %q", theme)
	}

	// Another server at the same address, without a reload.
	eval[bool](b.tab, `window.same = true`)
	port := s.port()
	s.stop()
	b.shows("not answering")
	s = serve(t, "--state", state, "--port", port)
	b.shows("live")
	b.lacks("not answering")
	c = s.connect()
	c.ok("join_channel", map[string]any{"channel": "room"})
	waitFor(t, "the page", func() bool { return c.tool("inside__wait") != nil })
	b.at("#/connection/" + id())
	b.click("main", "Disconnect")
	b.click("dialog", "Disconnect")
	waitFor(t, "the page's end", func() bool { return c.tool("inside__wait") == nil })
	if !eval[bool](b.tab, `window.same === true`) {
		t.Error("the dashboard was reloaded")
	}
}

func TestDashboardApprovesAnOrigin(t *testing.T) {
	s := serve(t)
	site := publicSite(t)
	b := s.dashboard(t)
	tb := newTab(t)
	tb.permit(cdpbrowser.PermissionSettingGranted)
	tb.open(site.page("/", autoPage(s.base, "app", "", counting)))
	b.shows("asks to connect")
	b.shows("app.example")
	b.click("main", "Approve")
	b.lacks("asks to connect")
	b.shows("app__")
}
