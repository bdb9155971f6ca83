package format

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// rply1Model builds RPLY1 bytes field by field, with no code of the product.
type rply1Model struct {
	rate     uint16
	start    int64
	snapshot string
	ticks    []rply1Tick
}

type rply1Tick struct {
	tick     uint32
	commands [][7]int64 // player, op, unit, tx, ty, target, tick
	hash     uint64
}

func (m rply1Model) bytes() []byte {
	le := binary.LittleEndian
	b := []byte("RPLY1\x00")
	b = le.AppendUint16(b, 1)
	b = le.AppendUint64(b, math.MaxUint64-1)
	b = le.AppendUint16(b, m.rate)
	b = le.AppendUint64(b, uint64(m.start))
	b = append(b, 2)
	b = le.AppendUint32(b, 100)
	b = le.AppendUint32(b, uint32(0xffffffff)) // map height -1
	b = le.AppendUint32(b, uint32(len(m.snapshot)))
	b = append(b, m.snapshot...)
	for _, t := range m.ticks {
		b = append(b, t.bytes()...)
	}
	return b
}

func (t rply1Tick) bytes() []byte {
	le := binary.LittleEndian
	b := le.AppendUint32(nil, t.tick)
	b = le.AppendUint16(b, uint16(len(t.commands)))
	for _, c := range t.commands {
		b = append(b, byte(c[0]), byte(c[1]))
		for _, v := range c[2:] {
			b = le.AppendUint32(b, uint32(v))
		}
	}
	return le.AppendUint64(b, t.hash)
}

// match is a model of n ticks from tick 1 on, with a command in every third.
func match(n uint32) rply1Model {
	m := rply1Model{rate: 20, start: 1777000000, snapshot: "a snapshot that ends in zeros" + strings.Repeat("\x00", 40)}
	for i := range n {
		t := rply1Tick{tick: i + 1, hash: 0x9e3779b97f4a7c15 * uint64(i+1)}
		if i%3 == 1 {
			t.commands = [][7]int64{{1, 2, 0xfffffff0, -5, 70000, 9, int64(i + 1)}}
		}
		m.ticks = append(m.ticks, t)
	}
	return m
}

// startOf is the offset of tick i's record.
func (m rply1Model) startOf(i int) int {
	m.ticks = m.ticks[:i]
	return len(m.bytes())
}

func TestRPLY1IsReadWhole(t *testing.T) {
	m := match(5)
	m.ticks[3].commands = [][7]int64{{0, 7, 0, math.MinInt32, math.MaxInt32, 0xffffffff, 77}, {255, 255, 1, 2, 3, 4, 4}}
	m.ticks = append(m.ticks[:2], m.ticks[3:]...) // tick 3 is missing
	f := openBytes(t, m.bytes())
	if f.Source != "rply1" || !f.Unproven() || f.Torn != nil {
		t.Errorf("source %s, unproven %v, torn %v", f.Source, f.Unproven(), f.Torn)
	}
	meta := f.Summary().Meta
	want := &Metadata{Seed: math.MaxUint64 - 1, Map: "100x-1", TickRate: Rate{20, 1}, FirstTick: 1, StartedAt: 1777000000_000000, HashBytes: 8, Width: Width16,
		Labels: []Label{{"players", "2"}}, Origin: Origin{"rply1", m.bytes()[:39]}}
	if fmt.Sprintf("%+v", meta) != fmt.Sprintf("%+v", want) {
		t.Errorf("metadata %+v\nwant %+v", meta, want)
	}
	ticks, err := readTicks(f.Reader())
	if err != nil {
		t.Fatal(err)
	}
	hash := func(i int) []byte { return binary.BigEndian.AppendUint64(nil, m.ticks[i].hash) }
	if d := differs(ticks, []modelTick{
		{tick: 1, hash: hash(0)},
		{tick: 2, hash: hash(1), steps: []Step{{Code: 2, Params: []Value{Int(1), Int(0xfffffff0), Int(-5), Int(70000), Int(9)}}}},
		{tick: 4, hash: hash(2), steps: []Step{
			{Code: 7, Params: []Value{Int(0), Int(0), Int(math.MinInt32), Int(math.MaxInt32), Int(0xffffffff), Int(77)}},
			{Code: 255, Index: 1, Params: []Value{Int(255), Int(1), Int(2), Int(3), Int(4)}}}},
		{tick: 5, hash: hash(3), steps: []Step{{Code: 2, Params: []Value{Int(1), Int(0xfffffff0), Int(-5), Int(70000), Int(9)}}}},
	}); d != "" {
		t.Error(d)
	}
	s := f.Summary()
	if len(s.Gaps) != 1 || s.Gaps[0] != (Gap{3, 3, "missing in the RPLY1 file", true}) || s.Complete() {
		t.Errorf("gaps %+v, complete %v", s.Gaps, s.Complete())
	}
	if k, err := f.Keyframe(0); err != nil || k.NextTick != 1 || string(k.State) != m.snapshot {
		t.Errorf("keyframe %+v, %v", k, err)
	}
	if code := f.Book().Lookup(4); code == nil || code.Name != "attack-move" || len(f.Book().Codes) != 7 {
		t.Errorf("code book %+v", f.Book())
	}
	checkWhole(t, f)
}

// backToRPLY1 opens RPLY1 bytes and writes them again.
func backToRPLY1(t testing.TB, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := WriteRPLY1(&out, openBytes(t, b)); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestRPLY1ComesBackByteForByte(t *testing.T) {
	models := map[string]rply1Model{
		"a match": match(200), "no ticks": match(0), "one tick": match(1),
		"no snapshot": {rate: 1, ticks: match(3).ticks}, "nothing": {},
		"a start beyond microseconds": {start: math.MinInt64, ticks: match(3).ticks},
	}
	far := match(8)
	for i := range far.ticks {
		far.ticks[i].tick += math.MaxUint32 - 8
	}
	models["the last ticks there are"] = far
	gap := match(8)
	for i := range gap.ticks[4:] {
		gap.ticks[4+i].tick += 1 << 20
	}
	models["a long gap"] = gap
	for name, m := range models {
		if got := backToRPLY1(t, m.bytes()); !bytes.Equal(got, m.bytes()) {
			t.Errorf("%s: %d bytes came back, want %d", name, len(got), len(m.bytes()))
		}
		// The same through an RPLY2 file that was stored.
		f := openBytes(t, m.bytes())
		raw := make([]byte, f.Raw().Size())
		if err := readFull(f.Raw(), raw, 0); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := WriteRPLY1(&out, openBytes(t, raw)); err != nil || !bytes.Equal(out.Bytes(), m.bytes()) {
			t.Errorf("%s through RPLY2: %v", name, err)
		}
	}
}

// rply1Damage is one way to hurt a file, what opening it says, and what
// repairing it keeps.
type rply1Damage struct {
	name    string
	corrupt func([]byte) []byte
	// is is the error of opening, nil where it opens; text is in it.
	is   error
	text []string
	// torn is set where it opens but was cut; ticks is how many it has then.
	torn  bool
	ticks uint64
	// kept is how many ticks repair keeps, mended those it put in order, and
	// lost is in the gaps' list; noRepair where nothing can be kept.
	kept     uint64
	lost     string
	mended   int
	noRepair bool
}

const smallMatch = 120

func rply1Damages() []rply1Damage {
	m := match(smallMatch)
	at := m.startOf
	i := 60 // a record without commands; 61 has one
	size := len(m.bytes())
	join := func(parts ...[]byte) []byte { return slices.Concat(parts...) }
	offset := func(n int) string { return fmt.Sprintf("offset %d:", n) }
	return []rply1Damage{
		{name: "whole", corrupt: func(b []byte) []byte { return b }, ticks: smallMatch, kept: smallMatch},
		{name: "a tick twice", corrupt: func(b []byte) []byte { return join(b[:at(i+1)], b[at(i):]) },
			is: ErrCorrupt, text: []string{offset(at(i + 1)), "tick 61 out of order after 61"}, kept: smallMatch},
		{name: "a tick missing", corrupt: func(b []byte) []byte { return join(b[:at(i)], b[at(i+1):]) },
			ticks: smallMatch - 1, kept: smallMatch - 1, lost: "[{61 61"},
		{name: "two ticks swapped", corrupt: func(b []byte) []byte {
			return join(b[:at(i)], b[at(i+1):at(i+2)], b[at(i):at(i+1)], b[at(i+2):])
		}, is: ErrCorrupt, text: []string{offset(at(i) + 36), "tick 61 out of order after 62"}, kept: smallMatch, mended: 1},
		{name: "an argument flipped", corrupt: func(b []byte) []byte { b[at(i+1)+12] ^= 8; return b }, ticks: smallMatch, kept: smallMatch},
		{name: "a hash flipped", corrupt: func(b []byte) []byte { b[at(i+1)-1] ^= 1; return b }, ticks: smallMatch, kept: smallMatch},
		{name: "a tick number flipped", corrupt: func(b []byte) []byte { b[at(i)+1] ^= 8; return b },
			is: ErrCorrupt, text: []string{offset(at(i + 1)), "tick 62 out of order after 2109"}, kept: smallMatch - 1, lost: "[{61 61"},
		{name: "a tick number hit hard", corrupt: func(b []byte) []byte { b[at(i)+3] = 0x7f; return b },
			is: ErrCorrupt, text: []string{offset(at(i)), "tick 2130706493 out of order after 60"}, kept: smallMatch - 1, lost: "[{61 61"},
		{name: "a count flipped", corrupt: func(b []byte) []byte { b[at(i)+4] ^= 1; return b },
			is: ErrCorrupt, text: []string{"out of order after 61"}, kept: smallMatch - 1, lost: "[{61 61"},
		{name: "a count beyond the file", corrupt: func(b []byte) []byte { b[at(i)+5] = 0xff; return b },
			is: ErrCorrupt, text: []string{offset(at(i) + 4), "commands of tick 61 run past the end", fmt.Sprint(at(i + 1))}, kept: smallMatch - 1, lost: "[{61 61"},
		{name: "a snapshot length of all ones", corrupt: func(b []byte) []byte { copy(b[35:], "\xff\xff\xff\xff"); return b },
			is: ErrCorrupt, text: []string{offset(35), "4294967295"}, kept: smallMatch},
		{name: "a snapshot length beyond the file", corrupt: func(b []byte) []byte { b[37] = 1; return b },
			is: ErrCorrupt, text: []string{offset(35), fmt.Sprint(at(0))}, kept: smallMatch},
		{name: "cut between ticks", corrupt: func(b []byte) []byte { return b[:at(i)] }, ticks: uint64(i), kept: uint64(i)},
		{name: "cut inside a tick", corrupt: func(b []byte) []byte { return b[:at(i+1)+30] },
			torn: true, ticks: uint64(i + 1), text: []string{fmt.Sprintf("offset %d ", at(i+1)), "last whole tick 61"}, kept: uint64(i + 1)},
		{name: "cut inside a tick number", corrupt: func(b []byte) []byte { return b[:at(i)+2] },
			torn: true, ticks: uint64(i), text: []string{"last whole tick 60"}, kept: uint64(i)},
		{name: "cut inside the header", corrupt: func(b []byte) []byte { return b[:20] }, is: ErrTorn, text: []string{"no whole tick"}, noRepair: true},
		{name: "cut inside the magic", corrupt: func(b []byte) []byte { return b[:3] }, is: ErrTorn, noRepair: true},
		{name: "cut inside the snapshot", corrupt: func(b []byte) []byte { return b[:50] }, is: ErrTorn, noRepair: true},
		{name: "another magic", corrupt: func(b []byte) []byte { b[4] = '2'; return b },
			is: ErrNotReplay, text: []string{"byte 32 at offset 4", "has 31"}, noRepair: true},
		{name: "empty", corrupt: func(b []byte) []byte { return nil }, is: ErrNotReplay, text: []string{"offset 0"}, noRepair: true},
		{name: "a header and a snapshot alone", corrupt: func(b []byte) []byte { return b[:at(0)] }},
		{name: "zeros behind the end", corrupt: func(b []byte) []byte { return append(b, 0, 0, 0, 0, 0) },
			torn: true, ticks: smallMatch, text: []string{fmt.Sprintf("offset %d ", size), "5 bytes", "last whole tick 120"}, kept: smallMatch},
		{name: "text behind the end", corrupt: func(b []byte) []byte { return append(b, "this is no tick at all"...) },
			is: ErrCorrupt, text: []string{offset(size), "out of order after 120"}, kept: smallMatch},
		{name: "the file twice", corrupt: func(b []byte) []byte { return join(b, b) },
			is: ErrCorrupt, text: []string{offset(size), "second file"}, kept: smallMatch},
		{name: "a lost sector", corrupt: func(b []byte) []byte { clear(b[1024:1536]); return b },
			is: ErrCorrupt, text: []string{offset(1024), "zeros"}, kept: 95, lost: "[{44 68"},
		{name: "lost sectors up to the end", corrupt: func(b []byte) []byte { clear(b[1024:]); return b },
			torn: true, ticks: 43, text: []string{"last whole tick 43"}, kept: 43},
		{name: "the first tick hit", corrupt: func(b []byte) []byte { b[at(0)+3] = 0xee; return b },
			is: ErrCorrupt, text: []string{offset(at(1)), "tick 2 out of order"}, kept: smallMatch - 1},
	}
}

func TestRPLY1Damage(t *testing.T) {
	for _, d := range rply1Damages() {
		t.Run(d.name, func(t *testing.T) {
			b := d.corrupt(match(smallMatch).bytes())
			before := bytes.Clone(b)
			d.checkOpen(t, b)
			d.checkRepair(t, b)
			if !bytes.Equal(b, before) {
				t.Error("the input was changed")
			}
		})
	}
}

func (d rply1Damage) checkOpen(t *testing.T, b []byte) {
	t.Helper()
	f, err := NewFile(bytes.NewReader(b), int64(len(b)))
	if d.is != nil {
		if !errors.Is(err, d.is) {
			t.Fatalf("opening says %v, want %v", err, d.is)
		}
	} else if err != nil {
		t.Fatalf("opening says %v", err)
	} else {
		if (f.Torn != nil) != d.torn || f.Summary().Ticks != d.ticks {
			t.Fatalf("torn %v with %d ticks, want %v with %d", f.Torn, f.Summary().Ticks, d.torn, d.ticks)
		}
		_, err = f.Check()
		if (err != nil) != d.torn {
			t.Fatalf("check says %v", err)
		}
	}
	for _, text := range d.text {
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%v does not say %q", err, text)
		}
	}
}

func (d rply1Damage) checkRepair(t *testing.T, b []byte) {
	t.Helper()
	var out bytes.Buffer
	report, err := RepairRPLY1(bytes.NewReader(b), int64(len(b)), &out)
	if d.noRepair {
		if err == nil || out.Len() > 0 {
			t.Errorf("repair kept %+v", report)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if report.Ticks != d.kept || len(report.Mended) != d.mended || d.lost != "" && !strings.HasPrefix(fmt.Sprint(report.Gaps), d.lost) {
		t.Errorf("repair: %+v, want %d ticks, %d mended, gaps %s…", report, d.kept, d.mended, d.lost)
	}
	// A missing tick is nothing to repair, and yet no whole match.
	whole, same := d.is == nil && !d.torn && d.lost == "", d.is == nil && !d.torn
	if report.Whole != whole || same != bytes.Equal(out.Bytes(), b) {
		t.Errorf("repair: whole %v, want %v: %+v", report.Whole, whole, report)
	}
	checkRPLY1Repaired(t, out.Bytes(), report)
}

// checkRPLY1Repaired checks that what was repaired opens with what the report
// says, and repairs to itself.
func checkRPLY1Repaired(t testing.TB, b []byte, report *RepairReport) {
	t.Helper()
	f, err := NewFile(bytes.NewReader(b), int64(len(b)))
	if err != nil || f.Torn != nil {
		t.Fatalf("the repaired file: %v, torn %v", err, f)
	}
	if s := f.Summary(); s.Ticks != report.Ticks || s.Steps != report.Steps || len(s.Gaps) != len(report.Gaps) {
		t.Fatalf("the repaired file has %d ticks, %d steps, gaps %v; the report says %+v", s.Ticks, s.Steps, s.Gaps, report)
	}
	var again bytes.Buffer
	second, err := RepairRPLY1(bytes.NewReader(b), int64(len(b)), &again)
	if err != nil || second.Whole != (len(second.Gaps) == 0) || len(second.Losses)+len(second.Mended) > 0 || !bytes.Equal(again.Bytes(), b) {
		t.Fatalf("repairing twice: %+v, %v", second, err)
	}
}

func TestRPLY1RepairKeepsTheFirstOfTwoRecords(t *testing.T) {
	m := match(20)
	second := m.ticks[10]
	second.hash++
	m.ticks = slices.Insert(m.ticks, 11, second)
	b := m.bytes()
	var out bytes.Buffer
	if _, err := RepairRPLY1(bytes.NewReader(b), int64(len(b)), &out); err != nil || !bytes.Equal(out.Bytes(), match(20).bytes()) {
		t.Errorf("%v: the second record was kept", err)
	}
}

func TestRPLY1CutAtEveryByte(t *testing.T) {
	m := match(9)
	b := m.bytes()
	for cut := range b {
		want := 0
		for want < 9 && m.startOf(want+1) <= cut {
			want++
		}
		f, err := NewFile(bytes.NewReader(b[:cut]), int64(cut))
		if cut < m.startOf(0) {
			if want := []error{ErrNotReplay, ErrTorn}[min(cut, 1)]; !errors.Is(err, want) {
				t.Fatalf("cut at %d: %v, want %v", cut, err, want)
			}
			continue
		}
		if err != nil || f.Summary().Ticks != uint64(want) || (f.Torn == nil) != (m.startOf(want) == cut) {
			t.Fatalf("cut at %d: %v, %+v, want %d ticks", cut, err, f, want)
		}
	}
}

func TestRPLY1DamageInEveryBitNeverPanics(t *testing.T) {
	b := match(12).bytes()
	for bit := range 8 * len(b) {
		hurt := bytes.Clone(b)
		hurt[bit/8] ^= 1 << (bit % 8)
		_, _ = NewFile(bytes.NewReader(hurt), int64(len(hurt)))
		var out bytes.Buffer
		if report, err := RepairRPLY1(bytes.NewReader(hurt), int64(len(hurt)), &out); err == nil {
			checkRPLY1Repaired(t, out.Bytes(), report)
			// A snapshot's length that is right by chance hides ticks.
			if inLength := bit/8 >= 35 && bit/8 < 39; !inLength && report.Ticks < 7 {
				t.Fatalf("bit %d of byte %d: %d of 12 ticks kept: %+v", bit%8, bit/8, report.Ticks, report)
			}
		}
	}
}

func TestRPLY1FromANativeRecording(t *testing.T) {
	s := &session{meta: Metadata{Seed: 5, Map: "64x32", TickRate: Rate{30, 1}, StartedAt: 3_000_000, FirstTick: 10, HashBytes: 8, Width: Width8, Labels: []Label{{"players", "4"}}},
		keyframes: []Keyframe{{10, []byte("start")}}, end: End{State: EndSealed}}
	for i := range Tick(3) {
		s.ticks = append(s.ticks, modelTick{tick: 10 + i, hash: []byte("8 bytes."), steps: []Step{{Code: 1, Params: []Value{Int(1), Int(2), Int(3), Int(4), Int(5)}}}})
	}
	f, _ := s.file(t, 2)
	var out bytes.Buffer
	if err := WriteRPLY1(&out, f); err != nil {
		t.Fatal(err)
	}
	back := openBytes(t, out.Bytes())
	m := back.Summary().Meta
	if m.Seed != 5 || m.Map != "64x32" || m.TickRate != (Rate{30, 1}) || m.StartedAt != 3_000_000 || m.FirstTick != 10 || m.Labels[0].Value != "4" {
		t.Errorf("%+v", m)
	}
	ticks, err := readTicks(back.Reader())
	if d := differs(ticks, s.ticks); d != "" || err != nil {
		t.Error(d, err)
	}
}

func TestRPLY1RefusesWhatItCannotHold(t *testing.T) {
	step := func(code uint16, params ...Value) func(*session) {
		return func(s *session) { s.ticks[1].steps = []Step{{Code: code, Params: params}} }
	}
	for _, c := range []struct {
		name   string
		change func(*session)
		text   string
		lossy  bool // it can be left out
	}{
		{"a game", func(s *session) { s.meta.Game = "skirmish" }, `the game "skirmish"`, true},
		{"a session id", func(s *session) { s.meta.Session = "m1" }, `the session id "m1"`, true},
		{"a fractional rate", func(s *session) { s.meta.TickRate = Rate{112, 5} }, "the tick rate 22.4", true},
		{"a high rate", func(s *session) { s.meta.TickRate = Rate{65536, 1} }, "the tick rate 65536", true},
		{"a start within a second", func(s *session) { s.meta.StartedAt++ }, "the start time's 1 microsecond", true},
		{"a map with a name", func(s *session) { s.meta.Map = "Twin Rivers" }, `the map "Twin Rivers"`, true},
		{"another label", func(s *session) { s.meta.Labels = append(s.meta.Labels, Label{"mode", "ranked"}) }, `the label "mode"`, true},
		{"environment", func(s *session) { s.meta.Env = []Label{{"os", "x"}} }, "1 environment facts", true},
		{"hash parts", func(s *session) { s.meta.HashParts = []HashPart{{"all", 8}} }, "the parts of the state hash", true},
		{"another code book", func(s *session) { s.book = &CodeBook{Codes: []CodeInfo{{Code: 1, Name: "go"}}} }, "the names of the code book", true},
		{"marks", func(s *session) { s.marks = []Mark{{Tick: 1}} }, "1 marks", true},
		{"players", func(s *session) { s.salt, s.players = make([]byte, 16), []PlayerEvent{{ID: 1}} }, "1 joins and leaves", true},
		{"reports", func(s *session) { s.reports = []Report{{Hash: []byte{1}}} }, "1 peers' reports", true},
		{"times", func(s *session) { s.ticks[0].timed = true }, "the times of ticks", true},
		{"a second keyframe", func(s *session) { s.keyframes = append(s.keyframes, Keyframe{NextTick: 2}) }, "the keyframe before tick 2", true},
		{"the reason of a gap", func(s *session) {
			s.gaps = []Gap{{3, 4, "spool full", false}}
			s.ticks = append(s.ticks, modelTick{tick: 5, hash: make([]byte, 8)})
		}, "the reason of the gap of ticks 3 to 4", true},
		{"a gap at the end", func(s *session) { s.gaps = []Gap{{3, 4, rply1Gap, true}} }, "before or after all others", true},
		{"a wide code", step(256, Int(1), Int(2), Int(3), Int(4), Int(5)), "code 256", false},
		{"four parameters", step(1, Int(1), Int(2), Int(3), Int(4)), "4 parameters", false},
		{"a float", step(1, Int(1), Int(2), Float(3), Int(4), Int(5)), "parameter 2 is 3.0", false},
		{"a wide unit", step(1, Int(1), Int(1<<32), Int(3), Int(4), Int(5)), "parameter 1 is 4294967296", false},
		{"a tick of its own that is the record's", step(1, Int(1), Int(2), Int(3), Int(4), Int(5), Int(1)), "leave it out", false},
		{"a tick without a hash", func(s *session) { s.ticks[1].hash = nil }, "tick 1 has 0", false},
		{"narrow hashes", func(s *session) {
			s.meta.HashBytes = 4
			for i := range s.ticks {
				s.ticks[i].hash = []byte("four")
			}
		}, "tick 0 has 4", false},
		{"a late tick", func(s *session) {
			s.meta.FirstTick = 1 << 32
			s.keyframes = nil
			for i := range s.ticks {
				s.ticks[i].tick += 1 << 32
			}
		}, "RPLY1 ends at tick 4294967295", false},
		{"a long gap before few ticks", func(s *session) {
			s.gaps = []Gap{{3, 9000, rply1Gap, true}}
			s.ticks = append(s.ticks, modelTick{tick: 9001, hash: make([]byte, 8)})
		}, "needs 4 ticks in a row after a gap", false},
		{"too many commands", func(s *session) {
			s.ticks[1].steps = make([]Step, 65536)
		}, "tick 1 has 65536", false},
	} {
		s := &session{meta: Metadata{TickRate: Rate{20, 1}, HashBytes: 8, Width: Width16, Labels: []Label{{"players", "2"}}}, end: End{State: EndSealed}}
		for i := range Tick(3) {
			s.ticks = append(s.ticks, modelTick{tick: i, hash: []byte("8 bytes.")})
		}
		c.change(s)
		f, _ := s.file(t, 100)
		var out bytes.Buffer
		if err := WriteRPLY1(&out, f); !errors.Is(err, ErrLossy) || !strings.Contains(err.Error(), c.text) || out.Len() > 0 {
			t.Errorf("%s: %v with %d bytes written, want %q", c.name, err, out.Len(), c.text)
		}
		lost, err := WriteRPLY1Lossy(&out, f)
		if c.lossy != (err == nil) {
			t.Errorf("%s, if told: %v", c.name, err)
		}
		if c.lossy {
			if len(lost) != 1 || !strings.Contains(lost[0], c.text) {
				t.Errorf("%s: lost %q, want %q", c.name, lost, c.text)
			}
			openBytes(t, out.Bytes())
		}
	}
}

func TestRPLY1HeaderThatWasEdited(t *testing.T) {
	var out Buffer
	f := openBytes(t, match(3).bytes())
	meta := *f.Summary().Meta
	meta.Seed = 99
	w, err := NewWriter(&out, &meta, f.Book())
	if err != nil {
		t.Fatal(err)
	}
	k, err := f.Keyframe(0)
	if err != nil {
		t.Fatal(err)
	}
	err = w.Keyframe(*k)
	r := f.Reader()
	for rec := (TickRecord{}); r.Next(&rec) == nil; {
		err = errors.Join(err, w.Add(&rec))
	}
	if err := errors.Join(err, w.Finish(EndUnfinished, "")); err != nil {
		t.Fatal(err)
	}
	var back bytes.Buffer
	if err := WriteRPLY1(&back, openBytes(t, out.Bytes())); err != nil {
		t.Fatal(err)
	}
	want := match(3).bytes()
	binary.LittleEndian.PutUint64(want[8:], 99)
	if !bytes.Equal(back.Bytes(), want) {
		t.Error("not the same file with another seed")
	}
}

// FuzzRPLY1: what opens comes back byte for byte, up to where it was cut;
// what is repaired opens.
func FuzzRPLY1(f *testing.F) {
	f.Add(match(6).bytes())
	for _, d := range rply1Damages() {
		if b := d.corrupt(match(smallMatch).bytes()); len(b) < 400 {
			f.Add(b)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		b = append([]byte(rply1Magic), b...)
		file, err := NewFile(bytes.NewReader(b), int64(len(b)))
		if err == nil {
			var out bytes.Buffer
			if err := WriteRPLY1(&out, file); err != nil {
				t.Fatal(err)
			}
			want := b
			if file.Torn != nil {
				want = b[:file.Torn.Offset]
			}
			if !bytes.Equal(out.Bytes(), want) {
				t.Fatalf("wrote %x\nread %x", out.Bytes(), want)
			}
		}
		var out bytes.Buffer
		if report, err := RepairRPLY1(bytes.NewReader(b), int64(len(b)), &out); err == nil {
			checkRPLY1Repaired(t, out.Bytes(), report)
		}
	})
}

// realData finds real files beside the project; the test is skipped where
// there are none.
func realData(t *testing.T, pattern string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("..", "..", "shared", "data", pattern))
	if err != nil {
		t.Fatal(err)
	}
	if len(paths) == 0 {
		t.Skipf("no real data: ../shared/data/%s beside the project is absent", pattern)
	}
	return paths
}

func TestGenuineRPLY1ComesBackByteForByte(t *testing.T) {
	for _, path := range realData(t, "rply1/*.rply*") {
		f, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		raw := unwrapped(t, path)
		var out bytes.Buffer
		if err := WriteRPLY1(&out, f); err != nil || !bytes.Equal(out.Bytes(), raw) {
			t.Errorf("%s: %v, %d bytes came back, want %d", filepath.Base(path), err, out.Len(), len(raw))
		}
		checkWhole(t, f)
		f.Close()
	}
}

// unwrapped reads a whole file and takes a wrapping off.
func unwrapped(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	src, size, _, err := Unwrap(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	raw := make([]byte, size)
	if err := readFull(src, raw, 0); err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestGenuineRPLY1Damaged(t *testing.T) {
	realData(t, "rply1/damaged/*.rply")
	for _, d := range []rply1Damage{
		{name: "dup-tick", is: ErrCorrupt, text: []string{"offset 59043:", "tick 3011 out of order after 3011"}, kept: 6000},
		{name: "missing-tick", ticks: 5999, kept: 5999, lost: "[{3011 3011"},
		{name: "flip-cmd-targetx", ticks: 6000, kept: 6000},
		{name: "flip-hash", ticks: 6000, kept: 6000},
		{name: "snaplen-ffffffff", is: ErrCorrupt, text: []string{"offset 35:", "4294967295"}, kept: 6000},
		{name: "trunc-at-boundary", ticks: 3010, kept: 3010},
		{name: "trunc-mid-tick", torn: true, ticks: 3010, text: []string{"offset 58985 ", "last whole tick 3010"}, kept: 3010},
		{name: "trunc-mid-header", is: ErrTorn, text: []string{"no whole tick"}, noRepair: true},
		{name: "wrong-magic", is: ErrNotReplay, text: []string{"offset 4"}, noRepair: true},
		{name: "zero-length", is: ErrNotReplay, text: []string{"offset 0"}, noRepair: true},
		{name: "zero-page", is: ErrCorrupt, text: []string{"offset 40960:", "tick 2014"}, kept: 5768, lost: "[{2014 2245"},
		{name: "swapped-ticks", is: ErrCorrupt, text: []string{"offset 58999:", "tick 3011 out of order after 3012"}, kept: 6000, mended: 1},
		{name: "trailing-garbage", torn: true, ticks: 6000, text: []string{"offset 114067 ", "last whole tick 6000"}, kept: 6000},
		{name: "header-only"},
		{name: "concat-two", is: ErrCorrupt, text: []string{"offset 114067:", "second file", "out of order after 6000"}, kept: 6000},
	} {
		t.Run(d.name, func(t *testing.T) {
			b := unwrapped(t, filepath.Join("..", "..", "shared", "data", "rply1", "damaged", d.name+".rply"))
			d.checkOpen(t, b)
			d.checkRepair(t, b)
		})
	}
}

func TestRepairedGenuineFilesAreTheOriginalAgain(t *testing.T) {
	realData(t, "rply1/damaged/*.rply")
	folder := filepath.Join("..", "..", "shared", "data", "rply1")
	want := unwrapped(t, filepath.Join(folder, "match-2p-5min.rply"))
	for _, name := range []string{"dup-tick", "swapped-ticks", "snaplen-ffffffff", "concat-two", "trailing-garbage"} {
		b := unwrapped(t, filepath.Join(folder, "damaged", name+".rply"))
		var out bytes.Buffer
		if _, err := RepairRPLY1(bytes.NewReader(b), int64(len(b)), &out); err != nil || !bytes.Equal(out.Bytes(), want) {
			t.Errorf("%s: %v, not the original's bytes", name, err)
		}
	}
}
