package tower

import (
	"encoding/binary"

	"reprise/format"
)

// The state hash has a part for each thing that can go astray on its own,
// so that a mismatch says where to look.
const (
	heroBytes   = 8
	floorsBytes = 8
	randomBytes = 4
	hashBytes   = heroBytes + floorsBytes + randomBytes
)

// HashParts names the parts of the state hash, in order.
func HashParts() []format.HashPart {
	return []format.HashPart{
		{Name: "hero", Bytes: heroBytes},
		{Name: "floors", Bytes: floorsBytes},
		{Name: "random", Bytes: randomBytes},
	}
}

// hash appends the state's hash.
func (s *state) hash(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint64(dst, s.hashHero())
	dst = binary.BigEndian.AppendUint64(dst, s.hashFloors())
	mixed := s.random
	return binary.BigEndian.AppendUint32(dst, uint32(mixed.next()>>32))
}

// hashHero covers the hero, the outcome and moves not yet walked.
func (s *state) hashHero() uint64 {
	sum := fnvBasis
	for _, f := range s.hero.stats() {
		sum.number(uint64(*f.value))
	}
	sum.byte(byte(s.outcome))
	for _, d := range s.queue {
		sum.byte(byte(d))
	}
	return uint64(sum)
}

func (s *state) hashFloors() uint64 {
	sum := fnvBasis
	for i := range s.floors {
		for _, t := range &s.floors[i].grid {
			sum.byte(byte(t))
		}
	}
	return uint64(sum)
}

// fnv is the 64-bit FNV-1a sum.
type fnv uint64

const fnvBasis fnv = 0xcbf29ce484222325

func (f *fnv) byte(b byte) { *f = (*f ^ fnv(b)) * 0x100000001b3 }

func (f *fnv) number(n uint64) {
	for range 8 {
		f.byte(byte(n))
		n >>= 8
	}
}
