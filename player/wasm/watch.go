package wasm

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/tetratelabs/wazero/api"
)

// looks is how often the watch looks at a call within the time that the call
// may take. Counting looks and not hours keeps a process that was suspended
// from blaming the module.
const looks = 8

// watch ends calls that take too long. A call costs it two atomic stores.
type watch struct {
	// call numbers the calls, times two; bit 0 is set while one runs. A call
	// that was ended is written as killed.
	call atomic.Uint64
	// patience is how many looks the present call may take.
	patience atomic.Int64
	stop     atomic.Pointer[api.MutableGlobal]
	quit     chan struct{}
	over     chan struct{}
}

const killed = 1 << 63

// newWatch watches calls of which each may take limit times its factor, and
// ends all where ctx is done.
func newWatch(ctx context.Context, limit time.Duration) *watch {
	w := &watch{quit: make(chan struct{}), over: make(chan struct{})}
	go w.run(ctx, max(limit/looks, time.Millisecond))
	return w
}

func (w *watch) run(ctx context.Context, every time.Duration) {
	defer close(w.over)
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	last, seen := uint64(0), int64(0)
	done := ctx.Done()
	for {
		select {
		case <-w.quit:
			return
		case <-done:
			// From here on every call is ended at once.
			done = nil
			ticker.Reset(time.Millisecond)
		case <-ticker.C:
		}
		call := w.call.Load()
		if call != last {
			last, seen = call, 0
		}
		if seen++; call&1 == 1 && (seen > w.patience.Load() || ctx.Err() != nil) {
			w.end(call)
		}
	}
}

// end ends a call, where it still runs.
func (w *watch) end(call uint64) {
	if w.call.CompareAndSwap(call, call|killed) {
		(*w.stop.Load()).Set(1)
	}
}

// enter begins a call.
func (w *watch) enter(stop *api.MutableGlobal, factor int64) {
	w.stop.Store(stop)
	w.patience.Store(looks * factor)
	w.call.Add(1)
}

// leave ends it; false where the watch did. The instance must then not be
// called again.
func (w *watch) leave() bool {
	call := w.call.Load()
	if call&killed == 0 && w.call.CompareAndSwap(call, call+1) {
		return true
	}
	w.call.Store((call&^killed | 1) + 1)
	return false
}

func (w *watch) close() {
	close(w.quit)
	<-w.over
}
