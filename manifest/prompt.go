package manifest

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Prompt is one prompt of a page, fit to be published. It must not be changed once made.
type Prompt struct {
	// Name is the page's own name, verbatim: the key by which a request is routed back. Not fit to be shown uncleaned.
	Name string
	// Title is a cleaned single line, Description may have several; "" if the page gave none.
	Title, Description string
	// Arguments are those the prompt takes, in the page's order, no two with the same name.
	Arguments []PromptArgument
	// Icons is an array of MCP icons in compact JSON, nil when absent.
	Icons json.RawMessage
	// Timeout is the page's own limit for a request; 0 means the server's default. At most 24 hours.
	Timeout time.Duration
	// Dynamic tells that the prompt came by the tool bus.
	Dynamic bool
	// Digest is a hash over all that is published: every field above but Timeout.
	Digest string
}

// PromptArgument is one argument of a prompt.
type PromptArgument struct {
	// Name is the page's own name, verbatim.
	Name string
	// Title is a cleaned single line, Description may have several; "" if the page gave none.
	Title, Description string
	// Required tells that a request without it is refused.
	Required bool
	// Completes tells that the page can complete values of it.
	Completes bool
}

// CheckArguments returns nil if each of args is an argument of the prompt and no required one is missing. Otherwise the
// error is an [*ArgumentError], which names the argument and those that there are.
func (p *Prompt) CheckArguments(args map[string]string) error {
	known := make(map[string]bool, len(p.Arguments))
	for _, a := range p.Arguments {
		known[a.Name] = true
		if _, given := args[a.Name]; a.Required && !given {
			about := Clean(a.Description, 100, false)
			if about != "" {
				about = " (" + about + ")"
			}
			return argumentErrorf(a.Name, "missing required argument %q%s: %s", quotable(a.Name), about, p.taken())
		}
	}
	for _, name := range slices.Sorted(maps.Keys(args)) {
		if !known[name] {
			return argumentErrorf(name, "unknown argument %q: %s", quotable(name), p.taken())
		}
	}
	return nil
}

// taken lists the arguments for a message.
func (p *Prompt) taken() string {
	if len(p.Arguments) == 0 {
		return "the prompt takes none"
	}
	var list []string
	for _, a := range p.Arguments[:min(len(p.Arguments), 12)] {
		item := fmt.Sprintf("%q", quotable(a.Name))
		if a.Required {
			item += " (required)"
		}
		list = append(list, item)
	}
	if more := len(p.Arguments) - len(list); more > 0 {
		list = append(list, fmt.Sprintf("%d more", more))
	}
	return "the prompt takes " + strings.Join(list, ", ")
}

// parsePrompt reads one element of prompts. The prompt is nil if d.err is set.
func parsePrompt(raw json.RawMessage, l Limits) (*Prompt, *draft) {
	d := &draft{}
	f, ok := pick(raw, "name", "title", "description", "arguments", "icons", "timeoutMs", "source")
	if !ok {
		d.err = fmt.Errorf("a prompt must be an object, not %s", kindOf(raw))
		return nil, d
	}
	p := &Prompt{}
	if p.Name, d.err = ownName(f["name"], l, d); d.err != nil {
		return nil, d
	}
	if p.Timeout, d.err = parseTimeout(f["timeoutMs"]); d.err != nil {
		return nil, d
	}
	if p.Arguments, d.err = parsePromptArguments(f["arguments"], l); d.err != nil {
		return nil, d
	}
	p.Title, p.Description = parseTexts(f, l, d)
	if raw := f["icons"]; present(raw) {
		p.Icons = parseIcons(raw, l, d)
	}
	source, _ := unquote(f["source"])
	p.Dynamic = source == "dynamic"
	p.Digest = p.digest()
	return p, d
}

// parsePromptArguments reads the arguments of a prompt. A bad one is the prompt's fault: without it the prompt would be
// another.
func parsePromptArguments(raw json.RawMessage, l Limits) ([]PromptArgument, error) {
	if !present(raw) {
		return nil, nil
	}
	var out []PromptArgument
	var bad error
	seen := map[string]bool{}
	ok := eachItem(raw, func(raw json.RawMessage) bool {
		if len(out) >= maxPromptArguments {
			bad = fmt.Errorf("it has too many arguments, the limit is %d", maxPromptArguments)
			return false
		}
		var a PromptArgument
		if a, bad = parsePromptArgument(raw, l); bad == nil && seen[a.Name] {
			bad = errors.New("its name is that of an earlier one")
		}
		if bad != nil {
			bad = fmt.Errorf("argument %d (from 0): %w", len(out), bad)
			return false
		}
		seen[a.Name] = true
		out = append(out, a)
		return true
	})
	if !ok {
		return nil, fmt.Errorf("arguments must be an array of {name, …}, not %s", kindOf(raw))
	}
	return out, bad
}

func parsePromptArgument(raw json.RawMessage, l Limits) (a PromptArgument, err error) {
	f, ok := pick(raw, "name", "title", "description", "required", "complete")
	if !ok {
		return a, fmt.Errorf("it must be an object, not %s", kindOf(raw))
	}
	if a.Name, err = ownName(f["name"], l, &draft{}); err != nil {
		return a, err
	}
	for _, flag := range []struct {
		key string
		to  *bool
	}{{"required", &a.Required}, {"complete", &a.Completes}} {
		if raw := f[flag.key]; present(raw) {
			if *flag.to, ok = boolean(raw); !ok {
				return a, fmt.Errorf("%s must be true or false, not %s", flag.key, kindOf(raw))
			}
		}
	}
	a.Title = textField(f["title"], l.NameBytes, false)
	a.Description = textField(f["description"], l.DescriptionBytes, true)
	return a, nil
}

func (p *Prompt) digest() string {
	parts := []string{p.Name, p.Title, p.Description, string(p.Icons), flags(p.Dynamic)}
	for _, a := range p.Arguments {
		parts = append(parts, a.Name, a.Title, a.Description, flags(a.Required, a.Completes))
	}
	return digestOf(parts)
}

// flags spells booleans for a digest.
func flags(list ...bool) string { return fmt.Sprint(list) }
