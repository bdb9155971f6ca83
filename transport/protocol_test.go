package transport

import (
	"bytes"
	"encoding/hex"
	"errors"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"reprise/format"
)

// exampleChunk is the ticks chunk of the worked example: tick 7 with the
// step (code 5, parameter 300) and tick 8 without steps.
func exampleChunk(t testing.TB) []byte {
	b := format.NewBatchBuilder(format.Width16, 0, 7)
	if err := b.Step(5, format.Int(300)); err != nil {
		t.Fatal(err)
	}
	b.EndTick()
	b.EndTick()
	return format.AppendChunk(nil, format.ChunkTicks, 1, b.AppendBody(nil))
}

// examples are the frames of PROTOCOL.md's worked example.
func examples(t testing.TB) map[string][]byte {
	key := [KeySize]byte{0xa0, 0xa1, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7, 0xa8, 0xa9, 0xaa, 0xab, 0xac, 0xad, 0xae, 0xaf}
	meta := format.Metadata{Session: "match-17", Game: "skirmish", FirstTick: 7, Width: format.Width16}
	opening := format.AppendChunk(nil, format.ChunkMeta, 0, format.AppendMeta(nil, &meta))
	chunk := exampleChunk(t)
	totals := format.Totals{NextTick: 9, Ticks: 2, Steps: 1}
	digest := format.Digest(bytes.Repeat([]byte{0xd1}, 32))
	return map[string][]byte{
		"hello":    (&hello{low: 1, high: 2, heartbeat: time.Second, agent: "demo"}).append(nil),
		"hello-ok": (&helloOK{version: 2, heartbeat: 3 * time.Second, frame: MaxFrame, sessions: 16384, agent: "reprised"}).append(nil),
		"open":     (&open{alias: 1, session: "match-17", key: key, epoch: 1, opening: opening}).append(nil),
		"open, continued at tick 500": (&open{alias: 2, session: "match-9", key: key, epoch: 300, at: 500, continues: true,
			opening: opening[:0]}).append(nil),
		"opened":                    (&opened{alias: 1, durableTick: 7, totals: format.Totals{NextTick: 7}, window: 4 << 20}).append(nil, Version),
		"chunk":                     append(appendChunkHead(nil, 1, len(chunk)), chunk...),
		"ack":                       appendAcks(nil, []ack{{alias: 1, received: 1, durable: 1, durableTick: 9}}),
		"window":                    (&window{alias: 1, bytes: 65536}).append(nil),
		"seal":                      (&seal{alias: 1, totals: totals}).append(nil),
		"sealed":                    (&sealed{alias: 1, digest: digest, name: "match-17"}).append(nil),
		"refused, conflict at 8":    (&refused{alias: 1, refusal: Refusal{Code: CodeConflict, Tick: 8, HasTick: true, Text: "differs"}}).append(nil),
		"refused, whole connection": (&refused{refusal: Refusal{Code: CodeUnauthorised}}).append(nil),
		"stalled":                   (&stalled{alias: 1, refusal: Refusal{Code: CodeStorage, Text: "no answer"}}).append(nil),
		"drain":                     (&drain{within: 10 * time.Second, text: "update"}).append(nil),
		"leave":                     appendLeave(nil, 1),
		"alive":                     appendFrame(nil, typeAlive),
		"close":                     appendFrame(nil, typeClose),
		"closed":                    appendFrame(nil, typeClosed),
		"list":                      (&list{number: 1, most: 100, prefix: "match-"}).append(nil),
		"listing": (&listing{number: 1, more: true, sessions: []Listed{{Session: "match-17", State: SessionDetached, Game: "skirmish",
			File: "live/match-17.rply", Started: time.UnixMicro(1), Ends: time.UnixMicro(2), DurableTick: 9, Totals: totals, Bytes: 120}}}).append(nil),
		"listing, refused": (&listing{number: 1, code: CodeUnauthorised, text: "no"}).append(nil),
	}
}

// The worked hex of PROTOCOL.md is what this package writes.
func TestWorkedExample(t *testing.T) {
	doc, err := os.ReadFile("PROTOCOL.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(doc), "## Worked example")
	if !ok {
		t.Fatal("PROTOCOL.md has no worked example")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	want := examples(t)
	for name, block := range fenced(section) {
		got, err := hex.DecodeString(strings.Join(strings.Fields(block), ""))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if w, ok := want[name]; !ok || !bytes.Equal(got, w) {
			t.Errorf("%s: PROTOCOL.md has\n% x, this package writes\n% x", name, got, w)
		}
		delete(want, name)
	}
	for name, b := range want {
		t.Errorf("PROTOCOL.md lacks\n**%s**\n\n```\n% x\n```", name, b)
	}
}

// fenced finds the fenced blocks of a section, each by the bold name above it.
func fenced(section string) map[string]string {
	blocks := map[string]string{}
	for {
		_, rest, ok := strings.Cut(section, "**")
		if !ok {
			return blocks
		}
		name, rest, _ := strings.Cut(rest, "**")
		_, rest, _ = strings.Cut(rest, "```\n")
		block, rest, _ := strings.Cut(rest, "```")
		blocks[name], section = block, rest
	}
}

// The tables of PROTOCOL.md name every frame type and every code with its
// number.
func TestProtocolTables(t *testing.T) {
	doc, err := os.ReadFile("PROTOCOL.md")
	if err != nil {
		t.Fatal(err)
	}
	text := string(doc)
	for typ, name := range frameNames {
		if row := "| 0x" + hex.EncodeToString([]byte{typ}) + " | " + name + " |"; !strings.Contains(text, row) {
			t.Errorf("no row %q", row)
		}
	}
	for code := range codeTexts {
		if row := "| " + strconv.FormatUint(uint64(code), 10) + " | " + code.String() + " |"; !strings.Contains(text, row) {
			t.Errorf("no row %q", row)
		}
	}
}

// parseAny parses the body of a known frame and gives its canonical bytes.
func parseAny(typ byte, body []byte) ([]byte, error) {
	switch typ {
	case typeHello:
		f, err := parseHello(body)
		return f.append(nil), err
	case typeHelloOK:
		f, err := parseHelloOK(body)
		return f.append(nil), err
	case typeOpen:
		f, err := parseOpen(body)
		return f.append(nil), err
	case typeOpened:
		f, err := parseOpened(body, Version)
		return f.append(nil, Version), err
	case typeChunk:
		alias, chunk, err := parseChunk(body)
		return append(appendChunkHead(nil, alias, len(chunk)), chunk...), err
	case typeAck:
		f, err := parseAcks(nil, body)
		return appendAcks(nil, f), err
	case typeWindow:
		f, err := parseWindow(body)
		return f.append(nil), err
	case typeSeal:
		f, err := parseSeal(body)
		return f.append(nil), err
	case typeSealed:
		f, err := parseSealed(body)
		return f.append(nil), err
	case typeRefused:
		f, err := parseRefused(body)
		return f.append(nil), err
	case typeDrain:
		f, err := parseDrain(body)
		return f.append(nil), err
	case typeLeave:
		alias, err := parseLeave(body)
		return appendLeave(nil, alias), err
	case typeList:
		f, err := parseList(body)
		return f.append(nil), err
	case typeStalled:
		f, err := parseStalled(body)
		return f.append(nil), err
	case typeListing:
		f, err := parseListing(body)
		return f.append(nil), err
	case typeAlive, typeClose, typeClosed:
		return appendFrame(nil, typ), parseEmpty(typ, body)
	}
	return nil, errors.ErrUnsupported
}

// FuzzFrame: what parses writes back the same bytes; what does not is a
// FrameError with its place, or too short.
func FuzzFrame(f *testing.F) {
	for _, b := range examples(f) {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		typ, length, head, err := frameHead(b)
		if err != nil {
			if !errors.Is(err, ErrFrame) && err != errShort {
				t.Fatalf("%T %v", err, err)
			}
			return
		}
		if len(b) < head+length {
			return
		}
		b = b[:head+length]
		back, err := parseAny(typ, b[head:])
		switch {
		case err == errors.ErrUnsupported:
		case err != nil:
			var frame *FrameError
			if !errors.As(err, &frame) || frame.Offset < 0 || frame.Offset > length {
				t.Fatalf("%T %v", err, err)
			}
		case !bytes.Equal(back, b):
			t.Fatalf("% x\nbecame\n% x", b, back)
		}
	})
}

// Every frame, cut at every byte, is too short as a frame and refused as a
// body, and nothing in between.
func TestCutFrames(t *testing.T) {
	for name, b := range examples(t) {
		typ, length, head, err := frameHead(b)
		if err != nil || head+length != len(b) {
			t.Fatalf("%s: %v", name, err)
		}
		if back, err := parseAny(typ, b[head:]); err != nil || !bytes.Equal(back, b) {
			t.Errorf("%s: %v\n% x\n% x", name, err, b, back)
		}
		for n := range head {
			if _, _, _, err := frameHead(b[:n]); err != errShort {
				t.Errorf("%s cut at %d: %v", name, n, err)
			}
		}
		for n := range length {
			_, err := parseAny(typ, b[head:head+n])
			if open := typ == typeOpen || typ == typeChunk; err == nil && !open {
				t.Errorf("%s: its body cut at %d of %d parses", name, n, length)
			}
			if err != nil && !errors.Is(err, ErrFrame) {
				t.Errorf("%s cut at %d: %v", name, n, err)
			}
		}
		if typ != typeOpen && typ != typeChunk {
			if _, err := parseAny(typ, append(bytes.Clone(b[head:]), 0)); !errors.Is(err, ErrFrame) {
				t.Errorf("%s with a byte more: %v", name, err)
			}
		}
	}
}

// Fields that lie beyond their limits are refused where they stand.
func TestBadFrames(t *testing.T) {
	huge := []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01} // 2^64-1
	long := []byte{0x80, 0x00}                                                 // not the shortest
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	ok, _ := hex.DecodeString("01" + "00" + "01" + "78") // alias 1, flags 0, session "x"
	for _, c := range []struct {
		name string
		typ  byte
		body []byte
		want string
	}{
		{"hello: token length", typeHello, join([]byte{1, 1, 0}, huge), "the length of the token"},
		{"hello: token longer than the body", typeHello, []byte{1, 1, 0, 5, 'a'}, "inside the token"},
		{"hello: agent length", typeHello, join([]byte{1, 1, 0, 0}, huge), "the length of the agent"},
		{"hello: versions", typeHello, []byte{2, 1, 0, 0, 0}, "the lowest version"},
		{"hello: heartbeat", typeHello, join([]byte{1, 1}, huge), "the heartbeat"},
		{"hello: long uvarint", typeHello, join(long, []byte{1, 0, 0, 0}), "shortest"},
		{"open: alias 0", typeOpen, []byte{0}, "alias 0"},
		{"open: alias", typeOpen, huge, "the alias"},
		{"open: flags", typeOpen, []byte{1, 2}, "flags 0x02"},
		{"open: session length", typeOpen, join([]byte{1, 0}, huge), "session's id"},
		{"open: session id", typeOpen, []byte{1, 0, 3, '.', '.', '/'}, "session id"},
		{"open: empty id", typeOpen, []byte{1, 0, 0}, "0 characters"},
		{"open: key", typeOpen, ok, "the producer's key"},
		{"open: continue tick", typeOpen, join([]byte{1, 1, 1, 'x'}, make([]byte, KeySize), []byte{1}, huge), "the continue tick"},
		{"opened: durable above received", typeOpened, []byte{1, 5, 6, 0, 0, 0, 0, 0, 0}, "the durable chunk"},
		{"opened: durable tick above next", typeOpened, []byte{1, 5, 5, 9, 8, 0, 0, 0, 0}, "durable up to tick 9"},
		{"opened: tick", typeOpened, join([]byte{1, 5, 5}, huge), "the durable tick"},
		{"ack: none", typeAck, []byte{0}, "no session"},
		{"ack: count", typeAck, huge, "the number of sessions"},
		{"ack: fewer than said", typeAck, []byte{2, 1, 1, 0, 0}, "the alias"},
		{"ack: distance", typeAck, []byte{1, 1, 3, 4, 0}, "the distance"},
		{"seal: tick", typeSeal, join([]byte{1}, huge), "the next tick"},
		{"sealed: digest", typeSealed, []byte{1, 2, 3}, "the digest"},
		{"sealed: name", typeSealed, join([]byte{1}, make([]byte, 32), huge), "replay's name"},
		{"refused: tick", typeRefused, join([]byte{1, 1}, huge), "the tick"},
		{"refused: text", typeRefused, join([]byte{1, 1, 0}, huge), "the length of the text"},
		{"drain: time", typeDrain, huge, "the time"},
		{"leave: alias", typeLeave, []byte{0}, "alias 0"},
		{"alive: body", typeAlive, []byte{0}, "after the last field"},
	} {
		_, err := parseAny(c.typ, c.body)
		var frame *FrameError
		if !errors.As(err, &frame) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, expected it to name %q", c.name, err, c.want)
		}
	}
	for _, head := range [][]byte{append([]byte{typeChunk}, huge...), {typeChunk, 0x80, 0x80, 0x80, 0x08}, {typeChunk, 0x80, 0x00},
		append([]byte{typeChunk}, bytes.Repeat([]byte{0x80}, 12)...)} {
		if _, _, _, err := frameHead(head); !errors.Is(err, ErrFrame) {
			t.Errorf("% x: %v", head, err)
		}
	}
}

// A refusal keeps all that it says on its way; a text that is too long is
// cut between two characters.
func TestRefusalRoundTrip(t *testing.T) {
	for code := range codeTexts {
		in := refused{alias: 3, refusal: Refusal{Code: code, Tick: format.MaxTick, HasTick: true, Text: "why"}}
		_, _, head, _ := frameHead(in.append(nil))
		out, err := parseRefused(in.append(nil)[head:])
		if err != nil || !reflect.DeepEqual(in, out) {
			t.Errorf("%v: %+v, %v", code, out, err)
		}
		if in.refusal.Error() == "" || code.String() == "" {
			t.Errorf("%d has no words", code)
		}
	}
	long := refused{refusal: Refusal{Text: strings.Repeat("é", MaxRefusalText)}}
	_, _, head, _ := frameHead(long.append(nil))
	out, err := parseRefused(long.append(nil)[head:])
	if err != nil || out.refusal.Text != strings.Repeat("é", MaxRefusalText/2) {
		t.Errorf("%d bytes, %v", len(out.refusal.Text), err)
	}
}
