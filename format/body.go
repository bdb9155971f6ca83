package format

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// cursor reads the fields of a body. The first failure stays; every read
// after it gives zero values, so that a parser checks once at its end.
type cursor struct {
	b   []byte
	off int
	err error
}

func (c *cursor) fail(what string, args ...any) {
	if c.err == nil {
		c.err = corrupt(c.off, what, args...)
	}
}

func (c *cursor) rest() int { return len(c.b) - c.off }

func (c *cursor) byte(field string) byte {
	if c.err != nil || c.rest() < 1 {
		c.fail("body ends before %s", field)
		return 0
	}
	c.off++
	return c.b[c.off-1]
}

func (c *cursor) uvarint(field string) uint64 {
	if c.err != nil {
		return 0
	}
	v, n := binary.Uvarint(c.b[c.off:])
	if n <= 0 || n != uvarintLen(v) {
		c.fail("%s is not a shortest uvarint of 64 bits", field)
		return 0
	}
	c.off += n
	return v
}

// count reads a number of items of at least size bytes each that follow.
func (c *cursor) count(field string, most uint64, size int) int {
	at := c.off
	v := c.uvarint(field)
	if c.err == nil && (v > most || v > uint64(c.rest()/size)) {
		c.off = at
		c.fail("%s is %d, the most here is %d", field, v, min(most, uint64(c.rest()/size)))
		return 0
	}
	return int(v)
}

func (c *cursor) tick(field string) Tick {
	at := c.off
	v := c.uvarint(field)
	if c.err == nil && v > uint64(MaxTick) {
		c.off = at
		c.fail("%s is %d, the most is %d", field, v, MaxTick)
		return 0
	}
	return Tick(v)
}

func (c *cursor) bytes(n int, field string) []byte {
	if c.err != nil || n < 0 || n > c.rest() {
		c.fail("body ends inside %s", field)
		return nil
	}
	c.off += n
	return c.b[c.off-n : c.off : c.off]
}

func (c *cursor) text(field string) string {
	return string(c.bytes(c.count("the length of "+field, MaxText, 1), field))
}

// done reports the first failure, or bytes that no field claimed.
func (c *cursor) done() error {
	if c.err == nil && c.rest() > 0 {
		c.fail("%d bytes after the last field", c.rest())
	}
	return c.err
}

// failIn fails with what went wrong inside a field whose content was just
// read.
func (c *cursor) failIn(id uint64, content []byte, err error) {
	if err == nil {
		return
	}
	var bad *CorruptError
	if errors.As(err, &bad) {
		c.off += int(bad.Offset) - len(content)
		c.fail("field %d: %s", id, bad.What)
	}
	c.fail("field %d: %v", id, err)
}

func appendText(dst []byte, s string) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(s)))
	return append(dst, s...)
}

func zigzag(v int64) uint64   { return uint64(v<<1) ^ uint64(v>>63) }
func unzigzag(v uint64) int64 { return int64(v>>1) ^ -int64(v&1) }

// AppendGap appends the body of a gap chunk: first, last, flags, reason.
func AppendGap(dst []byte, g Gap) []byte {
	dst = binary.AppendUvarint(dst, uint64(g.First))
	dst = binary.AppendUvarint(dst, uint64(g.Last))
	var flags byte
	if g.ByRecorder {
		flags = 1
	}
	dst = append(dst, flags)
	return appendText(dst, g.Reason)
}

// ParseGap reads the body of a gap chunk.
func ParseGap(body []byte) (Gap, error) {
	c := cursor{b: body}
	g := c.gap()
	return g, c.done()
}

func (c *cursor) gap() Gap {
	g := Gap{First: c.tick("the gap's first tick"), Last: c.tick("the gap's last tick")}
	flags := c.byte("the gap's flags")
	if c.err == nil && (flags > 1 || g.Last < g.First) {
		c.fail("gap from %d to %d with flags %d", g.First, g.Last, flags)
	}
	g.ByRecorder = flags == 1
	g.Reason = c.text("the gap's reason")
	return g
}

// AppendMark appends the body of a mark chunk: tick, player, kind, text.
func AppendMark(dst []byte, m Mark) []byte {
	dst = binary.AppendUvarint(dst, uint64(m.Tick))
	dst = binary.AppendUvarint(dst, m.Player)
	dst = appendText(dst, m.Kind)
	return appendText(dst, m.Text)
}

// ParseMark reads the body of a mark chunk.
func ParseMark(body []byte) (Mark, error) {
	c := cursor{b: body}
	m := c.mark()
	return m, c.done()
}

func (c *cursor) mark() Mark {
	return Mark{Tick: c.tick("the mark's tick"), Player: c.uvarint("the mark's player"),
		Kind: c.text("the mark's kind"), Text: c.text("the mark's text")}
}

// AppendReports appends the body of a reports chunk: a count, then at, of,
// peer, width and hash of each.
func AppendReports(dst []byte, reports []Report) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(reports)))
	for _, r := range reports {
		dst = appendReport(dst, r)
	}
	return dst
}

func appendReport(dst []byte, r Report) []byte {
	dst = binary.AppendUvarint(dst, uint64(r.At))
	dst = binary.AppendUvarint(dst, uint64(r.Of))
	dst = binary.AppendUvarint(dst, r.Peer)
	dst = append(dst, byte(len(r.Hash)))
	return append(dst, r.Hash...)
}

// ParseReports reads the body of a reports chunk. The hashes point into
// body.
func ParseReports(body []byte) ([]Report, error) {
	c := cursor{b: body}
	n := c.count("the number of reports", MaxBody, 5)
	reports := make([]Report, 0, n)
	for range n {
		r := Report{At: c.tick("the report's tick"), Of: c.tick("the hashed tick"), Peer: c.uvarint("the report's peer")}
		width := int(c.byte("the width of the report's hash"))
		if c.err == nil && (width == 0 || width > MaxHashBytes) {
			c.fail("a report's hash has %d bytes: 1 to %d", width, MaxHashBytes)
		}
		r.Hash = c.bytes(width, "the report's hash")
		reports = append(reports, r)
	}
	return reports, c.done()
}

// TickHash is a state hash that came after its tick's chunk.
type TickHash struct {
	Tick Tick
	Hash []byte
}

// AppendHashes appends the body of a hashes chunk: a count, then the tick
// (the first in full, later ones as the distance to the one before) and
// the hash of each. The ticks must ascend.
func AppendHashes(dst []byte, hashes []TickHash) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(hashes)))
	var last Tick
	for _, h := range hashes {
		dst = binary.AppendUvarint(dst, uint64(h.Tick-last))
		dst = append(dst, h.Hash...)
		last = h.Tick
	}
	return dst
}

// ParseHashes reads the body of a hashes chunk of a session whose hashes
// have width bytes. The hashes point into body.
func ParseHashes(body []byte, width int) ([]TickHash, error) {
	c := cursor{b: body}
	n := c.count("the number of hashes", MaxHashLag, 1+width)
	if c.err == nil && (n == 0 || width == 0) {
		c.fail("%d late hashes in a session whose hashes have %d bytes", n, width)
	}
	hashes := make([]TickHash, 0, n)
	var last Tick
	for i := range n {
		d := c.tick("a late hash's tick")
		if c.err == nil && (i > 0 && d == 0 || last+d > MaxTick) {
			c.fail("late hashes of ticks %d and %d: ticks must ascend", last, last+d)
		}
		last += d
		hashes = append(hashes, TickHash{Tick: last, Hash: c.bytes(width, "a late hash")})
	}
	return hashes, c.done()
}

// KeyframePart is one part of a keyframe on its way.
type KeyframePart struct {
	// ID tells the keyframes of a session apart; parts of two may be mixed.
	ID uint64
	// NextTick is the tick that the state stands before.
	NextTick Tick
	// Total is the size of the whole state, Offset the place of Data in it.
	Total, Offset uint64
	Data          []byte
}

// AppendKeyframePart appends the body of a keyframe chunk: id, next tick,
// total, offset, data.
func AppendKeyframePart(dst []byte, p KeyframePart) []byte {
	dst = binary.AppendUvarint(dst, p.ID)
	dst = binary.AppendUvarint(dst, uint64(p.NextTick))
	dst = binary.AppendUvarint(dst, p.Total)
	dst = binary.AppendUvarint(dst, p.Offset)
	return append(dst, p.Data...)
}

// ParseKeyframePart reads the body of a keyframe chunk. Data points into
// body.
func ParseKeyframePart(body []byte) (KeyframePart, error) {
	c := cursor{b: body}
	p := c.partHead()
	p.Data = c.bytes(c.rest(), "the part's data")
	if c.err == nil && (p.Total > MaxKeyframe || p.Offset > p.Total || uint64(len(p.Data)) > p.Total-p.Offset || len(p.Data) > MaxKeyframePart) {
		c.fail("keyframe part of %d bytes at %d of %d: the most is %d at once and %d in all", len(p.Data), p.Offset, p.Total, MaxKeyframePart, MaxKeyframe)
	}
	if c.err == nil && len(p.Data) == 0 && p.Total > 0 {
		c.fail("keyframe part without data")
	}
	return p, c.done()
}

// partHead reads what every part of a keyframe begins with.
func (c *cursor) partHead() KeyframePart {
	return KeyframePart{ID: c.uvarint("the keyframe's id"), NextTick: c.tick("the keyframe's next tick"),
		Total: c.uvarint("the keyframe's size"), Offset: c.uvarint("the part's offset")}
}

// SplitKeyframe cuts a keyframe into parts of at most MaxKeyframePart.
func SplitKeyframe(id uint64, k Keyframe) []KeyframePart {
	var parts []KeyframePart
	for off := 0; off == 0 || off < len(k.State); off += MaxKeyframePart {
		parts = append(parts, KeyframePart{ID: id, NextTick: k.NextTick, Total: uint64(len(k.State)), Offset: uint64(off),
			Data: k.State[off:min(off+MaxKeyframePart, len(k.State))]})
	}
	return parts
}

// AppendPlayers appends the body of a players chunk: salt, then a count and
// the events. Only a session's first players chunk carries the salt.
func AppendPlayers(dst []byte, salt []byte, events []PlayerEvent) []byte {
	dst = append(dst, byte(len(salt)))
	dst = append(dst, salt...)
	dst = binary.AppendUvarint(dst, uint64(len(events)))
	for _, e := range events {
		dst = appendPlayerEvent(dst, e)
	}
	return dst
}

const (
	playerLeave    = 1
	playerObserver = 2
)

func appendPlayerEvent(dst []byte, e PlayerEvent) []byte {
	dst = binary.AppendUvarint(dst, uint64(e.Tick))
	dst = binary.AppendUvarint(dst, e.ID)
	if e.Leave {
		return append(dst, playerLeave)
	}
	var flags byte
	if e.Observer {
		flags = playerObserver
	}
	dst = append(dst, flags)
	dst = appendText(dst, e.Name)
	return appendText(dst, e.Team)
}

// SaltBytes is the size of the random salt in front of the players: without
// it, their digest could be guessed back to names after they are erased.
const SaltBytes = 16

// ParsePlayers reads the body of a players chunk. The salt points into body
// and is empty in all but the first players chunk of a session.
func ParsePlayers(body []byte) (salt []byte, events []PlayerEvent, err error) {
	c := cursor{b: body}
	n := int(c.byte("the size of the salt"))
	if c.err == nil && n != 0 && n != SaltBytes {
		c.fail("salt of %d bytes: 0 or %d", n, SaltBytes)
	}
	salt = c.bytes(n, "the salt")
	events = c.playerEvents()
	return salt, events, c.done()
}

func (c *cursor) playerEvents() []PlayerEvent {
	n := c.count("the number of player events", MaxBody, 3)
	events := make([]PlayerEvent, 0, n)
	for range n {
		e := PlayerEvent{Tick: c.tick("the player event's tick"), ID: c.uvarint("the player's id")}
		flags := c.byte("the player event's flags")
		if flags > playerObserver {
			c.fail("player event flags %d", flags)
		}
		e.Leave, e.Observer = flags == playerLeave, flags == playerObserver
		if !e.Leave {
			e.Name, e.Team = c.text("the player's name"), c.text("the player's team")
		}
		events = append(events, e)
	}
	return events
}

// EndState says how a session ended.
type EndState uint8

// End states are stored in files. They must not change.
const (
	// EndSealed: the producer sealed it, and its counts agreed.
	EndSealed EndState = 1
	// EndUnfinished: the producer never came back.
	EndUnfinished EndState = 2
)

// String names the state as `info` prints it.
func (s EndState) String() string {
	switch s {
	case EndSealed:
		return "sealed"
	case EndUnfinished:
		return "unfinished"
	}
	return fmt.Sprintf("end state %d", uint8(s))
}

// End closes a session: the final counts, and why it ended.
type End struct {
	State EndState
	Totals
	// Reason is for people, for example "producer gone for 5m0s".
	Reason string
}

// Totals are a session's final counts. Seal compares them.
type Totals struct {
	// NextTick is the tick after the last one; equal to the first tick in
	// a session without ticks.
	NextTick Tick
	// Ticks counts the recorded ticks, without gaps; Steps and Hashes what
	// they hold.
	Ticks, Steps, Hashes uint64
}

// AppendEnd appends the body of an end chunk: state, next tick, ticks,
// steps, hashes, reason.
func AppendEnd(dst []byte, e End) []byte {
	dst = append(dst, byte(e.State))
	dst = appendTotals(dst, e.Totals)
	return appendText(dst, e.Reason)
}

func appendTotals(dst []byte, t Totals) []byte {
	for _, v := range [4]uint64{uint64(t.NextTick), t.Ticks, t.Steps, t.Hashes} {
		dst = binary.AppendUvarint(dst, v)
	}
	return dst
}

// ParseEnd reads the body of an end chunk.
func ParseEnd(body []byte) (End, error) {
	c := cursor{b: body}
	e := End{State: EndState(c.byte("the end state"))}
	if c.err == nil && e.State != EndSealed && e.State != EndUnfinished {
		c.off = 0
		c.fail("end state %d: 1 or 2", e.State)
	}
	e.Totals = c.totals()
	e.Reason = c.text("the reason")
	return e, c.done()
}

func (c *cursor) totals() Totals {
	return Totals{NextTick: c.tick("the next tick"), Ticks: c.uvarint("the number of ticks"),
		Steps: c.uvarint("the number of steps"), Hashes: c.uvarint("the number of hashes")}
}
