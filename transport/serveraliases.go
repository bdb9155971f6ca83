package transport

import "sort"

// aliasTable finds the sessions of a connection by their aliases, which
// ascend. What it holds grows with the sessions that live, not with the
// aliases that were used.
type aliasTable struct {
	// entries ascend; those without a session have ended.
	entries []aliasEntry
	ended   int
}

type aliasEntry struct {
	alias   uint32
	session *serverSession
}

// add enters a session whose alias is above all others.
func (t *aliasTable) add(s *serverSession) {
	t.entries = append(t.entries, aliasEntry{s.alias, s})
}

// find returns the session of an alias; nil where there is none.
func (t *aliasTable) find(alias uint64) *serverSession {
	if i, ok := t.place(alias); ok {
		return t.entries[i].session
	}
	return nil
}

// place finds an alias. Clients count them up, so it mostly stands as far from
// the last one as the numbers are apart.
func (t *aliasTable) place(alias uint64) (int, bool) {
	e := t.entries
	last := len(e) - 1
	if last < 0 || alias > uint64(e[last].alias) {
		return 0, false
	}
	if back := uint64(e[last].alias) - alias; back <= uint64(last) {
		i := last - int(back)
		if uint64(e[i].alias) == alias {
			return i, true
		}
	}
	i := sort.Search(len(e), func(i int) bool { return uint64(e[i].alias) >= alias })
	return i, uint64(e[i].alias) == alias
}

// remove lets go of a session. Its place stays, so that those of others are
// where they are looked for, until more have ended than live.
func (t *aliasTable) remove(s *serverSession) {
	i, ok := t.place(uint64(s.alias))
	if !ok || t.entries[i].session == nil {
		return
	}
	t.entries[i].session = nil
	if t.ended++; 2*t.ended > len(t.entries) {
		t.compact()
	}
}

func (t *aliasTable) compact() {
	n := 0
	for _, e := range t.entries {
		if e.session != nil {
			t.entries[n] = e
			n++
		}
	}
	clear(t.entries[n:])
	t.entries, t.ended = t.entries[:n], 0
}

// all calls do for every session.
func (t *aliasTable) all(do func(*serverSession) bool) {
	for _, e := range t.entries {
		if e.session != nil && !do(e.session) {
			return
		}
	}
}
