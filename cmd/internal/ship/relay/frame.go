package relay

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"reprise/format"
	"reprise/transport"
)

// Frame types travel on the wire. They must not change.
const (
	typeHello byte = 0x01
	typeOpen  byte = 0x02
	typeChunk byte = 0x03
	typeSeal  byte = 0x04
	typeLeave byte = 0x05
	typeClose byte = 0x06

	typeAlive byte = 0x20

	typeHelloOK byte = 0x41
	typeOpened  byte = 0x42
	typeAck     byte = 0x43
	typeWindow  byte = 0x44
	typeSealed  byte = 0x45
	typeRefused byte = 0x46
	typeDrain   byte = 0x47
	typeClosed  byte = 0x48

	// Types from here on are skipped where they are not known.
	typeOptional byte = 0x80
)

// ErrFrame is matched by every error about a frame that the protocol does
// not allow. The connection ends.
var ErrFrame = errors.New("the daemon does not keep to the protocol")

func appendFrame(dst []byte, typ byte, body []byte) []byte {
	dst = binary.AppendUvarint(append(dst, typ), uint64(len(body)))
	return append(dst, body...)
}

func appendNumbers(dst []byte, numbers ...uint64) []byte {
	for _, n := range numbers {
		dst = binary.AppendUvarint(dst, n)
	}
	return dst
}

func appendText[T string | []byte](dst []byte, text T) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(text)))
	return append(dst, text...)
}

// appendHello introduces this program; heartbeat is how often the daemon is
// to be heard.
func appendHello(dst []byte, heartbeat time.Duration, token []byte, agent string) []byte {
	b := appendNumbers(nil, transport.Version, transport.Version, uint64(heartbeat.Milliseconds()))
	return appendFrame(dst, typeHello, appendText(appendText(b, token), agent))
}

func appendOpen(dst []byte, alias uint64, r *Request) []byte {
	b := append(appendNumbers(nil, alias), 0)
	b = append(appendText(b, r.Session), r.Key[:]...)
	b = append(appendNumbers(b, r.Epoch), r.Opening...)
	return appendFrame(dst, typeOpen, b)
}

// appendChunk appends the frame of a chunk that is framed as in a file.
func appendChunk(dst []byte, alias uint64, chunk []byte) []byte {
	head := appendNumbers(nil, alias)
	dst = binary.AppendUvarint(append(dst, typeChunk), uint64(len(head)+len(chunk)))
	return append(append(dst, head...), chunk...)
}

func appendSeal(dst []byte, alias uint64, t format.Totals) []byte {
	return appendFrame(dst, typeSeal, appendNumbers(nil, alias, uint64(t.NextTick), t.Ticks, t.Steps, t.Hashes))
}

func appendLeave(dst []byte, alias uint64) []byte {
	return appendFrame(dst, typeLeave, appendNumbers(nil, alias))
}

// fields reads the fields of a body. The first failure stays.
type fields struct {
	b   []byte
	off int
	err error
}

func (f *fields) fail(what string, args ...any) {
	if f.err == nil {
		f.err = fmt.Errorf("%w: at byte %d: %s", ErrFrame, f.off, fmt.Sprintf(what, args...))
	}
}

func (f *fields) number(name string, most uint64) uint64 {
	if f.err != nil {
		return 0
	}
	v, n := binary.Uvarint(f.b[f.off:])
	if n <= 0 || n > 1 && f.b[f.off+n-1] == 0 || v > most {
		f.fail("%s is no uvarint up to %d", name, most)
		return 0
	}
	f.off += n
	return v
}

func (f *fields) tick(name string) format.Tick {
	return format.Tick(f.number(name, uint64(format.MaxTick)))
}

func (f *fields) bytes(name string, n uint64) []byte {
	if f.err != nil || n > uint64(len(f.b)-f.off) {
		f.fail("the body ends inside %s", name)
		return nil
	}
	f.off += int(n)
	return f.b[f.off-int(n) : f.off]
}

func (f *fields) text(name string, most uint64) string {
	return string(f.bytes(name, f.number("the length of "+name, most)))
}

func (f *fields) done() error {
	if f.err == nil && f.off < len(f.b) {
		f.fail("%d bytes after the last field", len(f.b)-f.off)
	}
	return f.err
}

// helloOK is the daemon's first frame.
type helloOK struct {
	heartbeat time.Duration
	mostFrame uint64
}

func parseHelloOK(body []byte) (helloOK, error) {
	f := fields{b: body}
	version := f.number("the version", math.MaxUint64)
	if f.err == nil && version != transport.Version {
		f.fail("the daemon chose version %d, this program speaks %d", version, transport.Version)
	}
	h := helloOK{heartbeat: time.Duration(f.number("the heartbeat", uint64(transport.MaxHeartbeat.Milliseconds()))) * time.Millisecond,
		mostFrame: f.number("the most frame bytes", math.MaxUint64)}
	f.number("the most sessions", math.MaxUint64)
	f.text("the agent", transport.MaxAgent)
	return h, f.done()
}

// opened is where a session stands.
type opened struct {
	alias, received, durable uint64
	durableTick              format.Tick
	totals                   format.Totals
	window                   uint64
}

func parseOpened(body []byte) (opened, error) {
	f := fields{b: body}
	o := opened{alias: f.number("the alias", transport.MaxAlias), received: f.number("the received chunk", math.MaxUint64)}
	o.durable = f.number("the durable chunk", o.received)
	o.durableTick = f.tick("the durable tick")
	o.totals = format.Totals{NextTick: f.tick("the next tick"), Ticks: f.number("the ticks", math.MaxUint64),
		Steps: f.number("the steps", math.MaxUint64), Hashes: f.number("the hashes", math.MaxUint64)}
	o.window = f.number("the window", math.MaxUint64)
	return o, f.done()
}

// ack is how far one session has come.
type ack struct {
	alias, received, durable uint64
	durableTick              format.Tick
}

func parseAcks(body []byte, each func(ack)) error {
	f := fields{b: body}
	n := f.number("the number of sessions", transport.MaxAcks)
	for range n {
		a := ack{alias: f.number("the alias", transport.MaxAlias), received: f.number("the received chunk", math.MaxUint64)}
		a.durable = a.received - f.number("the distance", a.received)
		a.durableTick = f.tick("the durable tick")
		if f.err != nil {
			return f.err
		}
		each(a)
	}
	return f.done()
}

func parseWindow(body []byte) (alias, bytes uint64, err error) {
	f := fields{b: body}
	alias, bytes = f.number("the alias", transport.MaxAlias), f.number("the window", math.MaxUint64)
	return alias, bytes, f.done()
}

func parseSealed(body []byte) (alias uint64, s Sealed, err error) {
	f := fields{b: body}
	alias = f.number("the alias", transport.MaxAlias)
	copy(s.Digest[:], f.bytes("the digest", uint64(len(s.Digest))))
	s.Name = f.text("the replay's name", transport.MaxReplayName)
	return alias, s, f.done()
}

// parseRefused gives alias 0 where the whole connection is refused.
func parseRefused(body []byte) (alias uint64, r *transport.Refusal, err error) {
	f := fields{b: body}
	alias = f.number("the alias", transport.MaxAlias)
	r = &transport.Refusal{Code: transport.Code(f.number("the code", math.MaxUint64))}
	if tick := f.number("the tick", uint64(format.MaxTick)+1); tick > 0 {
		r.Tick, r.HasTick = format.Tick(tick-1), true
	}
	r.Text = f.text("the text", transport.MaxRefusalText)
	return alias, r, f.done()
}
