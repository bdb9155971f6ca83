package skirmish

import "encoding/binary"

// digest is a running 64-bit hash of words. Every step is a bijection of
// the sum for a given word, and of the word for a given sum: two states
// that differ in one word never meet again through that word.
type digest uint64

const digestPrime = 0x9fb21c651e98df25

func newDigest(salt uint64) digest { return digest(scramble(salt)) }

func (d *digest) add(word uint64) {
	x := (uint64(*d) ^ word) * digestPrime
	*d = digest(x ^ x>>32)
}

func (d digest) long() uint64 { return scramble(uint64(d)) }

func (d digest) short() uint32 {
	sum := d.long()
	return uint32(sum ^ sum>>32)
}

// addBytes adds a text or a run of bytes and its length.
func (d *digest) addBytes(b []byte) {
	d.add(uint64(len(b)))
	for len(b) >= 8 {
		d.add(binary.LittleEndian.Uint64(b))
		b = b[8:]
	}
	var rest [8]byte
	copy(rest[:], b)
	d.add(binary.LittleEndian.Uint64(rest[:]))
}

// maxHash is the widest state hash a session may ask for.
const maxHash = 32

// Hash appends the hash of the state: the four parts of HashParts, or as
// many bytes as the session's metadata says in one part. Without a state
// it appends nothing.
func (g *Game) Hash(dst []byte) []byte {
	if !g.ready {
		return dst
	}
	parts := [...]digest{g.hashWorld(), g.hashUnits(), g.hashEconomy(), g.hashRandom()}
	if !g.whole {
		for _, p := range parts {
			dst = binary.BigEndian.AppendUint32(dst, p.short())
		}
		return dst
	}
	all := newDigest(5)
	for _, p := range parts {
		all.add(p.long())
	}
	var wide [maxHash]byte
	for i := 0; i < maxHash; i += 8 {
		binary.BigEndian.PutUint64(wide[i:], all.long())
		all.add(uint64(i))
	}
	return append(dst, wide[:g.hashBytes]...)
}

func (g *Game) hashWorld() digest {
	d := newDigest(1)
	d.add(g.seed)
	d.add(textSum(g.mapName))
	d.add(g.tick)
	d.add(uint64(g.layout.sum)<<32 | uint64(g.winner)<<8 | bit(g.over))
	d.add(uint64(len(g.deposits))<<32 | uint64(len(g.buildings)))
	for i := range g.deposits {
		p := &g.deposits[i]
		d.add(uint64(p.id)<<32 | uint64(p.x)<<24 | uint64(p.y)<<16 | uint64(p.what))
		d.add(uint64(uint32(p.left)))
	}
	for i := range g.buildings {
		g.buildings[i].hash(&d)
	}
	return d
}

func (b *building) hash(d *digest) {
	d.add(uint64(b.id)<<32 | uint64(b.owner)<<24 | uint64(b.kind)<<16 | uint64(b.x)<<8 | uint64(b.y))
	d.add(uint64(uint32(b.hp))<<32 | uint64(b.built)<<16 | uint64(b.trained))
	queue := uint64(b.queued)<<8 | bit(b.rallies)
	for _, k := range b.queue {
		queue = queue<<8 | uint64(k)
	}
	d.add(queue)
	d.add(b.rally.word())
}

func (g *Game) hashUnits() digest {
	d := newDigest(2)
	d.add(uint64(len(g.units))<<32 | uint64(len(g.arrows)))
	d.add(uint64(g.cursor))
	for i := range g.units {
		g.units[i].hash(&d)
	}
	for i := range g.arrows {
		a := &g.arrows[i]
		d.add(a.at.word())
		d.add(uint64(a.target)<<32 | uint64(uint32(a.damage)))
	}
	return d
}

func (u *unit) hash(d *digest) {
	d.add(uint64(u.id)<<32 | uint64(u.owner)<<24 | uint64(u.kind)<<16 | uint64(u.recharge)<<8 | uint64(u.order))
	d.add(u.at.word())
	d.add(u.goal.word())
	d.add(uint64(u.target)<<32 | uint64(u.foe))
	d.add(uint64(u.source)<<32 | uint64(u.cargo)<<16 | uint64(u.load)<<8 | uint64(u.work))
	d.add(uint64(uint32(u.hp))<<32 | uint64(uint32(u.route.nearest)))
	r := &u.route
	d.add(uint64(r.length)<<40 | uint64(r.next)<<32 | uint64(r.rest)<<24 | uint64(r.stall)<<16 | uint64(r.tries)<<8 | bit(r.asked))
	if r.length == 0 {
		return
	}
	for i := 0; i < maxRoute; i += 4 {
		t := r.tiles[i : i+4 : i+4]
		d.add(uint64(t[0])<<48 | uint64(t[1])<<32 | uint64(t[2])<<16 | uint64(t[3]))
	}
}

func (g *Game) hashEconomy() digest {
	d := newDigest(3)
	d.add(uint64(len(g.sides)))
	for i := range g.sides {
		s := &g.sides[i]
		d.add(s.player)
		d.add(uint64(s.standing))
		d.add(uint64(s.gold))
		d.add(uint64(s.wood))
	}
	return d
}

func (g *Game) hashRandom() digest {
	d := newDigest(4)
	d.add(uint64(g.random))
	d.add(uint64(g.lastID))
	return d
}

// word packs a point; positions need 24 bits and never more than 32.
func (p point) word() uint64 { return uint64(uint32(p.x))<<32 | uint64(uint32(p.y)) }

func bit(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}
