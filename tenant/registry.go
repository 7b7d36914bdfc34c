package tenant

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"jsbridge/manifest"
)

// Defaults of [Options]; the command line shares them.
const (
	DefaultReconnectGrace  = 3 * time.Second
	DefaultCallTimeout     = 55 * time.Second
	DefaultProbeAfter      = 2 * time.Second
	DefaultProbeTimeout    = 3 * time.Second
	DefaultMaxTenants      = 10_000
	DefaultMaxPages        = 10_000
	DefaultMaxCallsPerPage = 512
	DefaultEmptyTimeout    = 15 * time.Second
	DefaultIdleTimeout     = 2 * time.Hour
)

// Options configures a [Registry]. A zero field means its default.
type Options struct {
	// ReconnectGrace is how long a page whose socket ended keeps its place.
	ReconnectGrace time.Duration
	// CallTimeout limits a call whose tool sets no limit of its own.
	CallTimeout time.Duration
	// ProbeAfter is the silence after which a running call asks the page's
	// JavaScript for a sign of life, ProbeTimeout how long that may take.
	ProbeAfter, ProbeTimeout time.Duration
	// MaxName bounds a published name, in characters. Default
	// [manifest.DefaultMaxName].
	MaxName int
	// MaxTenants and MaxPages count in the whole registry.
	MaxTenants, MaxPages int
	// MaxCallsPerPage counts calls sent to one page and not yet ended.
	MaxCallsPerPage int
	// EmptyTimeout ends a channel that has had no page for so long, IdleTimeout
	// one with neither a message of a page nor a call.
	EmptyTimeout, IdleTimeout time.Duration
	// Allow tells whether pages of an origin may have root connections and join
	// channels; others wait for approval. What a remote peer says of its origin
	// is hearsay. It may be called at any time, with no lock held. Nil allows
	// all.
	Allow func(origin string, remote bool) bool
	// Bare is the name of the connection whose tools and prompts are published
	// without a prefix; "" for none.
	Bare string
	// PageCode says what becomes of code that somebody gives a page as a tool.
	// Default [AllowCode].
	PageCode PageCode
	// Observer is told of calls and of tools added at run time. Nil: nobody is.
	Observer Observer
	// Reserved are names that no tool is published as. Nil: there are none.
	Reserved func(name string) bool
	// IsWorkspace tells whether an id is that of a workspace, which a page may
	// join before a session does. It is called with the registry's lock held.
	// Nil: none is.
	IsWorkspace func(id string) bool
}

func (o Options) withDefaults() Options {
	def := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	defTime := func(v *time.Duration, d time.Duration) {
		if *v == 0 {
			*v = d
		}
	}
	defTime(&o.ReconnectGrace, DefaultReconnectGrace)
	defTime(&o.CallTimeout, DefaultCallTimeout)
	defTime(&o.ProbeAfter, DefaultProbeAfter)
	defTime(&o.ProbeTimeout, DefaultProbeTimeout)
	def(&o.MaxName, manifest.DefaultMaxName)
	def(&o.MaxTenants, DefaultMaxTenants)
	def(&o.MaxPages, DefaultMaxPages)
	def(&o.MaxCallsPerPage, DefaultMaxCallsPerPage)
	defTime(&o.EmptyTimeout, DefaultEmptyTimeout)
	defTime(&o.IdleTimeout, DefaultIdleTimeout)
	if o.PageCode == "" {
		o.PageCode = AllowCode
	}
	if o.Reserved == nil {
		o.Reserved = func(string) bool { return false }
	}
	if o.IsWorkspace == nil {
		o.IsWorkspace = func(string) bool { return false }
	}
	if o.Allow == nil {
		o.Allow = func(string, bool) bool { return true }
	}
	return o
}

// ErrStopping is returned once [Registry.Drain] or [Registry.Close] was called.
var ErrStopping = errors.New("jsbridge is stopping")

// ErrNoTenant is returned for a tenant that has ended.
var ErrNoTenant = errors.New("that tenant has ended")

// A LimitError says which limit was reached and which flag raises it.
type LimitError struct {
	What string // "pages"
	Max  int
	Flag string // "--max-pages"
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("the limit of %d %s is reached (%s)", e.Max, e.What, e.Flag)
}

// Registry holds every tenant of the process. Use [NewRegistry].
type Registry struct {
	opts       Options
	started    time.Time
	linkSerial atomic.Uint64
	calls      atomic.Int64 // running calls
	pages      atomic.Int64 // in all tenants, from Join to removal
	reconnects atomic.Uint64
	draining   atomic.Bool // set under mu
	idle       chan struct{}
	changes    chan struct{} // one entry at most, see Note
	roots      *Tenant       // all root connections, for the registry's life

	mu        sync.Mutex
	sessions  map[string]*Tenant   // by id: session tenants, from Open to Tenant.Close, and workspaces
	channels  map[string]*Tenant   // by name, from the first page to disposal
	audiences map[string]*audience // of channels that live or have a view
	tabs      map[tab]*Page        // where each tab is
	isIdle    bool                 // idle is closed

	recheck sync.Mutex // held through Recheck, before all others

	waitMu  sync.Mutex
	waiting map[string]int // pages that wait for approval, by origin
}

// NewRegistry returns an empty registry.
func NewRegistry(opts Options) *Registry {
	r := &Registry{
		opts: opts.withDefaults(), started: time.Now(), idle: make(chan struct{}), changes: make(chan struct{}, 1),
		sessions: make(map[string]*Tenant), channels: make(map[string]*Tenant),
		audiences: make(map[string]*audience), tabs: make(map[tab]*Page), waiting: make(map[string]int),
	}
	r.roots = newTenant(r, Roots, "", newAudience())
	return r
}

// Open makes a session tenant with a random UUID as its id. Its view's
// [View.Close] ends it, as does [Tenant.Close]. The error is a [*LimitError] or [ErrStopping].
func (r *Registry) Open() (*Tenant, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.draining.Load() {
		return nil, ErrStopping
	}
	if err := r.roomLocked(); err != nil {
		return nil, err
	}
	t := newTenant(r, Session, uuid.NewString(), newAudience())
	r.sessions[t.id] = t
	return t, nil
}

// OpenWorkspace gives the tenant of a workspace, and makes it if need be. It
// outlives its sessions' views. The errors are those of [Registry.Open].
func (r *Registry) OpenWorkspace(id string) (*Tenant, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.workspaceLocked(id)
}

func (r *Registry) workspaceLocked(id string) (*Tenant, error) {
	if t := r.sessions[id]; t != nil {
		return t, nil
	}
	if r.draining.Load() {
		return nil, ErrStopping
	}
	if err := r.roomLocked(); err != nil {
		return nil, err
	}
	t := newTenant(r, Workspace, id, newAudience())
	r.sessions[id] = t
	r.Note()
	t.watchEmptiness()
	return t, nil
}

func (r *Registry) roomLocked() error {
	if len(r.sessions)+len(r.channels) >= r.opts.MaxTenants {
		return &LimitError{"tenants", r.opts.MaxTenants, "--max-tenants"}
	}
	return nil
}

// Knows tells whether a page may join there: any name, the id of a session
// tenant that lives, and that of a workspace.
func (r *Registry) Knows(c Connect) bool {
	if c.Session == "" {
		return c != Connect{}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.sessions[c.Session] != nil || r.opts.IsWorkspace(c.Session)
}

// Join brings a page's socket to where its connect string says, and makes the
// channel if need be. The error is [ErrNoTenant], [ErrStopping] or a
// [*LimitError].
func (r *Registry) Join(c Connect, j Joining) (*Link, error) {
	j.name = c.Name
	for {
		t, err := r.destination(c)
		if err != nil {
			return nil, err
		}
		l, err := t.join(j)
		switch {
		case errors.Is(err, ErrNoTenant) && t.kind == Roots:
			return nil, ErrStopping // they end with the registry
		case errors.Is(err, ErrNoTenant) && t.isSwept():
			continue // it has been disposed of just now
		case err != nil:
			t.disposeEmpty() // perhaps it was made for this page
		}
		return l, err
	}
}

func (r *Registry) destination(c Connect) (*Tenant, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case c == Connect{}:
		return nil, ErrNoTenant
	case c.Session != "":
		if r.opts.IsWorkspace(c.Session) {
			return r.workspaceLocked(c.Session)
		}
		if t := r.sessions[c.Session]; t != nil {
			return t, nil
		}
		return nil, ErrNoTenant
	case c.Channel == "":
		return r.roots, nil
	}
	if t := r.channels[c.Channel]; t != nil {
		return t, nil
	}
	if r.draining.Load() {
		return nil, ErrStopping
	}
	if err := r.roomLocked(); err != nil {
		return nil, err
	}
	t := newTenant(r, Channel, c.Channel, r.audienceLocked(c.Channel))
	r.channels[c.Channel] = t
	t.watchEmptiness()
	return t, nil
}

func (r *Registry) audienceLocked(channel string) *audience {
	a := r.audiences[channel]
	if a == nil {
		a = newAudience()
		r.audiences[channel] = a
	}
	return a
}

// A tab is in one place at a time: what it left is not waited for.
type tab struct{ instance, origin string }

// claim notes where a tab is now. It returns the page that it was before, if
// that was another.
func (r *Registry) claim(p *Page) (before *Page) {
	if p.instance == "" {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	key := tab{p.instance, p.origin}
	before = r.tabs[key]
	r.tabs[key] = p
	if before == p {
		return nil
	}
	return before
}

func (r *Registry) release(p *Page) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if key := (tab{p.instance, p.origin}); r.tabs[key] == p {
		delete(r.tabs, key)
	}
}

// Roots is the tenant of all root connections.
func (r *Registry) Roots() *Tenant { return r.roots }

// Channel finds a live channel. It never makes one.
func (r *Registry) Channel(name string) (*Tenant, bool) {
	r.mu.Lock()
	t := r.channels[name]
	r.mu.Unlock()
	return t, t != nil && t.shown.Load()
}

// Channels are the live channels, by name, without those whose pages have all
// been waiting for approval: a name is text of the page's as well.
func (r *Registry) Channels() []*Tenant {
	return slices.DeleteFunc(r.allChannels(), func(t *Tenant) bool { return !t.shown.Load() })
}

func (r *Registry) allChannels() []*Tenant {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.SortedFunc(maps.Values(r.channels), func(a, b *Tenant) int { return strings.Compare(a.id, b.id) })
}

// Drain refuses new tenants, pages and calls from now on; running calls go on.
func (r *Registry) Drain() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.draining.Store(true)
	r.idleLocked()
}

// Idle is closed once no call runs any more after [Registry.Drain].
func (r *Registry) Idle() <-chan struct{} { return r.idle }

func (r *Registry) idleLocked() {
	if r.draining.Load() && !r.isIdle && r.calls.Load() == 0 {
		r.isIdle = true
		close(r.idle)
	}
}

func (r *Registry) callEnded() {
	if r.calls.Add(-1) == 0 && r.draining.Load() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.idleLocked()
	}
}

// Running is the number of calls that have not ended.
func (r *Registry) Running() int { return int(r.calls.Load()) }

// Close ends every tenant; their pages are told that the server stops.
func (r *Registry) Close() {
	r.Drain()
	r.mu.Lock()
	all := slices.Concat(slices.Collect(maps.Values(r.sessions)), slices.Collect(maps.Values(r.channels)), []*Tenant{r.roots})
	r.mu.Unlock()
	for _, t := range all {
		t.close(Stopping)
	}
}

// now is a reading of the monotonic clock, which a changed wall clock leaves alone.
func (r *Registry) now() time.Duration { return time.Since(r.started) }

func (r *Registry) addPage() error {
	if r.pages.Add(1) > int64(r.opts.MaxPages) {
		r.removePages(1)
		return &LimitError{"connections", r.opts.MaxPages, "--max-pages"}
	}
	return nil
}

func (r *Registry) removePages(n int) { r.pages.Add(int64(-n)) }

// remove takes a tenant that has ended out.
func (r *Registry) remove(t *Tenant) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.removeLocked(t)
}

func (r *Registry) removeLocked(t *Tenant) {
	r.Note()
	if r.sessions[t.id] == t {
		delete(r.sessions, t.id)
	}
	if r.channels[t.id] == t {
		delete(r.channels, t.id)
		r.dropAudienceLocked(t.id)
	}
}

func (r *Registry) dropAudienceLocked(channel string) {
	if a := r.audiences[channel]; a != nil && r.channels[channel] == nil && a.empty() {
		delete(r.audiences, channel)
	}
}
