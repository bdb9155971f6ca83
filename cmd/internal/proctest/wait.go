package proctest

import (
	"bytes"
	"sync"
	"testing"
	"time"
)

// Eventually waits until is holds. The bound is for what should take far less.
func Eventually(t testing.TB, bound time.Duration, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(bound); !is(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", bound, what)
		}
	}
}

// Text collects what is written to it, also while it is read.
type Text struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write adds b.
func (x *Text) Write(b []byte) (int, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.b.Write(b)
}

// String gives all that was written so far.
func (x *Text) String() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.b.String()
}
