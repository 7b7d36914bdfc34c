package tenant

import (
	"errors"
	"fmt"
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
//
// Root connections and named channels will live beside the session tenants
// here: they are further kinds of [Tenant], found by name instead of by id.
type Registry struct {
	opts       Options
	started    time.Time
	linkSerial atomic.Uint64
	calls      atomic.Int64 // running calls
	draining   atomic.Bool  // set under mu
	idle       chan struct{}

	mu      sync.Mutex
	tenants map[string]*Tenant // by id, from Open to Tenant.Close
	pages   int                // in all tenants, from Join to removal
	isIdle  bool               // idle is closed
}

// NewRegistry returns an empty registry.
func NewRegistry(opts Options) *Registry {
	return &Registry{opts: opts.withDefaults(), started: time.Now(), idle: make(chan struct{}), tenants: make(map[string]*Tenant)}
}

// Open makes a session tenant with a random UUID as its id. The caller ends it
// with [Tenant.Close]. The error is a [*LimitError] or [ErrStopping].
func (r *Registry) Open() (*Tenant, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.draining.Load() {
		return nil, ErrStopping
	}
	if len(r.tenants) >= r.opts.MaxTenants {
		return nil, &LimitError{"tenants", r.opts.MaxTenants, "--max-tenants"}
	}
	t := newTenant(r, uuid.NewString())
	r.tenants[t.id] = t
	return t, nil
}

// Lookup finds a live tenant. It never makes one.
func (r *Registry) Lookup(id string) (*Tenant, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t, ok := r.tenants[id]
	return t, ok
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
	all := make([]*Tenant, 0, len(r.tenants))
	for _, t := range r.tenants {
		all = append(all, t)
	}
	r.mu.Unlock()
	for _, t := range all {
		t.close(Stopping)
	}
}

// now is a reading of the monotonic clock, which a changed wall clock leaves alone.
func (r *Registry) now() time.Duration { return time.Since(r.started) }

func (r *Registry) addPage() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.draining.Load() {
		return ErrStopping
	}
	if r.pages >= r.opts.MaxPages {
		return &LimitError{"connections", r.opts.MaxPages, "--max-pages"}
	}
	r.pages++
	return nil
}

func (r *Registry) removePages(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pages -= n
}

func (r *Registry) removeTenant(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.tenants, id)
}
