package transport

import (
	"math/rand/v2"
	"testing"
)

// What the table finds is what a map would; clients may leave numbers out.
func TestAliasTable(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	var table aliasTable
	live, aliases := map[uint64]*serverSession{}, []uint64{}
	last := uint64(0)
	for step := range 20_000 {
		switch n := rng.IntN(10); {
		case n < 4 && len(live) < 100:
			last++
			if rng.IntN(50) == 0 {
				last += uint64(rng.IntN(100_000))
			}
			s := &serverSession{alias: uint32(last)}
			table.add(s)
			live[last], aliases = s, append(aliases, last)
		case n < 8 && len(aliases) > 0:
			alias := aliases[max(0, len(aliases)-1-rng.IntN(200))]
			if s := live[alias]; s != nil {
				table.remove(s)
				table.remove(s) // again does no harm
				delete(live, alias)
			}
		}
		for _, alias := range []uint64{0, 1, last, last + 1, rng.Uint64N(last + 2), MaxAlias} {
			if got := table.find(alias); got != live[alias] {
				t.Fatalf("step %d: alias %d: found %v, want %v", step, alias, got, live[alias])
			}
		}
	}
	for s := range table.all {
		if live[uint64(s.alias)] != s {
			t.Errorf("alias %d is in the table and does not live", s.alias)
		}
		delete(live, uint64(s.alias))
	}
	if len(live) > 0 {
		t.Errorf("%d sessions are not in the table", len(live))
	}
}

// A connection opens a million sessions one after the other, some at the same
// time, and the first one stays.
func TestAliasTableStaysSmall(t *testing.T) {
	const atOnce = 10
	var table aliasTable
	first := &serverSession{alias: 1}
	table.add(first)
	var live []*serverSession
	for alias := uint32(2); alias < 1_000_000; alias++ {
		s := &serverSession{alias: alias}
		table.add(s)
		if live = append(live, s); len(live) > atOnce {
			table.remove(live[0])
			live = live[1:]
		}
		if table.find(1) != first || table.find(uint64(live[0].alias)) != live[0] {
			t.Fatalf("behind alias %d a session that lives is not found", alias)
		}
	}
	if n := cap(table.entries); n > 4*(atOnce+2) {
		t.Errorf("room for %d sessions, %d live", n, len(live)+1)
	}
	if s := table.entries[:cap(table.entries)][len(table.entries)]; s.session != nil {
		t.Errorf("the table keeps session %d, which has ended", s.alias)
	}
}
