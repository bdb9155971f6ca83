package wasm

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/tetratelabs/wazero/api"

	"reprise/format"
	"reprise/player"
)

// pageBytes is the unit in which snapshots share memory. Games change few
// bytes of many larger pages.
const pageBytes = 4 << 10

// page is a piece of memory; it never changes.
type page [pageBytes]byte

// zeroPage stands for every page that holds zeros.
var zeroPage = new(page)

// pageCost is what a page costs beside its bytes.
const pageCost = 16

// snapshot is the whole state of a module: its memory, its mutable globals,
// and what the host knows.
type snapshot struct {
	module *Module
	next   format.Tick
	// now is the module's clock; buffer and room are where messages go.
	now          uint64
	buffer, room uint32
	globals      []uint64
	pages        []*page
	held         int
}

// NextTick is the tick that comes next.
func (s *snapshot) NextTick() format.Tick { return s.next }

// Held is how many bytes it shares with no snapshot before it.
func (s *snapshot) Held() int { return s.held }

// Snapshot keeps the present state.
func (s *Simulation) Snapshot() (player.Snapshot, error) {
	if err := s.ready(); err != nil {
		return nil, err
	}
	in := s.instance
	kept := &snapshot{module: s.module, next: s.next, now: in.world.now, buffer: in.buffer, room: in.room,
		globals: readGlobals(in.globals)}
	kept.pages, kept.held = keepPages(memoryOf(in), s.base)
	kept.held += 8 * (len(kept.pages) + len(kept.globals))
	s.base = kept.pages
	return kept, nil
}

// ready refuses where no state can be kept.
func (s *Simulation) ready() error {
	if s.broken != nil {
		return s.broken
	}
	return s.module.Snapshots()
}

func memoryOf(in *instance) []byte {
	m := in.module.Memory()
	b, _ := m.Read(0, m.Size())
	return b
}

func readGlobals(globals []api.MutableGlobal) []uint64 {
	values := make([]uint64, len(globals))
	for i, g := range globals {
		values[i] = g.Get()
	}
	return values
}

// keepPages copies the pages of memory that differ from those of base, and
// shares the others.
func keepPages(memory []byte, base []*page) (pages []*page, held int) {
	pages = make([]*page, len(memory)/pageBytes)
	if len(pages) < manyPages {
		return pages, fillPages(pages, memory, base, 0, len(pages))
	}
	// Comparing waits for memory, so two do it faster than one.
	half := len(pages) / 2
	first := make(chan int, 1)
	go func() { first <- fillPages(pages, memory, base, 0, half) }()
	held = fillPages(pages, memory, base, half, len(pages))
	return pages, held + <-first
}

// manyPages is from how many pages on two goroutines compare them.
const manyPages = 1 << 10

// fillPages does the pages from one to another, and gives what they hold anew.
func fillPages(pages []*page, memory []byte, base []*page, from, to int) (held int) {
	for i := from; i < to; i++ {
		b := memory[i*pageBytes : (i+1)*pageBytes]
		like := zeroPage
		if i < len(base) {
			like = base[i]
		}
		switch {
		case bytes.Equal(b, like[:]):
			pages[i] = like
		case like != zeroPage && bytes.Equal(b, zeroPage[:]):
			pages[i] = zeroPage
		default:
			pages[i] = (*page)(bytes.Clone(b))
			held += pageBytes + pageCost
		}
	}
	return held
}

// errForeign is a snapshot that was not taken of this module.
var errForeign = errors.New("the snapshot is not one of this module")

// Restore brings back a state, in an instance that has run nothing.
func (s *Simulation) Restore(state player.Snapshot) error {
	kept, ok := state.(*snapshot)
	if !ok || kept.module.digest != s.module.digest {
		return errForeign
	}
	if s.instance == nil {
		return errNoReset
	}
	s.broken = s.restore(kept)
	return s.broken
}

func (s *Simulation) restore(kept *snapshot) error {
	before := s.instance.world
	s.drop()
	in, err := s.module.instantiate(&s.log, s.watch)
	if err != nil {
		return s.failure(err, nil)
	}
	s.instance, s.fresh = in, false
	in.world.begin(before.seed, before.rate)
	in.world.now = kept.now
	in.buffer, in.room = kept.buffer, kept.room
	if err := in.fill(kept); err != nil {
		return s.failure(err, nil)
	}
	s.next, s.base = kept.next, kept.pages
	return nil
}

// fill sets memory and globals.
func (in *instance) fill(kept *snapshot) error {
	m := in.module.Memory()
	size := uint32(len(kept.pages) / (wasmPage / pageBytes))
	if now := m.Size() / wasmPage; size > now {
		if _, ok := m.Grow(size - now); !ok {
			return &fault{what: fmt.Sprintf("had more memory than it may have here: %s", mebibytes(uint64(size)*wasmPage))}
		}
	}
	memory := memoryOf(in)
	for i, p := range kept.pages {
		copy(memory[i*pageBytes:], p[:])
	}
	for i, g := range in.globals {
		g.Set(kept.globals[i])
	}
	return nil
}
