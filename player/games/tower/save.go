package tower

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// A saved state, all numbers big-endian:
//
//	+--------+---------+------+--------+---------+-------+
//	| "TOWR" | version | seed | random | outcome | stats |
//	|   4    |   u8    | u64  |  u64   |   u8    | i64.. |
//	+--------+---------+------+--------+---------+-------+
//	| floors | each: entry, exit, cells | moves | each | sum |
//	|   u8   |       u8     u8    u8..  |  u16  |  u8  | u64 |
//	+--------+--------------------------+-------+------+-----+
//
// The sum is FNV-1a over all before it: a single damaged byte is always
// found. A state has exactly one form.
const (
	saveMagic   = "TOWR"
	saveVersion = 1
	headBytes   = len(saveMagic) + 1 + 8 + 8 + 1 + 8*statCount + 1
	floorBytes  = 2 + cells
	sumBytes    = 8
)

var (
	// ErrState is returned for bytes that are not a state saved by this
	// package, or a damaged one: the keyframe is lost, play from another.
	ErrState = errors.New("tower: not a saved state")
	// ErrStateVersion is returned for a state of another version of the
	// form: use the build that the replay names.
	ErrStateVersion = errors.New("tower: saved state of another version")
)

// save appends the state.
func (s *state) save(dst []byte) []byte {
	start := len(dst)
	dst = append(append(dst, saveMagic...), saveVersion)
	dst = binary.BigEndian.AppendUint64(dst, s.seed)
	dst = binary.BigEndian.AppendUint64(dst, uint64(s.random))
	dst = append(dst, byte(s.outcome))
	for _, f := range s.hero.stats() {
		dst = binary.BigEndian.AppendUint64(dst, uint64(*f.value))
	}
	dst = append(dst, byte(len(s.floors)))
	for i := range s.floors {
		dst = s.floors[i].save(dst)
	}
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(s.queue)))
	for _, d := range s.queue {
		dst = append(dst, byte(d))
	}
	return binary.BigEndian.AppendUint64(dst, sumOf(dst[start:]))
}

func (f *floor) save(dst []byte) []byte {
	dst = append(dst, byte(f.entry), byte(f.exit))
	for _, t := range &f.grid {
		dst = append(dst, byte(t))
	}
	return dst
}

func sumOf(b []byte) uint64 {
	sum := fnvBasis
	for _, c := range b {
		sum.byte(c)
	}
	return uint64(sum)
}

// load reads a state that save wrote and checks all of it.
func load(b []byte) (state, error) {
	body, err := unwrap(b)
	if err != nil {
		return state{}, err
	}
	var s state
	rest, err := s.parseHead(body)
	if err != nil {
		return state{}, err
	}
	if rest, err = s.parseFloors(rest); err != nil {
		return state{}, err
	}
	if err := s.parseQueue(rest); err != nil {
		return state{}, err
	}
	return s, s.check()
}

// unwrap checks what surrounds a saved state and gives its inside.
func unwrap(b []byte) ([]byte, error) {
	if len(b) < headBytes+sumBytes || string(b[:len(saveMagic)]) != saveMagic {
		return nil, fmt.Errorf("%w: %d bytes without its mark or too short", ErrState, len(b))
	}
	if v := b[len(saveMagic)]; v != saveVersion {
		return nil, fmt.Errorf("%w: %d, this build reads %d", ErrStateVersion, v, saveVersion)
	}
	body, sum := b[:len(b)-sumBytes], binary.BigEndian.Uint64(b[len(b)-sumBytes:])
	if sumOf(body) != sum {
		return nil, fmt.Errorf("%w: its sum does not match", ErrState)
	}
	return body[len(saveMagic)+1:], nil
}

// parseHead reads all before the floors, which unwrap has found to be there.
func (s *state) parseHead(b []byte) ([]byte, error) {
	s.seed = binary.BigEndian.Uint64(b)
	s.random = random(binary.BigEndian.Uint64(b[8:]))
	s.outcome = outcome(b[16])
	b = b[17:]
	for _, f := range s.hero.stats() {
		n := binary.BigEndian.Uint64(b)
		if n > uint64(f.limit) {
			return nil, fmt.Errorf("%w: %s is %d, above %d", ErrState, f.name, n, f.limit)
		}
		*f.value = int64(n)
		b = b[8:]
	}
	return b, nil
}

func (s *state) parseFloors(b []byte) ([]byte, error) {
	count := int(b[0])
	b = b[1:]
	if count < minFloors || count > maxFloors || len(b) < count*floorBytes {
		return nil, fmt.Errorf("%w: %d floors in %d bytes", ErrState, count, len(b))
	}
	s.floors = make([]floor, count)
	for i := range s.floors {
		s.floors[i].parse(b)
		b = b[floorBytes:]
	}
	return b, nil
}

func (f *floor) parse(b []byte) {
	f.entry, f.exit = cell(b[0]), cell(b[1])
	for c := range f.grid {
		f.grid[c] = tile(b[2+c])
	}
}

func (s *state) parseQueue(b []byte) error {
	if len(b) < 2 {
		return fmt.Errorf("%w: it ends in the moves", ErrState)
	}
	count := int(binary.BigEndian.Uint16(b))
	if count > maxQueue || len(b) != 2+count {
		return fmt.Errorf("%w: %d moves in %d bytes", ErrState, count, len(b)-2)
	}
	for _, d := range b[2:] {
		if d >= directions {
			return fmt.Errorf("%w: no direction %d", ErrState, d)
		}
		s.queue = append(s.queue, direction(d))
	}
	return nil
}
