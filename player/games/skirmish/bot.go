package skirmish

// Bot plays one side of a match by itself: it gathers, builds, trains,
// scouts, attacks in groups, retreats and may surrender. What it does
// follows from its seed and the states it is shown; it is no part of the
// simulation and changes no state.
type Bot struct {
	player int64
	seat   uint8
	random random
	temper temper
	// thinks is the tick of the next thought, now that of the present one.
	thinks, now uint64
	outbox      []delayed
	view        view
	plan        plan
}

// temper is what one bot does differently from another.
type temper struct {
	workers  int    // workers that it wants
	army     int    // fighters that its first attack needs
	pace     int    // least ticks between two thoughts
	courage  int    // percent of the foe's strength that it still fights with
	pride    int    // percent of hopeless moments that it plays on
	scouting uint64 // tick of the first tour
	peace    uint64 // no attack before this tick
	opening  kind   // its first building
}

// delayed is a command on its way: hands and networks take a few ticks, so
// that what is ordered may be dead or spent when the command comes in.
type delayed struct {
	due     uint64
	command Command
}

// NewBot makes a bot for a player of a match. Bots of one match need
// different seeds or players to play differently.
func NewBot(seed, player uint64) *Bot {
	b := &Bot{player: int64(player), random: random(scramble(seed) ^ scramble(player))}
	r := &b.random
	calm := r.between(0, 110)
	b.temper = temper{
		workers:  r.between(10, 18),
		army:     r.between(6, 16),
		pace:     r.between(10, 20),
		courage:  r.between(40, 80),
		pride:    r.between(93, 104),
		scouting: uint64(r.between(400, 1800)),
		peace:    uint64(calm * calm), // up to ten minutes, mostly far less
		opening:  [...]kind{barracks, barracks, archery, stable}[r.below(4)],
	}
	return b
}

// Commands appends what the bot orders for the game's next tick to dst.
func (b *Bot) Commands(g *Game, dst []Command) []Command {
	seat, err := g.seat(b.player)
	if err != nil {
		b.outbox = b.outbox[:0]
		return dst
	}
	b.seat, b.now = seat, g.tick
	if b.now >= b.thinks {
		b.think(g)
		b.thinks = b.now + uint64(b.random.between(b.temper.pace, 2*b.temper.pace))
	}
	return b.post(dst)
}

// post appends the commands that are due.
func (b *Bot) post(dst []Command) []Command {
	kept := b.outbox[:0]
	for _, d := range b.outbox {
		if d.due <= b.now {
			dst = append(dst, d.command)
		} else {
			kept = append(kept, d)
		}
	}
	b.outbox = kept
	return dst
}

// order sends a command after a delay in ticks.
func (b *Bot) order(c Command, delay int) {
	c.Player = b.player
	b.outbox = append(b.outbox, delayed{b.now + uint64(delay), c})
}

// reaction is the delay of one act, a command or a group's.
func (b *Bot) reaction() int { return b.random.between(1, 6) }

// think looks at the state and decides.
func (b *Bot) think(g *Game) {
	v := &b.view
	v.look(g, b.seat)
	if b.hopeless(g) && (b.now > finalGame || !b.random.chance(b.temper.pride)) {
		b.order(Command{Op: OpSurrender}, b.reaction())
		return
	}
	b.employ(g)
	b.expand(g)
	b.recruit(g)
	b.scout(g)
	b.wage(g)
	b.fidget(g)
}

// Ticks after which bots bring a match to its end.
const (
	lateGame  = 22 * 60 * TicksPerSecond
	finalGame = 27 * 60 * TicksPerSecond
)

// hopeless tells whether a player might give up: it has nothing to fight or
// rebuild with, is far weaker than the foe in its base, or is the weakest
// when the match has gone on for too long.
func (b *Bot) hopeless(g *Game) bool {
	v := &b.view
	own, strongest, weakest := v.strength[b.seat], 0, v.least(g)
	for i := range g.sides {
		if i != int(b.seat) && g.sides[i].standing == playing {
			strongest = max(strongest, v.strength[i])
		}
	}
	switch {
	case b.now < 2*60*TicksPerSecond:
		return false
	case len(v.army) == 0 && len(v.workers) < 2 && v.gold < specs[worker].gold:
		return true
	case len(v.intruders) > 3 && own*6 < strongest:
		return true
	case b.now > finalGame:
		return own <= weakest
	}
	return b.now > lateGame && own <= weakest && b.random.chance(10)
}
