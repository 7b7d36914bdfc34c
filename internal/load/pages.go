package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"slices"
	"sync"
	"time"
)

// An order is what the pages' process is asked for, one JSON object a line on its
// stdin; each is answered with an [account] on stdout.
type order struct {
	Do      string   `json:"do"`
	Host    string   `json:"host,omitempty"`    // open: of the server
	Tenants []string `json:"tenants,omitempty"` // open: page n joins tenant n modulo their number
	Count   int      `json:"count,omitempty"`   // grow: pages in all; churn: how many come and go
	Page    int      `json:"page,omitempty"`    // change: which one
}

const (
	doOpen   = "open"
	doGrow   = "grow"   // further pages come, several at a time
	doChange = "change" // a page registers its tools anew
	doChurn  = "churn"  // the last pages leave and come back each second, until calm
	doCalm   = "calm"
)

// An account answers an order.
type account struct {
	At     int64         `json:"at,omitempty"`     // change: when it was begun, Unix time in ns
	Took   time.Duration `json:"took,omitempty"`   // grow
	Rounds int           `json:"rounds,omitempty"` // calm: how many pages have left and come back
	Median time.Duration `json:"median,omitempty"` // calm: of the time it takes to come back
}

// comers is how many pages connect at one time.
const comers = 32

// crowd is the pages, in the process that has them.
type crowd struct {
	ctx    context.Context // ends with the first page that ends by itself
	cancel context.CancelCauseFunc

	host    string
	tenants []string
	pages   []*page

	stopChurn chan struct{}
	churning  sync.WaitGroup
	mu        sync.Mutex
	returns   []time.Duration
}

// playPages is this program as the pages' process.
func playPages(in io.Reader, out io.Writer) error {
	// Ctrl-C reaches all processes of a terminal. The one that started this one ends it.
	signal.Ignore(os.Interrupt)
	c := &crowd{}
	c.ctx, c.cancel = context.WithCancelCause(context.Background())
	orders := make(chan order)
	go func() {
		dec := json.NewDecoder(bufio.NewReader(in))
		for {
			var o order
			if err := dec.Decode(&o); err != nil { // whoever started this process is gone
				os.Exit(0)
			}
			orders <- o
		}
	}()
	enc := json.NewEncoder(out)
	for {
		select {
		case <-c.ctx.Done():
			return context.Cause(c.ctx)
		case o := <-orders:
			a, err := c.obey(o)
			if err == nil {
				err = enc.Encode(a)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", o.Do, err)
			}
		}
	}
}

func (c *crowd) obey(o order) (account, error) {
	switch o.Do {
	case doOpen:
		c.host, c.tenants = o.Host, o.Tenants
		return account{}, nil
	case doGrow:
		begun := time.Now()
		err := c.grow(o.Count)
		return account{Took: time.Since(begun)}, err
	case doChange:
		at := time.Now().UnixNano()
		return account{At: at}, c.pages[o.Page].register()
	case doChurn:
		c.churn(c.pages[len(c.pages)-o.Count:])
		return account{}, nil
	case doCalm:
		return c.calm()
	}
	return account{}, errors.New("there is no such order")
}

func (c *crowd) grow(to int) error {
	from := len(c.pages)
	for n := from; n < to; n++ {
		c.pages = append(c.pages, newPage(c.host, c.tenants[n%len(c.tenants)], n))
	}
	next := make(chan *page)
	var workers sync.WaitGroup
	for range comers {
		workers.Go(func() {
			for p := range next {
				if err := p.come(c.ctx, c.ended); err != nil {
					c.cancel(err)
				}
			}
		})
	}
	for _, p := range c.pages[from:] {
		select {
		case next <- p:
		case <-c.ctx.Done():
		}
	}
	close(next)
	workers.Wait()
	return context.Cause(c.ctx)
}

// ended is told of the end of each page's socket; nil is one that has left.
func (c *crowd) ended(err error) {
	if err != nil {
		c.cancel(err)
	}
}

// churn has each of some pages leave and come back once a second, at a moment of its
// own.
func (c *crowd) churn(pages []*page) {
	c.stopChurn = make(chan struct{})
	c.returns = nil
	for _, p := range pages {
		c.churning.Go(func() {
			wait := rand.N(time.Second)
			for {
				select {
				case <-c.stopChurn:
					return
				case <-c.ctx.Done():
					return
				case <-time.After(wait):
				}
				begun := time.Now()
				if err := c.swap(p); err != nil {
					c.cancel(err)
					return
				}
				wait = max(0, time.Second-time.Since(begun))
			}
		})
	}
}

func (c *crowd) swap(p *page) error {
	if err := p.leave(); err != nil {
		return err
	}
	begun := time.Now()
	if err := p.come(c.ctx, c.ended); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.returns = append(c.returns, time.Since(begun))
	return nil
}

func (c *crowd) calm() (account, error) {
	close(c.stopChurn)
	c.churning.Wait()
	if len(c.returns) == 0 {
		return account{}, context.Cause(c.ctx)
	}
	slices.Sort(c.returns)
	return account{Rounds: len(c.returns), Median: percentile(c.returns, 0.5)}, context.Cause(c.ctx)
}
