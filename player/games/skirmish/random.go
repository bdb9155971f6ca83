package skirmish

import "math/bits"

// random is a splitmix64 generator; its value is its whole state.
type random uint64

func (r *random) next() uint64 {
	*r += 0x9e3779b97f4a7c15
	return scramble(uint64(*r))
}

// below gives a number from 0 to n-1; n is at least 1.
func (r *random) below(n int) int {
	high, _ := bits.Mul64(r.next(), uint64(n))
	return int(high)
}

// between gives a number from low to high, both included.
func (r *random) between(low, high int) int { return low + r.below(high-low+1) }

// chance is true in percent of 100 calls.
func (r *random) chance(percent int) bool { return r.below(100) < percent }

// scramble is splitmix64's finisher: a bijection under which every bit of
// the input reaches every bit of the output.
func scramble(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
