package wasm

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"reprise/format"
	"reprise/player"
)

// A saved state is the memory, and behind it
//
//	bytes  what
//	8 × n  the mutable globals
//	8      the next tick
//	8      the clock, in nanoseconds
//	4, 4   address and size of the buffer of messages
//	4      n
//	32     SHA-256 of the module
//	4      CRC-32C of all before
//	8      stateMagic
//
// every number little-endian. The memory stands first, so that equal pages of
// two states stand at equal places. These values must not change.
const (
	stateMagic = "RPSWASM1"
	stateFixed = 8 + 8 + 4 + 4 + 4 + sha256.Size
	stateTail  = stateFixed + 4 + len(stateMagic)
)

var (
	order      = binary.LittleEndian
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
	// errState is a saved state that cannot be restored.
	errState = errors.New("the saved state of a module is damaged")
)

// isSaved tells a state that Save gave from one that a game wrote.
func isSaved(state []byte) bool {
	return len(state) >= stateTail && bytes.HasSuffix(state, []byte(stateMagic))
}

// Save appends the whole state after the last tick. The error is
// player.ErrUnable where the module keeps state that the host cannot reach.
func (s *Simulation) Save(dst []byte) ([]byte, error) {
	if err := s.ready(); err != nil {
		return dst, err
	}
	in := s.instance
	kept := &snapshot{module: s.module, next: s.next, now: in.world.now, buffer: in.buffer, room: in.room, globals: readGlobals(in.globals)}
	return kept.appendTail(append(dst, memoryOf(in)...), len(dst)), nil
}

// appendTail completes a saved state, whose memory is dst[from:].
func (s *snapshot) appendTail(dst []byte, from int) []byte {
	for _, v := range s.globals {
		dst = order.AppendUint64(dst, v)
	}
	dst = order.AppendUint64(dst, uint64(s.next))
	dst = order.AppendUint64(dst, s.now)
	dst = order.AppendUint32(dst, s.buffer)
	dst = order.AppendUint32(dst, s.room)
	dst = order.AppendUint32(dst, uint32(len(s.globals)))
	dst = append(dst, s.module.digest[:]...)
	dst = order.AppendUint32(dst, crc32.Checksum(dst[from:], castagnoli))
	return append(dst, stateMagic...)
}

// Load restores a state that Save gave in the same replay, in this process or
// another; next is the tick that will be given. The error matches
// player.ErrStart where the bytes are no such state.
func (s *Simulation) Load(state []byte, next format.Tick) error {
	if err := s.module.Snapshots(); err != nil {
		return err
	}
	if s.instance == nil {
		return errNoReset
	}
	kept, err := s.module.parseState(state)
	if err == nil && kept.next != next {
		err = fmt.Errorf("the saved state is the one before tick %d, not before tick %d", kept.next, next)
	}
	if err != nil {
		s.broken = fmt.Errorf("%w: %w", player.ErrStart, err)
		return s.broken
	}
	return s.Restore(kept)
}

// parseState reads a saved state.
func (m *Module) parseState(state []byte) (*snapshot, error) {
	if !isSaved(state) {
		return nil, errState
	}
	state = state[:len(state)-len(stateMagic)]
	body, sum := state[:len(state)-4], order.Uint32(state[len(state)-4:])
	if crc32.Checksum(body, castagnoli) != sum {
		return nil, errState
	}
	memory, fixed := body[:len(body)-stateFixed], body[len(body)-stateFixed:]
	if digest := fixed[stateFixed-sha256.Size:]; !bytes.Equal(digest, m.digest[:]) {
		return nil, fmt.Errorf("the saved state is one of the module %s%x", BuildPrefix, digest)
	}
	kept := &snapshot{module: m, next: format.Tick(order.Uint64(fixed)), now: order.Uint64(fixed[8:]),
		buffer: order.Uint32(fixed[16:]), room: order.Uint32(fixed[20:])}
	n := order.Uint32(fixed[24:])
	if int(n) != len(m.code.names) || len(memory) < 8*int(n) || (len(memory)-8*int(n))%wasmPage != 0 {
		return nil, errState
	}
	memory, globals := memory[:len(memory)-8*int(n)], memory[len(memory)-8*int(n):]
	for ; len(globals) > 0; globals = globals[8:] {
		kept.globals = append(kept.globals, order.Uint64(globals))
	}
	if uint64(len(memory)) < uint64(m.code.least)*wasmPage {
		return nil, errState
	}
	kept.pages, _ = keepPages(memory, nil)
	return kept, nil
}
