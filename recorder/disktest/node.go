package disktest

import (
	"maps"
	"math/rand/v2"
	"slices"
)

// sector is what a write does whole or not at all.
const sector = 512

// node is a file, under whatever name.
type node struct {
	data  []byte // as programs read it
	solid []byte // what a crash leaves
	// dirty are the sectors that were written since the last sync.
	dirty     map[int]bool
	sizeDirty bool
}

func newNode() *node { return &node{dirty: map[int]bool{}} }

func (n *node) write(b []byte, off int64) {
	if len(b) == 0 {
		return
	}
	if end := off + int64(len(b)); end > int64(len(n.data)) {
		n.data = append(n.data, make([]byte, end-int64(len(n.data)))...)
		n.sizeDirty = true
	}
	copy(n.data[off:], b)
	for i := off / sector; i <= (off+int64(len(b))-1)/sector; i++ {
		n.dirty[int(i)] = true
	}
}

func (n *node) truncate(size int64) {
	if size > int64(len(n.data)) {
		n.data = append(n.data, make([]byte, size-int64(len(n.data)))...)
	}
	n.data = n.data[:size:size]
	n.sizeDirty = true
}

// sync makes the file durable; lost leaves a random part of it behind.
func (n *node) sync(rng *rand.Rand, lost bool) {
	if !lost || !n.sizeDirty || rng.IntN(2) == 0 {
		n.resize()
	}
	for _, i := range n.unsynced() {
		if !lost || rng.IntN(2) == 0 {
			n.settle(i)
		}
	}
	clear(n.dirty)
	n.sizeDirty = false
}

// unsynced gives the dirty sectors in order, so that chance falls on the
// same ones each time.
func (n *node) unsynced() []int { return slices.Sorted(maps.Keys(n.dirty)) }

// resize makes the size durable.
func (n *node) resize() {
	if len(n.solid) > len(n.data) {
		n.solid = n.solid[:len(n.data)]
	}
	if d := len(n.data) - len(n.solid); d > 0 {
		n.solid = append(n.solid, make([]byte, d)...)
	}
}

// settle makes one sector durable, as far as the durable size reaches.
func (n *node) settle(i int) {
	from, to := i*sector, min((i+1)*sector, len(n.data), len(n.solid))
	if from < to {
		copy(n.solid[from:to], n.data[from:to])
	}
}
