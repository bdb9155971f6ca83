package wasm

import (
	"encoding/binary"
	"testing"

	"reprise/format"
	"reprise/player"
	"reprise/player/internal/playtest"
)

// parts are what a test module is put together from. It offers the game
// "test", can start every replay, and answers tick 0 where onTick lets it.
type parts struct {
	// onTick runs at a tick, onDump at a dump; local 0 is the message's size.
	onTick, onDump []byte
	// more are further functions of type () → (), numbered from firstMore.
	more []string
	// imports are functions of WASI by name, of type () → () or as typed.
	imports []string
	// globals, tables and elements are entries of their sections.
	globals, tables, elements, data []string
	start                           bool // the first of more is the start function
	initialize                      bool // it is _initialize
	memory                          string
	dataCount                       bool
}

const (
	testBuffer = 1 << 16
	testHello  = 1024
	testReady  = 2048
	testDone   = 2064
	testFields = 2100
)

// firstMore is the number of the first of parts.more.
func (p *parts) firstMore() byte { return byte(len(p.imports)) + 2 }

// str makes a string of operations.
func str(ops ...any) string {
	var b []byte
	for _, op := range ops {
		switch op := op.(type) {
		case int:
			b = append(b, byte(op))
		case string:
			b = append(b, op...)
		case []byte:
			b = append(b, op...)
		case constant:
			b = append(b, opI32Const)
			for v := int64(op); ; v >>= 7 {
				if v < 64 && v >= -64 {
					b = append(b, byte(v)&0x7f)
					break
				}
				b = append(b, byte(v)|0x80)
			}
		}
	}
	return string(b)
}

// constant is i32.const.
type constant int32

// list makes a section's body.
func list(items ...string) []byte {
	b := appendU32(nil, uint32(len(items)))
	for _, item := range items {
		b = append(b, item...)
	}
	return b
}

func sized(s string) string { return string(appendU32(nil, uint32(len(s)))) + s }

// assemble puts a module together.
func assemble(p parts) []byte {
	types := []string{"\x60\x01\x7f\x01\x7f", "\x60\x00\x00", "\x60\x01\x7f\x00", "\x60\x02\x7f\x7f\x01\x7f", "\x60\x04\x7f\x7f\x7f\x7f\x01\x7f", "\x60\x03\x7f\x7e\x7f\x01\x7f"}
	typeOf := map[string]string{"proc_exit": "\x02", "random_get": "\x03", "fd_write": "\x04", "clock_time_get": "\x05", "path_open": "\x00"}
	var imports []string
	for _, name := range p.imports {
		imports = append(imports, sized(wasiModule)+sized(name)+"\x00"+typeOf[name])
	}
	functions := []string{"\x00", "\x00"}
	bodies := []string{
		sized(str(0, constant(testBuffer), opEnd)),
		sized(str(0, messageBody(p), opEnd)),
	}
	for _, body := range p.more {
		functions = append(functions, "\x01")
		bodies = append(bodies, sized(str(0, body, opEnd)))
	}
	first := len(p.imports)
	exports := []string{
		sized(memoryExport) + str(kindMemory, 0),
		sized(bufferExport) + str(kindFunc, first),
		sized(messageExport) + str(kindFunc, first+1),
	}
	if p.initialize {
		exports = append(exports, sized(initializeExport)+str(kindFunc, int(p.firstMore())))
	}
	memory := p.memory
	if memory == "" {
		memory = "\x00\x02" // 128 KiB
	}
	data := append([]string{
		segment(testHello, frame(1, "\x01\x00\x01\x00", text(""), text("test module"), "\x01\x00\x00\x00", text("test"), text("1"), "\x04\x00\x00\x00", "\x00\x00\x00\x00")),
		segment(testReady, frame(2)),
		segment(testDone, frame(4, "\x00\x00\x00\x00\x00\x00\x00\x00", "\x00\x00\x00\x00", text(""))),
		segment(testFields, frame(9, "\x00\x00\x00\x00")),
	}, p.data...)
	out := append([]byte{}, magic...)
	add := func(id byte, body []byte, has bool) {
		if has {
			out = appendSection(out, id, body)
		}
	}
	add(sectionType, list(types...), true)
	add(sectionImport, list(imports...), imports != nil)
	add(sectionFunction, list(functions...), true)
	add(sectionTable, list(p.tables...), p.tables != nil)
	add(sectionMemory, list(memory), true)
	add(sectionGlobal, list(p.globals...), p.globals != nil)
	add(sectionExport, list(exports...), true)
	add(sectionStart, []byte{p.firstMore()}, p.start)
	add(sectionElement, list(p.elements...), p.elements != nil)
	add(sectionDataCount, appendU32(nil, uint32(len(data))), p.dataCount)
	add(sectionCode, list(bodies...), true)
	add(sectionData, list(data...), true)
	return out
}

// messageBody answers by the type of the message.
func messageBody(p parts) string {
	kind := str(constant(testBuffer), 0x2d, 0, 4) // i32.load8_u
	when := func(t int32, do string, answer int32) string {
		return str(kind, constant(t), 0x46, opIf, blockEmpty, do, constant(answer), opReturn, opEnd)
	}
	return when(101, "", testHello) + when(102, "", testReady) + when(107, string(p.onDump), testFields) +
		str(p.onTick, constant(testDone))
}

func segment(at int32, content string) string {
	return str(0, constant(at), opEnd) + sized(content)
}

func frame(kind byte, fields ...string) string {
	body := string(kind)
	for _, f := range fields {
		body += f
	}
	return string(binary.LittleEndian.AppendUint32(nil, uint32(len(body)))) + body
}

func text(s string) string {
	return string(binary.LittleEndian.AppendUint32(nil, uint32(len(s)))) + s
}

// testStart is the start of a replay of the test module.
func testStart() player.Start {
	return player.Start{Meta: &format.Metadata{Game: "test", Build: "1", Seed: 7, Width: format.Width16, TickRate: format.Rate{Num: 20, Den: 1}}}
}

// firstTick gives a simulation its tick 0.
func firstTick(t testing.TB, s *Simulation) error {
	t.Helper()
	if err := s.Reset(testStart()); err != nil {
		return err
	}
	return s.Advance(&playtest.NewScript(t).Empty(1).Ticks[0], false, func(player.Outcome) error { return nil })
}
