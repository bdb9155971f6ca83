package archive

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Rule bounds what is kept. A zero field sets no bound.
type Rule struct {
	// Age is how long a replay is kept, from when its session ended.
	Age time.Duration
	// Bytes and Count are the most that is kept.
	Bytes int64
	Count int
}

// Policy says what is kept.
type Policy struct {
	// Rule holds for all replays together.
	Rule
	// Games holds further rules, for the replays of single games: their Bytes
	// and Count bound that game beside the Rule for all, their Age, where it is
	// set, takes the place of the Rule's.
	Games map[string]Rule
	// Unfinished lets unfinished replays go like sealed ones. They are else
	// kept, though they count.
	Unfinished bool
}

// bounds tells whether the policy ever removes anything.
func (p Policy) bounds() bool {
	for _, r := range p.Games {
		if r != (Rule{}) {
			return true
		}
	}
	return p.Rule != (Rule{})
}

// Holding is a replay that is kept, archived or not.
type Holding struct {
	ID, Game string
	// File is its name below the data folder.
	File  string
	Since time.Time
	Bytes int64
	// Kept says why it is not to be removed; empty where it may be.
	Kept string
}

// Removal is a replay that goes, and why.
type Removal struct {
	Holding
	// Why is for people; cause is what asked for it, for figures.
	Why   string
	cause string
}

// What asks for removals. The words stand in metrics and must not change.
const (
	causeAge   = "age"
	causeBytes = "bytes"
	causeCount = "count"
)

// Causes are all of them.
var Causes = [...]string{causeAge, causeBytes, causeCount}

// Plan decides which replays go at a time, the oldest first, and says which
// bounds cannot be met, for what is above them is to be kept.
func (p Policy) Plan(held []Holding, now time.Time) (remove []Removal, unmet []string) {
	r := &round{policy: p, now: now, left: slices.Clone(held)}
	slices.SortStableFunc(r.left, func(a, b Holding) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.ID, b.ID))
	})
	r.byAge()
	for _, game := range sortedKeys(p.Games) {
		r.bound(p.Games[game], fmt.Sprintf("replays of game %q", game), func(h *Holding) bool { return h.Game == game })
	}
	r.bound(p.Rule, "replays", func(*Holding) bool { return true })
	slices.SortStableFunc(r.gone, func(a, b Removal) int { return a.Since.Compare(b.Since) })
	return r.gone, r.unmet
}

func sortedKeys(m map[string]Rule) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// round is one use of a policy.
type round struct {
	policy Policy
	now    time.Time
	left   []Holding // the oldest first
	gone   []Removal
	unmet  []string
}

// age is how long a replay is kept; 0 for good.
func (p Policy) age(game string) time.Duration { return cmp.Or(p.Games[game].Age, p.Age) }

func (r *round) byAge() {
	r.removeIf(func(h *Holding) (why, cause string) {
		age := r.policy.age(h.Game)
		if age == 0 || r.now.Sub(h.Since) <= age {
			return "", ""
		}
		return fmt.Sprintf("older than %v", age), causeAge
	})
}

// bound removes the oldest of a part until a rule's bounds hold.
func (r *round) bound(rule Rule, what string, in func(*Holding) bool) {
	count, bytes := 0, int64(0)
	for i := range r.left {
		if in(&r.left[i]) {
			count++
			bytes += r.left[i].Bytes
		}
	}
	over := func() (why, cause string) {
		switch {
		case rule.Count > 0 && count > rule.Count:
			return fmt.Sprintf("%d %s, the most is %d", count, what, rule.Count), causeCount
		case rule.Bytes > 0 && bytes > rule.Bytes:
			return fmt.Sprintf("%d bytes of %s, the most is %d", bytes, what, rule.Bytes), causeBytes
		}
		return "", ""
	}
	r.removeIf(func(h *Holding) (why, cause string) {
		why, cause = over()
		if why == "" || !in(h) || h.Kept != "" {
			return "", ""
		}
		count--
		bytes -= h.Bytes
		return why, cause
	})
	if why, _ := over(); why != "" {
		r.unmet = append(r.unmet, why+", and all of them are to be kept")
	}
}

// removeIf takes out what why gives a reason for, unless it is to be kept.
func (r *round) removeIf(why func(*Holding) (why, cause string)) {
	r.left = slices.DeleteFunc(r.left, func(h Holding) bool {
		text, cause := why(&h)
		if text == "" || h.Kept != "" {
			return false
		}
		r.gone = append(r.gone, Removal{h, text, cause})
		return true
	})
}
