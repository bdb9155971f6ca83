package skirmish

// judge removes what belongs to players who lost, and ends the match when
// at most one is left.
func (g *Game) judge() {
	var stands [maxPlayers]bool
	for i := range g.buildings {
		stands[g.buildings[i].owner] = true
	}
	left, last := 0, 0
	for i := range g.sides {
		s := &g.sides[i]
		if s.standing == playing && !stands[i] {
			s.standing = defeated
		}
		if s.standing == playing {
			left, last = left+1, i
		}
	}
	g.disband()
	if left <= 1 && !g.over {
		g.over = true
		if left == 1 {
			g.winner = uint8(last) + 1
		}
	}
}

// disband removes everything of players who are out.
func (g *Game) disband() {
	units := g.units[:0]
	for i := range g.units {
		if u := &g.units[i]; g.sides[u.owner].standing == playing {
			units = append(units, *u)
		}
	}
	g.units = units
	buildings := g.buildings[:0]
	for i := range g.buildings {
		b := &g.buildings[i]
		if g.sides[b.owner].standing == playing {
			buildings = append(buildings, *b)
		} else {
			g.board.stamp(spot{int(b.x), int(b.y)}, open)
		}
	}
	g.buildings = buildings
}
