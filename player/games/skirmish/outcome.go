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
	g.units = keep(g.units, func(u *unit) bool {
		return g.sides[u.owner].standing == playing
	})
	g.buildings = keep(g.buildings, func(b *building) bool {
		stays := g.sides[b.owner].standing == playing
		if !stays {
			g.board.stamp(b.spot(), open)
		}
		return stays
	})
}
