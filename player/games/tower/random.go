package tower

// random is the game's own generator (splitmix64), part of the state, so
// that every machine and every Go release draws the same numbers.
type random uint64

func (r *random) next() uint64 {
	*r += 0x9e3779b97f4a7c15
	z := uint64(*r)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// below draws from 0 to n-1; n is above zero. The bias of the remainder is
// far below anything a game could notice.
func (r *random) below(n int) int {
	return int(r.next() % uint64(n))
}

// percent is true in p of 100 draws.
func (r *random) percent(p int) bool { return r.below(100) < p }

// from starts a generator for one purpose, so that what one part of the
// game draws does not move what another part gets.
func from(seed, purpose uint64) random {
	r := random(seed ^ purpose*0xd1342543de82ef95)
	r.next()
	return r
}
