package main

import (
	"fmt"
	"time"
)

// system is one way to keep ticks.
type system struct {
	name string
	nats bool
	// linger is how long the ticks of a session are gathered into one chunk
	// or message. With 0 every tick is a message.
	linger time.Duration
	// syncs is set where an acknowledgement means that the data was synced
	// to the disk.
	syncs bool
}

// defaultLinger is that of transport.ClientConfig, gatherBytes the bytes
// that end a chunk or message earlier.
const (
	defaultLinger = 100 * time.Millisecond
	gatherBytes   = 16 << 10
)

// systems are compared. The second gathers so shortly that every tick of a
// paced load is a chunk of its own.
var systems = []system{
	{name: "reprised, 100 ms linger", linger: defaultLinger, syncs: true},
	{name: "reprised, 2 ms linger", linger: 2 * time.Millisecond, syncs: true},
	{name: "JetStream, sync always, message per tick", nats: true, syncs: true},
	{name: "JetStream, sync always, 100 ms linger", nats: true, linger: defaultLinger, syncs: true},
	{name: "JetStream, default sync, message per tick", nats: true},
	{name: "JetStream, default sync, 100 ms linger", nats: true, linger: defaultLinger},
}

// workload is what is driven.
type workload struct {
	sessions int
	// rate is ticks a second of each session; 0 is flat out.
	rate float64
}

func (w workload) String() string {
	if w.rate == 0 {
		return fmt.Sprintf("%s sessions, flat out", thousands(float64(w.sessions)))
	}
	return fmt.Sprintf("%s sessions at %g Hz", thousands(float64(w.sessions)), w.rate)
}

// due is the ticks a second that a paced load makes.
func (w workload) due() float64 { return float64(w.sessions) * w.rate }

// applies leaves out what would measure the same twice: flat out, chunks end
// by their bytes, whatever the linger.
func (s system) applies(w workload) bool {
	return w.rate > 0 || s.nats || s.linger == defaultLinger
}

// plan says what is measured, and for how long.
type plan struct {
	workloads []workload
	rounds    int
	// warm is how long a load runs before the window that is measured.
	warm, window time.Duration
	// limit is the longest time for everything.
	limit time.Duration

	// numbers are those of sessions that reprised is measured with, ageing is
	// how many grow old.
	numbers []int
	ageing  int
}

const tickRate = 20

var fullPlan = plan{
	workloads: []workload{{100, tickRate}, {1000, tickRate}, {10_000, tickRate}, {100, 0}},
	rounds:    2, warm: 2 * time.Second, window: 3 * time.Second, limit: 10*time.Minute - 10*time.Second,
	numbers: []int{100, 1000, 10_000}, ageing: 100,
}

var shortPlan = plan{
	workloads: []workload{{100, tickRate}, {1000, tickRate}, {100, 0}},
	rounds:    1, warm: 500 * time.Millisecond, window: time.Second, limit: 85 * time.Second,
	numbers: []int{100, 1000}, ageing: 10,
}

// ages are those of the sessions whose memory is measured, as recorded time.
var ages = []time.Duration{time.Minute, 10 * time.Minute, 60 * time.Minute}
