package archive

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// held makes replays: one for each text of id, game, age, bytes and, if it is
// to be kept, why.
func held(t testing.TB, list ...string) []Holding {
	t.Helper()
	var all []Holding
	for _, text := range list {
		f := strings.Fields(text)
		age, err := time.ParseDuration(f[2])
		must(t, err)
		bytes, err := strconv.ParseInt(f[3], 10, 64)
		must(t, err)
		all = append(all, Holding{ID: f[0], File: "archive/" + f[0], Game: f[1], Since: noon.Add(-age), Bytes: bytes, Kept: strings.Join(f[4:], " ")})
	}
	return all
}

func TestPlan(t *testing.T) {
	store := []string{"a chess 100h 10", "b go 90h 10", "c chess 80h 10 pinned", "d go 70h 10", "e chess 60h 10", "f go 50h 10"}
	for name, c := range map[string]struct {
		policy Policy
		want   string
		unmet  int
	}{
		"nothing":               {Policy{}, "", 0},
		"age":                   {Policy{Rule: Rule{Age: 75 * time.Hour}}, "a b", 0},
		"age, at the moment":    {Policy{Rule: Rule{Age: 90 * time.Hour}}, "a", 0},
		"count":                 {Policy{Rule: Rule{Count: 3}}, "a b d", 0},
		"count, over a pin":     {Policy{Rule: Rule{Count: 1}}, "a b d e f", 0},
		"bytes":                 {Policy{Rule: Rule{Bytes: 49}}, "a b", 0},
		"bytes, not met":        {Policy{Rule: Rule{Bytes: 5}}, "a b d e f", 1},
		"one game":              {Policy{Games: map[string]Rule{"go": {Count: 1}}}, "b d", 0},
		"one game's longer age": {Policy{Rule: Rule{Age: 55 * time.Hour}, Games: map[string]Rule{"go": {Age: 80 * time.Hour}}}, "a b e", 0},
		"game and all":          {Policy{Rule: Rule{Count: 4}, Games: map[string]Rule{"go": {Bytes: 20}}}, "a b", 0},
		"all three":             {Policy{Rule: Rule{Age: 95 * time.Hour, Bytes: 45, Count: 5}}, "a b", 0},
	} {
		t.Run(name, func(t *testing.T) {
			holdings := held(t, store...)
			rand.Shuffle(len(holdings), func(i, j int) { holdings[i], holdings[j] = holdings[j], holdings[i] })
			gone, unmet := c.policy.Plan(holdings, noon)
			var ids []string
			for _, r := range gone {
				ids = append(ids, r.ID)
				if r.Why == "" || r.cause == "" {
					t.Errorf("%s goes without a reason", r.ID)
				}
			}
			if got := strings.Join(ids, " "); got != c.want || len(unmet) != c.unmet {
				t.Errorf("%q go, unmet %q; want %q and %d", got, unmet, c.want, c.unmet)
			}
		})
	}
}

// Whatever the policy: what is to be kept stays, nothing stays that is too
// old, bounds hold unless all that is left is to be kept, and of what a bound
// takes none is younger than one that it leaves.
func TestPlanKeepsItsPromises(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 2))
	for round := range 3000 {
		var holdings []Holding
		for i := range rng.IntN(20) {
			h := Holding{ID: fmt.Sprint(i), File: fmt.Sprint(i), Game: []string{"chess", "go"}[rng.IntN(2)], Since: noon.Add(-time.Duration(rng.IntN(100)) * time.Hour), Bytes: rng.Int64N(20)}
			if rng.IntN(4) == 0 {
				h.Kept = "pinned"
			}
			holdings = append(holdings, h)
		}
		rule := Rule{Age: time.Duration(rng.IntN(3)*40) * time.Hour, Bytes: rng.Int64N(3) * 40, Count: rng.IntN(3) * 4}
		p := Policy{Rule: rule}
		if rng.IntN(2) == 0 {
			p.Games = map[string]Rule{"go": {Count: rng.IntN(4), Age: time.Duration(rng.IntN(2)*70) * time.Hour}}
		}
		gone, unmet := p.Plan(holdings, noon)
		if err := keepsPromises(p, holdings, gone, unmet); err != nil {
			t.Fatalf("round %d, policy %+v, %d replays: %v", round, p, len(holdings), err)
		}
	}
}

func keepsPromises(p Policy, holdings []Holding, gone []Removal, unmet []string) error {
	away := map[string]bool{}
	for _, r := range gone {
		if r.Kept != "" || away[r.ID] {
			return fmt.Errorf("%s goes, kept %q, twice %v", r.ID, r.Kept, away[r.ID])
		}
		away[r.ID] = true
	}
	count, free, bytes := 0, 0, int64(0)
	for _, h := range holdings {
		age := p.Age
		if g := p.Games[h.Game].Age; g > 0 {
			age = g
		}
		switch {
		case away[h.ID]:
			continue
		case h.Kept == "" && age > 0 && noon.Sub(h.Since) > age:
			return fmt.Errorf("%s is too old and stays", h.ID)
		case h.Kept == "":
			free++
		}
		count++
		bytes += h.Bytes
	}
	over := p.Count > 0 && count > p.Count || p.Bytes > 0 && bytes > p.Bytes
	if over && (free > 0 || len(unmet) == 0) {
		return fmt.Errorf("%d replays of %d bytes stay, %d of them could go; unmet %q", count, bytes, free, unmet)
	}
	if p.Rule == (Rule{}) && len(p.Games) == 0 && len(gone) > 0 {
		return fmt.Errorf("%d go without a bound", len(gone))
	}
	if len(p.Games) == 0 {
		return oldestFirst(p, holdings, away, gone)
	}
	return nil
}

func oldestFirst(p Policy, holdings []Holding, away map[string]bool, gone []Removal) error {
	for _, r := range gone {
		for _, h := range holdings {
			if !away[h.ID] && h.Kept == "" && h.Since.Before(r.Since) {
				return fmt.Errorf("%s goes, and %s, which is older, stays", r.ID, h.ID)
			}
		}
	}
	if !slices.IsSortedFunc(gone, func(a, b Removal) int { return a.Since.Compare(b.Since) }) {
		return fmt.Errorf("not the oldest first: %v", gone)
	}
	return nil
}
