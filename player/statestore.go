package player

import (
	"bytes"
	"slices"

	"reprise/format"
)

// statePage is the unit in which kept states share memory: the pages that did
// not change since the state before are kept once.
const statePage = 4096

// stateStore keeps states of a simulation within a budget of memory. When the
// budget is reached every second state goes, so what is left stays spread over
// the replay.
type stateStore struct {
	budget, used int64
	kept         []keptState // ascending by tick
	// spacing is how many ticks lie between two states that are worth
	// keeping.
	spacing format.Tick
}

// keptState is the state before tick next.
type keptState struct {
	next  format.Tick
	size  int
	pages []*keptPage
}

type keptPage struct {
	data []byte
	refs int
}

// pageCost is what a page costs beside its bytes.
const pageCost = 48

// before gives the index of the last state at or before next; -1 where there
// is none.
func (s *stateStore) before(next format.Tick) int {
	i, found := slices.BinarySearchFunc(s.kept, next, func(k keptState, t format.Tick) int {
		switch {
		case k.next < t:
			return -1
		case k.next > t:
			return 1
		}
		return 0
	})
	if found {
		return i
	}
	return i - 1
}

// has reports whether the state before next is kept.
func (s *stateStore) has(next format.Tick) bool {
	i := s.before(next)
	return i >= 0 && s.kept[i].next == next
}

// state appends the bytes of the i-th state to dst.
func (s *stateStore) state(i int, dst []byte) []byte {
	for _, p := range s.kept[i].pages {
		dst = append(dst, p.data...)
	}
	return dst
}

// put keeps a copy of the state before next.
func (s *stateStore) put(next format.Tick, state []byte) {
	if s.has(next) {
		return
	}
	i := s.before(next) + 1
	s.kept = slices.Insert(s.kept, i, s.pack(next, state, i-1))
	for s.used > s.budget && len(s.kept) > 0 {
		s.thin()
	}
}

// pack cuts a state into pages and shares those of the state at index like.
func (s *stateStore) pack(next format.Tick, state []byte, like int) keptState {
	k := keptState{next: next, size: len(state), pages: make([]*keptPage, 0, (len(state)+statePage-1)/statePage)}
	var old []*keptPage
	if like >= 0 {
		old = s.kept[like].pages
	}
	for data := range slices.Chunk(state, statePage) {
		n := len(k.pages)
		if n < len(old) && bytes.Equal(old[n].data, data) {
			old[n].refs++
			k.pages = append(k.pages, old[n])
			continue
		}
		k.pages = append(k.pages, &keptPage{data: bytes.Clone(data), refs: 1})
		s.used += int64(len(data)) + pageCost
	}
	s.used += int64(8 * len(k.pages))
	return k
}

// thin drops every second state and doubles the spacing; a lone state goes,
// too: it is larger than the budget.
func (s *stateStore) thin() {
	s.spacing *= 2
	kept := s.kept[:0]
	for i, k := range s.kept {
		if i%2 == 0 && len(s.kept) > 1 {
			kept = append(kept, k)
			continue
		}
		s.drop(k)
	}
	clear(s.kept[len(kept):])
	s.kept = kept
}

func (s *stateStore) drop(k keptState) {
	s.used -= int64(8 * len(k.pages))
	for _, p := range k.pages {
		if p.refs--; p.refs == 0 {
			s.used -= int64(len(p.data)) + pageCost
		}
	}
}
