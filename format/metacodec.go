package format

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
)

// Field numbers of the metadata chunk are stored in files. They must not
// change. A reader keeps fields that it does not know.
const (
	metaSession   = 1
	metaGame      = 2
	metaBuild     = 3
	metaData      = 4
	metaSeed      = 5
	metaMap       = 6
	metaRate      = 7
	metaFirstTick = 8
	metaStartedAt = 9
	metaHashBytes = 10
	metaHashPart  = 11
	metaWidth     = 12
	metaLabel     = 13
	metaEnv       = 14
	metaOrigin    = 15
	metaPersonal  = 16
)

// AppendMeta appends the body of a metadata chunk: fields of number,
// length and content, by ascending number; empty fields are left out.
func AppendMeta(dst []byte, m *Metadata) []byte {
	field := func(id uint64, content []byte) {
		dst = binary.AppendUvarint(dst, id)
		dst = binary.AppendUvarint(dst, uint64(len(content)))
		dst = append(dst, content...)
	}
	text := func(id uint64, s string) {
		if s != "" {
			field(id, []byte(s))
		}
	}
	number := func(id uint64, v uint64) {
		if v != 0 {
			field(id, binary.AppendUvarint(nil, v))
		}
	}
	text(metaSession, m.Session)
	text(metaGame, m.Game)
	text(metaBuild, m.Build)
	text(metaData, m.Data)
	number(metaSeed, m.Seed)
	text(metaMap, m.Map)
	if m.TickRate.Num != 0 {
		field(metaRate, binary.AppendUvarint(binary.AppendUvarint(nil, uint64(m.TickRate.Num)), uint64(m.TickRate.Den)))
	}
	number(metaFirstTick, uint64(m.FirstTick))
	number(metaStartedAt, zigzag(m.StartedAt))
	number(metaHashBytes, uint64(m.HashBytes))
	for _, p := range m.HashParts {
		field(metaHashPart, append(binary.AppendUvarint(nil, uint64(p.Bytes)), p.Name...))
	}
	number(metaWidth, uint64(m.Width))
	for _, l := range m.Labels {
		field(metaLabel, append(appendText(nil, l.Key), l.Value...))
	}
	for _, l := range m.Env {
		field(metaEnv, append(appendText(nil, l.Key), l.Value...))
	}
	if m.Origin.Format != "" {
		field(metaOrigin, append(appendText(nil, m.Origin.Format), m.Origin.Header...))
	}
	for _, key := range m.Personal {
		text(metaPersonal, key)
	}
	return append(dst, m.unknown...)
}

// ParseMeta reads the body of a metadata chunk and checks it with Validate.
func ParseMeta(body []byte) (*Metadata, error) {
	m := &Metadata{}
	c := cursor{b: body}
	last := uint64(0)
	for c.err == nil && c.rest() > 0 {
		at := c.off
		id := c.uvarint("a field number")
		content := c.bytes(c.count("the length of a field", MaxOrigin+MaxText, 1), "a field")
		if c.err == nil && (id < last || id == last && !repeats(id)) {
			c.off = at
			c.fail("field %d after field %d", id, last)
		}
		last = id
		if c.err != nil {
			break
		}
		f := cursor{b: content}
		if m.setField(id, &f) {
			c.failIn(id, content, f.done())
		} else {
			m.unknown = append(m.unknown, body[at:c.off]...)
		}
	}
	if err := c.done(); err != nil {
		return nil, err
	}
	if err := m.Validate(); err != nil {
		return nil, corrupt(0, "metadata: %v", err)
	}
	if !bytes.Equal(AppendMeta(nil, m), body) {
		return nil, corrupt(0, "metadata: an empty field is written out")
	}
	return m, nil
}

func repeats(id uint64) bool {
	return id == metaHashPart || id == metaLabel || id == metaEnv || id > metaOrigin
}

// setField reads one field from f; false means that its number is not known.
func (m *Metadata) setField(id uint64, f *cursor) bool {
	text := func() string { return string(f.bytes(f.rest(), "the text")) }
	switch id {
	case metaSession:
		m.Session = text()
	case metaGame:
		m.Game = text()
	case metaBuild:
		m.Build = text()
	case metaData:
		m.Data = text()
	case metaSeed:
		m.Seed = f.uvarint("the seed")
	case metaMap:
		m.Map = text()
	case metaRate:
		m.TickRate = Rate{uint32(f.limited("the rate's numerator", 1<<32-1)), uint32(f.limited("the rate's denominator", 1<<32-1))}
	case metaFirstTick:
		m.FirstTick = f.tick("the first tick")
	case metaStartedAt:
		m.StartedAt = unzigzag(f.uvarint("the start time"))
	case metaHashBytes:
		m.HashBytes = int(f.limited("the hash width", MaxHashBytes))
	case metaHashPart:
		m.HashParts = append(m.HashParts, HashPart{Bytes: int(f.limited("the part's width", MaxHashBytes)), Name: text()})
	case metaWidth:
		m.Width = Width(f.limited("the command width", 255))
	case metaLabel:
		m.Labels = append(m.Labels, Label{f.text("the label's key"), text()})
	case metaEnv:
		m.Env = append(m.Env, Label{f.text("the fact's key"), text()})
	case metaOrigin:
		m.Origin = Origin{Format: f.text("the origin's format"), Header: bytes.Clone(f.bytes(f.rest(), "the origin's header"))}
	case metaPersonal:
		m.Personal = append(m.Personal, text())
	default:
		return false
	}
	if len(m.Personal) > 2*MaxLabels {
		f.fail("more than %d personal keys", 2*MaxLabels)
	}
	if len(m.HashParts) > MaxHashBytes || len(m.Labels) > MaxLabels || len(m.Env) > MaxLabels {
		f.fail("more than %d labels, or %d parts of a hash", MaxLabels, MaxHashBytes)
	}
	return true
}

func (c *cursor) limited(field string, most uint64) uint64 {
	v := c.uvarint(field)
	if c.err == nil && v > most {
		c.fail("%s is %d, the most is %d", field, v, most)
		return 0
	}
	return v
}

// Validate checks that the metadata can be stored: limits, a hash width
// that its parts add up to, a width of 8 or 16. The error names the field.
func (m *Metadata) Validate() error {
	if m.Session != "" {
		if err := ValidSession(m.Session); err != nil {
			return err
		}
	}
	for _, t := range [...]struct{ name, text string }{{"game", m.Game}, {"build", m.Build}, {"data", m.Data}, {"map", m.Map}} {
		if len(t.text) > MaxText {
			return fmt.Errorf("%w: %s has %d bytes, the most is %d", ErrLimit, t.name, len(t.text), MaxText)
		}
	}
	if m.Width != Width8 && m.Width != Width16 {
		return fmt.Errorf("command width %d: use 8 or 16", m.Width)
	}
	if (m.TickRate.Num == 0) != (m.TickRate.Den == 0) {
		return fmt.Errorf("tick rate %d/%d: use two positive numbers, or 0/0 for a game without a clock", m.TickRate.Num, m.TickRate.Den)
	}
	if m.FirstTick > MaxTick {
		return fmt.Errorf("%w: first tick %d, the most is %d", ErrLimit, m.FirstTick, MaxTick)
	}
	if err := m.validateHash(); err != nil {
		return err
	}
	if len(m.Origin.Header) > MaxOrigin {
		return fmt.Errorf("%w: header of %d bytes, the most kept is %d", ErrLimit, len(m.Origin.Header), MaxOrigin)
	}
	if err := validatePersonal(m.Personal); err != nil {
		return err
	}
	return validateLabels(m.Labels, m.Env)
}

func (m *Metadata) validateHash() error {
	if m.HashBytes < 0 || m.HashBytes > MaxHashBytes {
		return fmt.Errorf("%w: state hashes of %d bytes, 0 to %d", ErrLimit, m.HashBytes, MaxHashBytes)
	}
	sum := 0
	for _, p := range m.HashParts {
		if p.Bytes <= 0 || len(p.Name) > MaxText {
			return fmt.Errorf("hash part %.80q has %d bytes: at least 1", p.Name, p.Bytes)
		}
		sum += p.Bytes
	}
	if len(m.HashParts) > 0 && sum != m.HashBytes {
		return fmt.Errorf("hash parts add up to %d bytes, the hash has %d", sum, m.HashBytes)
	}
	return nil
}

func validatePersonal(keys []string) error {
	if len(keys) > 2*MaxLabels {
		return fmt.Errorf("%w: %d personal keys, the most is %d", ErrLimit, len(keys), 2*MaxLabels)
	}
	for _, key := range keys {
		if key == "" || len(key) > MaxText {
			return fmt.Errorf("%w: personal key %.80q has %d bytes: use 1 to %d", ErrLimit, key, len(key), MaxText)
		}
	}
	return nil
}

func validateLabels(lists ...[]Label) error {
	for _, list := range lists {
		if len(list) > MaxLabels {
			return fmt.Errorf("%w: %d labels, the most is %d", ErrLimit, len(list), MaxLabels)
		}
		for _, l := range list {
			if len(l.Key) > MaxText || len(l.Value) > MaxText {
				return fmt.Errorf("%w: label %.80q has %d bytes, the most is %d", ErrLimit, l.Key, max(len(l.Key), len(l.Value)), MaxText)
			}
		}
	}
	return nil
}

// AppendBook appends the body of a code-book chunk: a count, then code,
// flags, name and parameters of each; a parameter is flags, name and type.
func AppendBook(dst []byte, b *CodeBook) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(b.Codes)))
	for _, code := range b.Codes {
		dst = binary.AppendUvarint(dst, uint64(code.Code))
		dst = append(dst, flag(code.Passive))
		dst = appendText(dst, code.Name)
		dst = binary.AppendUvarint(dst, uint64(len(code.Params)))
		for _, p := range code.Params {
			dst = append(dst, flag(p.Personal))
			dst = appendText(dst, p.Name)
			dst = appendText(dst, p.Type)
		}
	}
	return dst
}

func flag(set bool) byte {
	if set {
		return 1
	}
	return 0
}

// ParseBook reads the body of a code-book chunk and checks it.
func ParseBook(body []byte) (*CodeBook, error) {
	c := cursor{b: body}
	n := c.count("the number of codes", MaxCodes, 4)
	b := &CodeBook{Codes: make([]CodeInfo, 0, n)}
	for range n {
		b.Codes = append(b.Codes, c.codeInfo())
	}
	if err := c.done(); err != nil {
		return nil, err
	}
	if err := b.Validate(); err != nil {
		return nil, corrupt(0, "code book: %v", err)
	}
	return b, nil
}

func (c *cursor) codeInfo() CodeInfo {
	code := CodeInfo{Code: uint16(c.limited("a code", 1<<16-1)), Passive: c.flag("a code's flags"), Name: c.text("a code's name")}
	n := c.count("the number of parameters", MaxParams, 3)
	for range n {
		code.Params = append(code.Params, ParamInfo{Personal: c.flag("a parameter's flags"),
			Name: c.text("a parameter's name"), Type: c.text("a parameter's type")})
	}
	return code
}

func (c *cursor) flag(field string) bool {
	v := c.byte(field)
	if v > 1 {
		c.fail("%s are %d: 0 or 1", field, v)
	}
	return v == 1
}

// ParamTypes lists the words that a code book uses for parameter types,
// besides the empty word for any.
var ParamTypes = []string{"bool", "int", "float", "bigint", "string", "bytes", "ints"}

// Validate checks that no code stands twice and every parameter type is
// known.
func (b *CodeBook) Validate() error {
	seen := make(map[uint16]bool, len(b.Codes))
	for _, code := range b.Codes {
		if seen[code.Code] {
			return fmt.Errorf("code %d stands twice", code.Code)
		}
		seen[code.Code] = true
		if len(code.Name) > MaxText || len(code.Params) > MaxParams {
			return fmt.Errorf("%w: code %d has a name of %d bytes and %d parameters", ErrLimit, code.Code, len(code.Name), len(code.Params))
		}
		for _, p := range code.Params {
			if !knownParamType(p.Type) {
				return fmt.Errorf("code %d, parameter %.80q: type %.80q, use one of %s", code.Code, p.Name, p.Type, strings.Join(ParamTypes, ", "))
			}
			if len(p.Name) > MaxText {
				return fmt.Errorf("%w: code %d has a parameter name of %d bytes", ErrLimit, code.Code, len(p.Name))
			}
		}
	}
	return nil
}

func knownParamType(t string) bool {
	for _, k := range ParamTypes {
		if t == k {
			return true
		}
	}
	return t == ""
}

// Fits8 tells whether the book proves that 8-bit codes are enough: it has
// codes, and none is above 255.
func (b *CodeBook) Fits8() bool {
	if b == nil || len(b.Codes) == 0 {
		return false
	}
	for _, c := range b.Codes {
		if c.Code > 255 {
			return false
		}
	}
	return true
}
