package main

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// heapFloor is how much heap there is before garbage is collected for the first
// time. Go's own floor of 4 MB would mean a collection every few calls with long
// arguments; this one costs address space, and up to as much memory under load, but a
// large heap none in proportion as GOGC would.
const heapFloor = 8 << 20

// What was needed for a burst of calls is given back to the system once less than
// quietBytes are allocated in lookEvery, if at least worthBytes were since the last
// time. Go itself would keep up to twice the heap for as long as nothing happens.
const (
	lookEvery  = 5 * time.Second
	quietBytes = 1 << 20
	worthBytes = 8 << 20
)

// giveBack does so until ctx ends.
func giveBack(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	var u usage
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		metrics.Read(sample)
		if u.isSpent(sample[0].Value.Uint64()) {
			debug.FreeOSMemory()
		}
	}
}

// usage is how many bytes had been allocated, ever: at the last look, and when memory
// was last given back.
type usage struct{ seen, given uint64 }

// isSpent tells whether there is memory to give back.
func (u *usage) isSpent(allocated uint64) bool {
	quiet := allocated-u.seen < quietBytes
	u.seen = allocated
	if !quiet || allocated-u.given < worthBytes {
		return false
	}
	u.given = allocated
	return true
}
