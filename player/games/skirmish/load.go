package skirmish

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// ErrState is returned, with detail, for bytes that are no saved state or
// a damaged one. The game is unusable until the next Load or Reset.
var ErrState = errors.New("not a valid saved state")

// Largest values that a saved state may hold where nothing else limits
// them; play stays far below.
const (
	mostMapName  = 32
	mostResource = 1 << 40
	mostID       = 1 << 31
	mostDamage   = 1000
)

// Load restores a state that Save made. Every number is held against what
// the rules allow, so that bytes of any origin either load into a state
// that can be played on, or are refused.
func (g *Game) Load(data []byte) error {
	g.ready = false
	body, err := openState(data)
	if err != nil {
		return err
	}
	r := &reader{rest: body, size: len(body)}
	if err := g.loadMatch(r); err != nil {
		return err
	}
	g.loadDeposits(r)
	g.loadBuildings(r)
	g.loadUnits(r)
	g.loadArrows(r)
	if r.err == nil && len(r.rest) > 0 {
		r.fail("%d bytes follow the end", len(r.rest))
	}
	g.checkPopulation(r)
	if r.err != nil {
		return r.err
	}
	g.ready = true
	return nil
}

// openState checks what surrounds a state's numbers.
func openState(data []byte) ([]byte, error) {
	head := len(stateMagic) + 1
	if len(data) < head+sumBytes || string(data[:len(stateMagic)]) != stateMagic {
		return nil, fmt.Errorf("skirmish: %w: %d bytes that do not begin with %q", ErrState, len(data), stateMagic)
	}
	if v := data[len(stateMagic)]; v != stateVersion {
		return nil, fmt.Errorf("skirmish: %w: version %d; this build reads version %d", ErrState, v, stateVersion)
	}
	body, sum := data[:len(data)-sumBytes], data[len(data)-sumBytes:]
	if binary.LittleEndian.Uint64(sum) != stateSum(body) {
		return nil, fmt.Errorf("skirmish: %w: the digest does not fit the %d bytes before it", ErrState, len(body))
	}
	return body[head:], nil
}

// loadMatch reads all before the lists and arranges the board.
func (g *Game) loadMatch(r *reader) error {
	seed := r.uint("seed", 0, math.MaxUint64)
	mapName := r.text("map", mostMapName)
	var sides [maxPlayers]side
	count := r.int("number of players", minPlayers, maxPlayers)
	ids := make([]uint64, 0, maxPlayers)
	for i := range count {
		least := uint64(0)
		if i > 0 {
			least = ids[i-1] + 1
		}
		sides[i].read(r, least)
		ids = append(ids, sides[i].player)
	}
	if r.err != nil {
		return r.err
	}
	if err := g.arrange(seed, mapName, ids); err != nil {
		return fmt.Errorf("skirmish: %w: %w", ErrState, err)
	}
	copy(g.sides, sides[:])
	g.tick = r.uint("tick", 0, math.MaxUint64)
	g.lastID = uint32(r.uint("last id", uint64(g.layout.lastID), mostID))
	g.cursor = r.id("cursor", g.lastID)
	g.random = random(r.uint("random", 0, math.MaxUint64))
	g.over = r.flag("over")
	g.winner = uint8(r.uint("winner", 0, uint64(len(g.sides))))
	if g.winner > 0 && !g.over {
		r.fail("there is a winner before the end")
	}
	return r.err
}

func (s *side) read(r *reader, least uint64) {
	s.player = r.uint("player", least, math.MaxInt64)
	s.standing = standing(r.uint("standing", uint64(playing), uint64(surrendered)))
	s.gold = int64(r.uint("gold", 0, mostResource))
	s.wood = int64(r.uint("wood", 0, mostResource))
}

func (g *Game) loadDeposits(r *reader) {
	least := uint64(1)
	for range r.int("number of deposits", 0, len(g.layout.deposits)) {
		id := r.uint("deposit", least, uint64(g.layout.lastID))
		if r.err != nil {
			return
		}
		d := g.layout.deposits[id-1]
		d.left = int32(r.uint("left", 1, uint64(d.left)))
		g.stampDeposit(&d)
		g.deposits = append(g.deposits, d)
		least = id + 1
	}
}

func (g *Game) loadBuildings(r *reader) {
	least := uint64(g.layout.lastID) + 1
	for range r.int("number of buildings", 0, maxBuildings*len(g.sides)) {
		var b building
		b.id = uint32(r.uint("building", least, uint64(g.lastID)))
		b.owner = g.loadOwner(r)
		b.read(r, g.board.size)
		if r.err != nil {
			return
		}
		if !g.board.allFree(b.spot(), 1) {
			r.fail("building %d stands on something else", b.id)
			return
		}
		if b.rallies && !g.board.holds(b.rally) {
			r.fail("building %d rallies outside the map", b.id)
		}
		g.board.stamp(b.spot(), built)
		g.buildings = append(g.buildings, b)
		least = uint64(b.id) + 1
	}
}

func (b *building) read(r *reader, size int) {
	b.kind = kind(r.uint("kind", uint64(hall), uint64(stable)))
	b.x = uint8(r.int("x", 0, size-1))
	b.y = uint8(r.int("y", 0, size-1))
	if r.err != nil {
		return
	}
	s := &specs[b.kind]
	b.hp = int32(r.uint("hp", 1, uint64(s.hp)))
	b.built = uint16(r.uint("built", 0, uint64(s.ticks)))
	b.queued = uint8(r.uint("queued", 0, maxQueue))
	b.trained = uint16(r.uint("trained", 0, uint64(specs[s.trains].ticks)))
	for i := range b.queued {
		b.queue[i] = s.trains
	}
	if b.queued > 0 && !b.finished() || b.queued == 0 && b.trained > 0 {
		r.fail("building %d trains what it cannot", b.id)
	}
	if b.rallies = r.flag("rallies"); b.rallies {
		b.rally = r.point("rally", size)
	}
}

func (g *Game) loadUnits(r *reader) {
	least := uint64(g.layout.lastID) + 1
	for range r.int("number of units", 0, maxUnits*len(g.sides)) {
		var u unit
		u.id = uint32(r.uint("unit", least, uint64(g.lastID)))
		u.owner = g.loadOwner(r)
		u.read(r, g.board.size, g.lastID)
		if r.err != nil {
			return
		}
		if !g.board.freeAt(u.at) || g.findBuilding(u.id) >= 0 {
			r.fail("unit %d stands on something, or is a building too", u.id)
			return
		}
		g.units = append(g.units, u)
		least = uint64(u.id) + 1
	}
}

func (u *unit) read(r *reader, size int, lastID uint32) {
	u.kind = kind(r.uint("kind", uint64(worker), uint64(cavalry)))
	if r.err != nil {
		return
	}
	u.at = r.point("at", size)
	u.hp = int32(r.uint("hp", 1, uint64(specs[u.kind].hp)))
	u.recharge = uint8(r.uint("recharge", 0, uint64(specs[u.kind].recharge)))
	u.order = order(r.uint("order", uint64(idle), uint64(constructing)))
	u.goal = r.point("goal", size)
	u.target = r.id("target", lastID)
	u.foe = r.id("foe", lastID)
	u.cargo = resource(r.uint("cargo", uint64(nothing), uint64(wood)))
	u.load = uint8(r.uint("load", 0, loadSize))
	u.work = uint8(r.uint("work", 0, loadTicks))
	u.source = r.id("source", lastID)
	u.route.read(r, size)
}

func (t *route) read(r *reader, size int) {
	t.length = uint8(r.uint("route length", 0, maxRoute))
	for i := range t.length {
		t.tiles[i] = uint16(r.int("route tile", 0, size*size-1))
	}
	t.next = uint8(r.uint("route next", 0, uint64(t.length)))
	if t.asked = r.flag("route asked"); t.asked && t.length > 0 {
		r.fail("a unit with a route asks for one")
	}
	t.rest = uint8(r.uint("route rest", 0, routeRest))
	t.nearest = fixed(r.uint("route nearest", 0, uint64(far)))
	t.stall = uint8(r.uint("route stall", 0, math.MaxUint8))
	t.tries = uint8(r.uint("route tries", 0, mostTries))
}

func (g *Game) loadArrows(r *reader) {
	for range r.int("number of arrows", 0, maxArrows) {
		var a arrow
		a.at = r.point("arrow at", g.board.size)
		a.target = r.id("arrow target", g.lastID)
		a.damage = int32(r.uint("arrow damage", 1, mostDamage))
		if r.err != nil {
			return
		}
		g.arrows = append(g.arrows, a)
	}
}

// loadOwner reads the seat of a player who has something: one who surrenders
// loses it at the end of the tick.
func (g *Game) loadOwner(r *reader) uint8 {
	seat := r.int("owner", 0, len(g.sides)-1)
	if r.err == nil && g.sides[seat].standing == defeated {
		r.fail("player %d owns something but is %v", g.sides[seat].player, g.sides[seat].standing)
	}
	return uint8(seat)
}

// checkPopulation holds the limits that concern a player's pieces together.
func (g *Game) checkPopulation(r *reader) {
	for i := range g.sides {
		if r.err != nil {
			return
		}
		count, _ := g.population(uint8(i))
		if count > maxUnits || g.countBuildings(uint8(i)) > maxBuildings {
			r.fail("player %d has more than the rules allow", g.sides[i].player)
		}
	}
}

// reader takes numbers from a saved state. After the first error it only
// gives zeros.
type reader struct {
	rest []byte
	size int
	err  error
}

// fail keeps the first error, with the place.
func (r *reader) fail(message string, args ...any) {
	if r.err == nil {
		at := len(stateMagic) + 1 + r.size - len(r.rest)
		r.err = fmt.Errorf("skirmish: %w: %s, before byte %d", ErrState, fmt.Sprintf(message, args...), at)
	}
}

// uint reads a number and holds it between two bounds. Only the shortest
// form of a number is taken, so that a state has one encoding.
func (r *reader) uint(name string, low, high uint64) uint64 {
	if r.err != nil {
		return 0
	}
	v, n := binary.Uvarint(r.rest)
	if n <= 0 || n > 1 && r.rest[n-1] == 0 {
		r.fail("%s is no number", name)
		return 0
	}
	r.rest = r.rest[n:]
	if v < low || v > high {
		r.fail("%s is %d, not from %d to %d", name, v, low, high)
		return 0
	}
	return v
}

func (r *reader) int(name string, low, high int) int {
	return int(r.uint(name, uint64(low), uint64(high)))
}

func (r *reader) id(name string, last uint32) uint32 {
	return uint32(r.uint(name, 0, uint64(last)))
}

func (r *reader) flag(name string) bool { return r.uint(name, 0, 1) == 1 }

func (r *reader) point(name string, size int) point {
	edge := uint64(size)<<16 - 1
	return point{fixed(r.uint(name, 0, edge)), fixed(r.uint(name, 0, edge))}
}

func (r *reader) text(name string, most int) string {
	n := r.int(name, 0, most)
	if n > len(r.rest) {
		r.fail("%s is longer than the state", name)
		return ""
	}
	text := string(r.rest[:n])
	r.rest = r.rest[n:]
	return text
}
