package tower

// fight is how an encounter ends. It is known beforehand: blows are
// exchanged without chance until one side is down.
type fight struct {
	// possible is false where the hero cannot even scratch the monster; no
	// fight takes place then.
	possible bool
	rounds   int64
	// damage is what the hero loses; at or above the hero's health the hero
	// dies.
	damage int64
}

// forecast computes the fight of h against m. The hero strikes first, so
// the monster strikes one time less than there are rounds.
func (h *hero) forecast(m monster) fight {
	blow := h.attack - m.armour
	if blow <= 0 {
		return fight{}
	}
	rounds := (m.health + blow - 1) / blow
	damage := h.opening(m) + (rounds-1)*h.suffers(m)
	return fight{possible: true, rounds: rounds, damage: damage}
}

// suffers is what one round of m's blows costs.
func (h *hero) suffers(m monster) int64 {
	blow := max(m.attack-h.defence, 0)
	switch m.trait {
	case piercing:
		return m.attack
	case twin:
		return 2 * blow
	}
	return blow
}

// opening is what m takes before the hero's first blow.
func (h *hero) opening(m monster) int64 {
	switch m.trait {
	case swift:
		return h.suffers(m)
	case leech:
		return h.health / 10
	}
	return 0
}
