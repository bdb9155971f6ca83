package format

import "math/bits"

// The model codes a chunk bit by bit. Each bit's probability is mixed from
// what several contexts have seen, and an arithmetic coder spends as little on
// the bit as the probability was right. All of it is integer arithmetic: every
// machine gives the same bytes. It starts anew with each chunk.

// A probability of 16 bits is that of a bit of 1, in 1/65536. The mixer adds
// logits, ln(p/(1-p)) in 1/256; squash is the way back. squashPoints are the
// probabilities at the logits -11, -10.5, ... 11. They must not change.
var squashPoints = [45]int32{
	1, 2, 3, 5, 8, 13, 22, 36, 60, 98, 162, 267, 439, 720, 1179, 1921, 3108, 4971, 7812, 11955, 17625, 24743, 32768,
	40793, 47911, 53581, 57724, 60565, 62428, 63615, 64357, 64816, 65097, 65269, 65374, 65438, 65476, 65500, 65514, 65523, 65528, 65531, 65533, 65534, 65535,
}

const (
	// maxLogit bounds the mixer's sum, maxInput each of its inputs.
	maxLogit = 2816
	maxInput = 2047
	// logitStep is the distance of two points.
	logitStep = 128
)

var (
	squashTable  = makeSquash()
	stretchTable = makeStretch()
	reciprocals  = makeReciprocals()
)

// makeSquash joins the points by straight lines.
func makeSquash() (t [2*maxLogit + 1]uint16) {
	for i := range t {
		k, f := i/logitStep, int32(i%logitStep)
		p := squashPoints[k] * (logitStep - f)
		if f > 0 {
			p += squashPoints[k+1] * f
		}
		t[i] = uint16((p + logitStep/2) / logitStep)
	}
	return t
}

// squash gives the probability of a logit.
func squash(logit int64) int32 {
	return int32(squashTable[max(-maxLogit, min(maxLogit, logit))+maxLogit])
}

// makeStretch gives, for each probability in 1/4096, the least logit whose
// probability is not below it.
func makeStretch() (t [4096]int16) {
	logit := -maxInput
	for p := range t {
		for logit < maxInput && int(squashTable[logit+maxLogit]>>4) < p {
			logit++
		}
		t[p] = int16(logit)
	}
	return t
}

// makeReciprocals gives 65536/(n + 1.5).
func makeReciprocals() (t [chanceLimit + 1]uint32) {
	for n := range t {
		t[n] = uint32(131072 / (2*n + 3))
	}
	return t
}

// A chance is an adaptive probability: 22 bits of it, then a count of 10 bits of
// what it has seen. The more it has seen, the less it moves.
type chance uint32

// chanceLimit is where the count stops. It is a mask of the count, too.
const chanceLimit = 127

func (c chance) logit() int32 { return int32(stretchTable[c>>20]) }

// learn moves the chance towards a bit.
func (c *chance) learn(bit uint32) {
	n, p := *c&chanceLimit, int64(*c>>10)
	target := int64(bit) * (1<<22 - 1)
	p += (target - p) * int64(reciprocals[n]) >> 16
	if n < chanceLimit {
		n++
	}
	*c = chance(p)<<10 | n
}

// A state is one byte that tells what bits a context has seen: how many zeros
// and ones, about, and where it saw both which came last. States are numbered
// by their total, then by their zeros from many to few, then by the last bit.

// stateBounds are the most of one bit where the other was seen 0, 1, 2, ...
// times. They must not change.
var stateBounds = [...]int{41, 20, 12, 5, 4}

type state struct{ zeros, ones, last int }

func (s state) valid() bool {
	few := min(s.zeros, s.ones)
	return few < len(stateBounds) && max(s.zeros, s.ones) <= stateBounds[few]
}

// after is the state after one more bit. The count of the other bit shrinks:
// what was seen last counts most.
func (s state) after(bit int) state {
	if bit == 1 {
		s.zeros, s.ones = shrunk(s.zeros), s.ones+1
	} else {
		s.zeros, s.ones = s.zeros+1, shrunk(s.ones)
	}
	for !s.valid() {
		if s.zeros > s.ones {
			s.zeros--
		} else {
			s.ones--
		}
	}
	s.last = bit
	if s.zeros == 0 || s.ones == 0 {
		s.last = 0
	}
	return s
}

func shrunk(n int) int {
	if n < 4 {
		return n
	}
	return 1 + bits.Len(uint(n))
}

// stateTable has the states' numbers.
type stateTable struct {
	next  [2][256]uint8 // by the bit that comes
	first [256]chance   // what a state is worth before anything is learned
	total [256]uint8
}

var states = makeStates()

// firstSeen is the count that a state's first chance begins with.
const firstSeen = 6

func makeStates() (t stateTable) {
	var list []state
	at := map[state]uint8{}
	for total := 0; total <= stateBounds[0]; total++ {
		for zeros := total; zeros >= 0; zeros-- {
			for last := range 2 {
				s := state{zeros, total - zeros, last}
				if s.valid() && (last == 0 || s.zeros > 0 && s.ones > 0) {
					at[s] = uint8(len(list))
					list = append(list, s)
				}
			}
		}
	}
	for i, s := range list {
		t.next[0][i], t.next[1][i] = at[s.after(0)], at[s.after(1)]
		t.first[i] = chance(uint64(5*s.ones+2)<<22/uint64(5*(s.zeros+s.ones)+4))<<10 | firstSeen
		t.total[i] = uint8(s.zeros + s.ones)
	}
	return t
}
