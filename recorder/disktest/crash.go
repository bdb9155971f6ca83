package disktest

import (
	"maps"
	"math/rand/v2"
	"slices"
)

// Survival says what of the unsynced bytes and names a crash leaves. The
// numbers follow each other, so that a test may draw one.
type Survival int

// What may survive.
const (
	SurviveNothing Survival = 0 // the disk had written nothing
	SurviveAll     Survival = 1 // as when only the process is killed
	SurviveSome    Survival = 2 // any sectors, and the first changes of names
	Survivals               = 3
)

// Off tells whether the machine is off.
func (d *Disk) Off() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.off
}

// TurnOff makes all operations fail from now on.
func (d *Disk) TurnOff() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.off = true
}

// Crash turns the machine off and gives the disk as it is found after the
// power is back: without faults, delays and lock.
func (d *Disk) Crash(how Survival) *Disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.off = true
	// The old disk may still be asked by programs that do not know.
	rng := rand.New(rand.NewPCG(d.rng.Uint64(), d.rng.Uint64()))
	after := New(rng)
	after.limit, after.each = d.limit, d.each
	keep := map[Survival]int{SurviveAll: len(d.changes), SurviveSome: rng.IntN(len(d.changes) + 1)}[how]
	names := maps.Clone(d.solid)
	for _, c := range d.changes[:keep] {
		c.apply(names)
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		after.names[name] = names[name].survivor(rng, how)
	}
	after.solid = maps.Clone(after.names)
	return after
}

func (n *node) survivor(rng *rand.Rand, how Survival) *node {
	c := &node{data: n.data, solid: slices.Clone(n.solid), dirty: map[int]bool{}}
	survives := func() bool { return how == SurviveAll || how == SurviveSome && rng.IntN(2) == 0 }
	if n.sizeDirty && survives() {
		c.resize()
	}
	for _, i := range n.unsynced() {
		if survives() {
			c.settle(i)
		}
	}
	c.data = slices.Clone(c.solid)
	return c
}
