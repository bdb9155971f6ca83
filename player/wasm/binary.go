package wasm

import (
	"bytes"
	"errors"
	"fmt"
	"unicode/utf8"
)

// ErrModule is returned for a file that is no module which can be played: no
// WebAssembly, damaged, or without what INTERFACE.md asks for.
var ErrModule = errors.New("not a module that can be played")

// The ids of sections are part of WebAssembly.
const (
	sectionCustom    = 0
	sectionType      = 1
	sectionImport    = 2
	sectionFunction  = 3
	sectionTable     = 4
	sectionMemory    = 5
	sectionGlobal    = 6
	sectionExport    = 7
	sectionStart     = 8
	sectionElement   = 9
	sectionCode      = 10
	sectionData      = 11
	sectionDataCount = 12
)

// sectionOrder gives the place of each section but custom ones, which may
// stand anywhere.
var sectionOrder = [...]int{
	sectionType: 1, sectionImport: 2, sectionFunction: 3, sectionTable: 4, sectionMemory: 5, sectionGlobal: 6,
	sectionExport: 7, sectionStart: 8, sectionElement: 9, sectionDataCount: 10, sectionCode: 11, sectionData: 12,
}

// Kinds of imports and exports.
const (
	kindFunc   = 0
	kindTable  = 1
	kindMemory = 2
	kindGlobal = 3
)

// Types of values.
const (
	valueI32    = 0x7f
	valueI64    = 0x7e
	valueF32    = 0x7d
	valueF64    = 0x7c
	valueV128   = 0x7b
	valueFunc   = 0x70
	valueExtern = 0x6f
)

var magic = []byte("\x00asm\x01\x00\x00\x00")

// section is one section of a module.
type section struct {
	id   byte
	body []byte
	// at is where the body begins in the file.
	at int
}

// input reads the bytes of a module. After the first error it gives zeros.
type input struct {
	b   []byte
	off int
	// base is where b begins in the file.
	base int
	err  error
}

func (r *input) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: byte %d: %s", ErrModule, r.base+r.off, fmt.Sprintf(format, args...))
	}
}

func (r *input) rest() int { return len(r.b) - r.off }

// more reports whether there is more to read.
func (r *input) more() bool { return r.err == nil && r.off < len(r.b) }

func (r *input) byte(what string) byte {
	if r.err == nil && r.rest() < 1 {
		r.fail("it ends before %s", what)
	}
	if r.err != nil {
		return 0
	}
	r.off++
	return r.b[r.off-1]
}

func (r *input) bytes(n uint32, what string) []byte {
	if r.err == nil && uint64(n) > uint64(r.rest()) {
		r.fail("%s has %d bytes, %d are left", what, n, r.rest())
	}
	if r.err != nil {
		return nil
	}
	taken := r.b[r.off : r.off+int(n) : r.off+int(n)]
	r.off += int(n)
	return taken
}

// u32 reads an unsigned number of at most 32 bits.
func (r *input) u32(what string) uint32 {
	var v uint64
	for shift := 0; shift < 35; shift += 7 {
		b := r.byte(what)
		v |= uint64(b&0x7f) << shift
		if b < 0x80 {
			if v > 1<<32-1 {
				r.fail("%s is above 32 bits", what)
				return 0
			}
			return uint32(v)
		}
	}
	r.fail("%s has more than 5 bytes", what)
	return 0
}

// skipSigned passes a signed number of at most this many bits.
func (r *input) skipSigned(bits int, what string) {
	for range (bits + 6) / 7 {
		if r.byte(what) < 0x80 {
			return
		}
	}
	r.fail("%s is above %d bits", what, bits)
}

// count reads the length of a list whose items have at least one byte each.
func (r *input) count(what string) uint32 {
	n := r.u32(what)
	if r.err == nil && uint64(n) > uint64(r.rest()) {
		r.fail("%d %s do not fit into %d bytes", n, what, r.rest())
		return 0
	}
	return n
}

func (r *input) name(what string) string {
	b := r.bytes(r.u32(what), what)
	if !utf8.Valid(b) {
		r.fail("%s is no text", what)
	}
	return string(b)
}

// done fails where something is left.
func (r *input) done(what string) error {
	if r.err == nil && r.rest() > 0 {
		r.fail("%d bytes stand behind %s", r.rest(), what)
	}
	return r.err
}

// splitSections cuts a module into its sections, which stand in order.
func splitSections(file []byte) ([]section, error) {
	if !bytes.HasPrefix(file, magic) {
		return nil, fmt.Errorf("%w: it does not begin as WebAssembly 1 does", ErrModule)
	}
	r := input{b: file, off: len(magic)}
	var sections []section
	place := 0
	for r.more() {
		s := section{id: r.byte("a section")}
		if int(s.id) >= len(sectionOrder) {
			r.fail("section %d is unknown", s.id)
		}
		n := r.u32("a section's length")
		s.at = r.off
		s.body = r.bytes(n, "a section")
		if r.err != nil {
			break
		}
		if s.id != sectionCustom {
			if sectionOrder[s.id] <= place {
				r.fail("section %d is out of order", s.id)
			}
			place = sectionOrder[s.id]
		}
		sections = append(sections, s)
	}
	return sections, r.err
}

// appendU32 appends a number as WebAssembly writes it.
func appendU32(dst []byte, v uint32) []byte {
	for v >= 0x80 {
		dst = append(dst, byte(v)|0x80)
		v >>= 7
	}
	return append(dst, byte(v))
}

func appendName(dst []byte, name string) []byte {
	return append(appendU32(dst, uint32(len(name))), name...)
}

func appendSection(dst []byte, id byte, body []byte) []byte {
	return append(appendU32(append(dst, id), uint32(len(body))), body...)
}
