package transport

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"reprise/format"
)

// A frame is
//
//	 0      1          1+n
//	┌──────┬──────────┬──────────────┐
//	│ type │ length   │ body         │
//	│ u8   │ uvarint  │ length bytes │
//	└──────┴──────────┴──────────────┘
//
// A uvarint is LEB128 in its shortest form. A text is its length as uvarint,
// then the bytes. A body ends with its last field.

// Frame types travel on the wire. They must not change. A receiver skips a
// type from 0x80 on that it does not know; any other unknown type ends the
// connection.
const (
	typeHello byte = 0x01
	typeOpen  byte = 0x02
	typeChunk byte = 0x03
	typeSeal  byte = 0x04
	typeLeave byte = 0x05
	typeClose byte = 0x06
	typeList  byte = 0x07

	typeAlive byte = 0x20

	typeHelloOK byte = 0x41
	typeOpened  byte = 0x42
	typeAck     byte = 0x43
	typeWindow  byte = 0x44
	typeSealed  byte = 0x45
	typeRefused byte = 0x46
	typeDrain   byte = 0x47
	typeClosed  byte = 0x48
	typeListing byte = 0x49

	frameOptional byte = 0x80
	typeStalled   byte = 0x80
)

// Flags of frames travel on the wire. They must not change.
const (
	openContinue = 0x01 // of open

	openedSafe   = 0x01 // of opened
	openedEnding = 0x02

	listingMore = 0x01 // of listing
)

var frameNames = map[byte]string{
	typeHello: "hello", typeOpen: "open", typeChunk: "chunk", typeSeal: "seal", typeLeave: "leave",
	typeClose: "close", typeAlive: "alive", typeHelloOK: "hello-ok", typeOpened: "opened", typeAck: "ack",
	typeWindow: "window", typeSealed: "sealed", typeRefused: "refused", typeDrain: "drain", typeClosed: "closed",
	typeList: "list", typeListing: "listing", typeStalled: "stalled",
}

func frameName(typ byte) string {
	if n, ok := frameNames[typ]; ok {
		return n
	}
	return fmt.Sprintf("type %#02x", typ)
}

// ErrFrame is matched by every error about bytes that are not a frame of the
// protocol. The connection ends.
var ErrFrame = errors.New("malformed frame")

// FrameError says which frame is malformed and where. It matches ErrFrame.
type FrameError struct {
	// Frame names the frame's type.
	Frame string
	// Offset is the place in the frame's body.
	Offset int
	// What names the field and the reason.
	What string
}

func (e *FrameError) Error() string {
	return fmt.Sprintf("malformed %s frame at byte %d: %s", e.Frame, e.Offset, e.What)
}

// Is matches ErrFrame.
func (e *FrameError) Is(target error) bool { return target == ErrFrame }

// errShort is returned where the bytes end inside a frame.
var errShort = errors.New("the bytes end inside a frame")

// frameHead reads type, body length and the size of the two from b[0:]. It
// returns errShort, or a FrameError for a length that no frame has.
func frameHead(b []byte) (typ byte, length, size int, err error) {
	if len(b) < 2 {
		return 0, 0, 0, errShort
	}
	v, n := binary.Uvarint(b[1:min(len(b), 1+binary.MaxVarintLen64)])
	switch {
	case n == 0 && len(b) <= binary.MaxVarintLen64:
		return 0, 0, 0, errShort
	case n <= 0 || n != uvarintLen(v):
		return 0, 0, 0, &FrameError{Frame: frameName(b[0]), What: "its length is not a shortest uvarint of 64 bits"}
	case v > MaxFrame:
		return 0, 0, 0, &FrameError{Frame: frameName(b[0]), What: fmt.Sprintf("its length is %d, the most is %d", v, MaxFrame)}
	}
	return b[0], int(v), 1 + n, nil
}

// appendFrame appends a frame around a body whose size is known.
func appendFrame(dst []byte, typ byte, body ...[]byte) []byte {
	size := 0
	for _, b := range body {
		size += len(b)
	}
	dst = binary.AppendUvarint(append(dst, typ), uint64(size))
	for _, b := range body {
		dst = append(dst, b...)
	}
	return dst
}

func uvarintLen(v uint64) int {
	n := 1
	for v >= 0x80 {
		v >>= 7
		n++
	}
	return n
}

// fields reads a body. The first failure stays; reads after it give zero
// values, so that a parser checks once at its end.
type fields struct {
	typ byte
	b   []byte
	off int
	err error
}

func (f *fields) fail(what string, args ...any) {
	if f.err == nil {
		f.err = &FrameError{Frame: frameName(f.typ), Offset: f.off, What: fmt.Sprintf(what, args...)}
	}
}

// number reads a uvarint of at most most.
func (f *fields) number(field string, most uint64) uint64 {
	if f.err != nil {
		return 0
	}
	v, n := binary.Uvarint(f.b[f.off:])
	switch {
	case n <= 0 || n != uvarintLen(v):
		f.fail("%s is not a shortest uvarint of 64 bits", field)
		return 0
	case v > most:
		f.fail("%s is %d, the most is %d", field, v, most)
		return 0
	}
	f.off += n
	return v
}

func (f *fields) bytes(n int, field string) []byte {
	if f.err != nil || n > len(f.b)-f.off {
		f.fail("the body ends inside %s", field)
		return nil
	}
	f.off += n
	return f.b[f.off-n : f.off : f.off]
}

func (f *fields) text(field string, most int) string {
	return string(f.bytes(int(f.number("the length of "+field, uint64(most))), field))
}

// flags reads a byte of flags, of which these are known.
func (f *fields) flags(known byte) byte {
	b := f.bytes(1, "the flags")
	if f.err != nil {
		return 0
	}
	if b[0]&^known != 0 {
		f.fail("flags %#02x: only %#02x is known", b[0], known)
	}
	return b[0]
}

// alias reads the alias of a session.
func (f *fields) alias() uint64 {
	a := f.number("the alias", MaxAlias)
	if f.err == nil && a == 0 {
		f.fail("alias 0 names no session")
	}
	return a
}

func (f *fields) tick(field string) format.Tick {
	return format.Tick(f.number(field, uint64(format.MaxTick)))
}

func (f *fields) millis(field string) time.Duration {
	return time.Duration(f.number(field, uint64(MaxHeartbeat/time.Millisecond))) * time.Millisecond
}

func (f *fields) totals() format.Totals {
	return format.Totals{NextTick: f.tick("the next tick"), Ticks: f.number("the number of ticks", math.MaxUint64),
		Steps: f.number("the number of steps", math.MaxUint64), Hashes: f.number("the number of hashes", math.MaxUint64)}
}

// session reads the id of a session.
func (f *fields) session() string {
	id := f.text("the session's id", format.MaxSessionID)
	if f.err == nil {
		if err := format.ValidSession(id); err != nil {
			f.fail("%v", err)
		}
	}
	return id
}

func (f *fields) rest() []byte { return f.bytes(len(f.b)-f.off, "the rest") }

// done reports the first failure, or bytes that no field claimed.
func (f *fields) done() error {
	if f.err == nil && f.off < len(f.b) {
		f.fail("%d bytes after the last field", len(f.b)-f.off)
	}
	return f.err
}

func appendText[T string | []byte](dst []byte, s T) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

func appendNumbers(dst []byte, values ...uint64) []byte {
	for _, v := range values {
		dst = binary.AppendUvarint(dst, v)
	}
	return dst
}

func appendTotals(dst []byte, t format.Totals) []byte {
	return appendNumbers(dst, uint64(t.NextTick), t.Ticks, t.Steps, t.Hashes)
}

// A hello frame is the first that a client sends:
//
//	lowest version · highest version · heartbeat ms · token text · agent text
type hello struct {
	low, high uint64
	// heartbeat is how often the client wants to hear from the daemon.
	heartbeat time.Duration
	token     []byte
	agent     string
}

func (h *hello) append(dst []byte) []byte {
	b := appendNumbers(nil, h.low, h.high, uint64(h.heartbeat/time.Millisecond))
	return appendFrame(dst, typeHello, appendText(appendText(b, h.token), h.agent))
}

func parseHello(body []byte) (hello, error) {
	f := fields{typ: typeHello, b: body}
	h := hello{low: f.number("the lowest version", math.MaxUint64), high: f.number("the highest version", math.MaxUint64),
		heartbeat: f.millis("the heartbeat")}
	if f.err == nil && h.low > h.high {
		f.fail("the lowest version is %d, the highest %d", h.low, h.high)
	}
	h.token = f.bytes(int(f.number("the length of the token", MaxToken)), "the token")
	h.agent = f.text("the agent", MaxAgent)
	return h, f.done()
}

// A hello-ok frame is the first that a daemon sends:
//
//	version · heartbeat ms · most frame bytes · most sessions · agent text
type helloOK struct {
	version uint64
	// heartbeat is how often the daemon wants to hear from the client.
	heartbeat time.Duration
	// frame and sessions are limits of this connection.
	frame, sessions uint64
	agent           string
}

func (h *helloOK) append(dst []byte) []byte {
	b := appendNumbers(nil, h.version, uint64(h.heartbeat/time.Millisecond), h.frame, h.sessions)
	return appendFrame(dst, typeHelloOK, appendText(b, h.agent))
}

func parseHelloOK(body []byte) (helloOK, error) {
	f := fields{typ: typeHelloOK, b: body}
	h := helloOK{version: f.number("the version", math.MaxUint64), heartbeat: f.millis("the heartbeat"),
		frame: f.number("the most frame bytes", math.MaxUint64), sessions: f.number("the most sessions", math.MaxUint64),
		agent: f.text("the agent", MaxAgent)}
	return h, f.done()
}

// An open frame opens or resumes a session:
//
//	alias · flags u8 · session text · key 16 · epoch · [continue tick] · opening chunks
type open struct {
	alias   uint64
	session string
	key     [KeySize]byte
	epoch   uint64
	// at is the first tick of what follows, if continues.
	at        format.Tick
	continues bool
	// opening is the framed metadata, code book and players.
	opening []byte
}

func (o *open) append(dst []byte) []byte {
	b := appendNumbers(nil, o.alias)
	flags := byte(0)
	if o.continues {
		flags = openContinue
	}
	b = appendText(append(b, flags), o.session)
	b = appendNumbers(append(b, o.key[:]...), o.epoch)
	if o.continues {
		b = appendNumbers(b, uint64(o.at))
	}
	return appendFrame(dst, typeOpen, b, o.opening)
}

func parseOpen(body []byte) (open, error) {
	f := fields{typ: typeOpen, b: body}
	o := open{alias: f.alias()}
	o.continues = f.flags(openContinue) == openContinue
	o.session = f.session()
	copy(o.key[:], f.bytes(KeySize, "the producer's key"))
	o.epoch = f.number("the epoch", math.MaxUint64)
	if o.continues {
		o.at = f.tick("the continue tick")
	}
	o.opening = f.rest()
	return o, f.done()
}

// An opened frame answers an open frame:
//
//	alias · received seq · durable seq · durable tick ·
//	next tick · ticks · steps · hashes · window bytes · [flags u8]
//
// The flags are there from version 2 on.
type opened struct {
	alias uint64
	// received and durable are the last chunks of the producer's stream
	// that the daemon has, and has on disk.
	received, durable uint64
	// durableTick is the first tick that is not on disk.
	durableTick format.Tick
	totals      format.Totals
	window      uint64
	// safe: the opening is on disk. ending: the session was sealed before,
	// and takes nothing more.
	safe, ending bool
}

func (o *opened) append(dst []byte, version uint64) []byte {
	b := appendNumbers(nil, o.alias, o.received, o.durable, uint64(o.durableTick))
	b = appendNumbers(appendTotals(b, o.totals), o.window)
	if version >= versionList {
		flags := byte(0)
		if o.safe {
			flags |= openedSafe
		}
		if o.ending {
			flags |= openedEnding
		}
		b = append(b, flags)
	}
	return appendFrame(dst, typeOpened, b)
}

func parseOpened(body []byte, version uint64) (opened, error) {
	f := fields{typ: typeOpened, b: body}
	o := opened{alias: f.alias(), received: f.number("the received chunk", math.MaxUint64)}
	o.durable = f.number("the durable chunk", o.received)
	o.durableTick = f.tick("the durable tick")
	o.totals = f.totals()
	if f.err == nil && o.durableTick > o.totals.NextTick {
		f.fail("durable up to tick %d, received up to %d", o.durableTick, o.totals.NextTick)
	}
	o.window = f.number("the window", math.MaxUint64)
	if version >= versionList {
		flags := f.flags(openedSafe | openedEnding)
		o.safe, o.ending = flags&openedSafe != 0, flags&openedEnding != 0
	}
	return o, f.done()
}

// A chunk frame carries one chunk, framed as it stands in a file:
//
//	alias · chunk
func appendChunkHead(dst []byte, alias uint64, size int) []byte {
	dst = binary.AppendUvarint(append(dst, typeChunk), uint64(uvarintLen(alias)+size))
	return binary.AppendUvarint(dst, alias)
}

func parseChunk(body []byte) (alias uint64, chunk []byte, err error) {
	f := fields{typ: typeChunk, b: body}
	alias, chunk = f.alias(), f.rest()
	return alias, chunk, f.done()
}

// An ack frame says how far sessions have come:
//
//	count · count × (alias · received seq · received - durable seq · durable tick)
type ack struct {
	alias             uint64
	received, durable uint64
	durableTick       format.Tick
}

func appendAcks(dst []byte, acks []ack) []byte {
	b := appendNumbers(nil, uint64(len(acks)))
	for _, a := range acks {
		b = appendNumbers(b, a.alias, a.received, a.received-a.durable, uint64(a.durableTick))
	}
	return appendFrame(dst, typeAck, b)
}

// parseAcks appends the acks of body to dst.
func parseAcks(dst []ack, body []byte) ([]ack, error) {
	f := fields{typ: typeAck, b: body}
	n := f.number("the number of sessions", MaxAcks)
	if f.err == nil && n == 0 {
		f.fail("an ack of no session")
	}
	for range n {
		a := ack{alias: f.alias(), received: f.number("the received chunk", math.MaxUint64)}
		a.durable = a.received - f.number("the distance of the durable chunk", a.received)
		a.durableTick = f.tick("the durable tick")
		if f.err != nil {
			return dst, f.err
		}
		dst = append(dst, a)
	}
	return dst, f.done()
}

// A window frame changes a session's window:
//
//	alias · bytes
type window struct{ alias, bytes uint64 }

func (w *window) append(dst []byte) []byte {
	return appendFrame(dst, typeWindow, appendNumbers(nil, w.alias, w.bytes))
}

func parseWindow(body []byte) (window, error) {
	f := fields{typ: typeWindow, b: body}
	w := window{alias: f.alias(), bytes: f.number("the window", math.MaxUint64)}
	return w, f.done()
}

// A seal frame ends a session with its final counts:
//
//	alias · next tick · ticks · steps · hashes
type seal struct {
	alias  uint64
	totals format.Totals
}

func (s *seal) append(dst []byte) []byte {
	return appendFrame(dst, typeSeal, appendTotals(appendNumbers(nil, s.alias), s.totals))
}

func parseSeal(body []byte) (seal, error) {
	f := fields{typ: typeSeal, b: body}
	s := seal{alias: f.alias(), totals: f.totals()}
	return s, f.done()
}

// A sealed frame says that the session is sealed and durable:
//
//	alias · digest 32 · name text
type sealed struct {
	alias  uint64
	digest format.Digest
	// name is the replay's name at the daemon.
	name string
}

func (s *sealed) append(dst []byte) []byte {
	return appendFrame(dst, typeSealed, appendText(append(appendNumbers(nil, s.alias), s.digest[:]...), s.name))
}

func parseSealed(body []byte) (sealed, error) {
	f := fields{typ: typeSealed, b: body}
	s := sealed{alias: f.alias()}
	copy(s.digest[:], f.bytes(len(s.digest), "the digest"))
	s.name = f.text("the replay's name", MaxReplayName)
	return s, f.done()
}

// A refused frame ends a session, or with alias 0 the connection:
//
//	alias · code · tick + 1, or 0 for none · text
type refused struct {
	alias   uint64
	refusal Refusal
}

func (r *refused) append(dst []byte) []byte {
	tick := uint64(0)
	if r.refusal.HasTick {
		tick = uint64(r.refusal.Tick) + 1
	}
	b := appendNumbers(nil, r.alias, uint64(r.refusal.Code), tick)
	return appendFrame(dst, typeRefused, appendText(b, cutText(r.refusal.Text, MaxRefusalText)))
}

func parseRefused(body []byte) (refused, error) {
	f := fields{typ: typeRefused, b: body}
	r := refused{alias: f.number("the alias", MaxAlias), refusal: Refusal{Code: Code(f.number("the code", math.MaxUint64))}}
	if tick := f.number("the tick", uint64(format.MaxTick)+1); tick > 0 {
		r.refusal.Tick, r.refusal.HasTick = format.Tick(tick-1), true
	}
	r.refusal.Text = f.text("the text", MaxRefusalText)
	return r, f.done()
}

// A stalled frame says why a session waits that goes on:
//
//	alias · code · text
type stalled struct {
	alias   uint64
	refusal Refusal
}

func (s *stalled) append(dst []byte) []byte {
	b := appendNumbers(nil, s.alias, uint64(s.refusal.Code))
	return appendFrame(dst, typeStalled, appendText(b, cutText(s.refusal.Text, MaxRefusalText)))
}

func parseStalled(body []byte) (stalled, error) {
	f := fields{typ: typeStalled, b: body}
	s := stalled{alias: f.alias(), refusal: Refusal{Code: Code(f.number("the code", math.MaxUint64))}}
	s.refusal.Text = f.text("the text", MaxRefusalText)
	return s, f.done()
}

// A drain frame says that the daemon is about to leave:
//
//	ms until it ends · text
type drain struct {
	within time.Duration
	text   string
}

func (d *drain) append(dst []byte) []byte {
	b := appendNumbers(nil, uint64(d.within/time.Millisecond))
	return appendFrame(dst, typeDrain, appendText(b, cutText(d.text, MaxRefusalText)))
}

func parseDrain(body []byte) (drain, error) {
	f := fields{typ: typeDrain, b: body}
	d := drain{within: f.millis("the time"), text: f.text("the text", MaxRefusalText)}
	return d, f.done()
}

// A leave frame ends a session on this connection, without sealing it:
//
//	alias
func appendLeave(dst []byte, alias uint64) []byte {
	return appendFrame(dst, typeLeave, appendNumbers(nil, alias))
}

func parseLeave(body []byte) (uint64, error) {
	f := fields{typ: typeLeave, b: body}
	alias := f.alias()
	return alias, f.done()
}

// Close, closed and alive frames have an empty body.
func parseEmpty(typ byte, body []byte) error {
	f := fields{typ: typ, b: body}
	return f.done()
}
