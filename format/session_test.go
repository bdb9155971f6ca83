package format

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"math/rand/v2"
	"reflect"
	"testing"
)

// session is a whole recording as a plain model: what a file must give back.
type session struct {
	meta      Metadata
	book      *CodeBook
	salt      []byte
	players   []PlayerEvent
	marks     []Mark
	reports   []Report
	keyframes []Keyframe
	gaps      []Gap
	ticks     []modelTick
	end       End
	// late holds the ticks whose hashes are given behind their chunk.
	late map[Tick]bool
}

type modelTick struct {
	tick  Tick
	steps []Step
	hash  []byte
	time  int64
	timed bool
}

// smallSession has one of everything, in few bytes.
func smallSession() *session {
	s := &session{
		meta: Metadata{Session: "match-7", Game: "skirmish", Build: "1.2", Seed: 42, TickRate: Rate{112, 5}, FirstTick: 100, HashBytes: 4,
			StartedAt: 1777000000_000000, HashParts: []HashPart{{"world", 3}, {"random", 1}}, Width: Width8, Labels: []Label{{"mode", "ranked"}}},
		book:    &CodeBook{Codes: []CodeInfo{{Code: 1, Name: "move", Params: []ParamInfo{{Name: "player", Type: "int"}, {Name: "x"}}}, {Code: 2, Name: "answer", Passive: true}}},
		salt:    []byte("0123456789abcdef"),
		players: []PlayerEvent{{Tick: 100, ID: 1, Name: "Ada", Team: "red"}, {Tick: 103, ID: 1, Leave: true}},
		marks:   []Mark{{Tick: 101, Kind: "kill", Player: 1, Text: "first"}},
		reports: []Report{{At: 102, Of: 101, Peer: 9, Hash: []byte{1, 2, 3, 4}}},
		gaps:    []Gap{{First: 103, Last: 104, Reason: "spool full"}},
		end:     End{State: EndSealed, Reason: "over"},
		late:    map[Tick]bool{101: true},
	}
	s.keyframes = []Keyframe{{NextTick: 100, State: []byte("the state")}}
	s.ticks = []modelTick{
		{tick: 100, steps: []Step{{Code: 1, Params: []Value{Int(1), Int(300)}}, {Code: 2, Params: []Value{String("yes")}}}, hash: []byte{0xa0, 0xa1, 0xa2, 0xa3}, time: 0, timed: true},
		{tick: 101, hash: []byte{0xb0, 0xb1, 0xb2, 0xb3}},
		{tick: 102, steps: []Step{{Code: 1, Params: []Value{Int(1), Float(1.5)}}}, time: 90000, timed: true},
		{tick: 105, hash: []byte{0xc0, 0xc1, 0xc2, 0xc3}},
	}
	return s
}

// randomSession makes any session: every kind of value, hashes in time,
// late and missing, times, gaps, notes and keyframes.
func randomSession(r *rand.Rand) *session {
	s := &session{meta: Metadata{Game: "g", Width: Width16, HashBytes: r.IntN(9), FirstTick: Tick(r.IntN(3) * 5000), TickRate: Rate{uint32(r.IntN(3) * 10), 0}}, late: map[Tick]bool{}}
	if s.meta.TickRate.Num > 0 {
		s.meta.TickRate.Den = uint32(1 + r.IntN(7))
	}
	if r.IntN(2) == 0 {
		s.meta.Width = Width8
	}
	if r.IntN(2) == 0 {
		s.book = &CodeBook{Codes: []CodeInfo{{Code: 3, Name: "chat", Params: []ParamInfo{{Name: "player"}, {Name: "text", Type: "string", Personal: true}}}, {Code: 4}}}
	}
	tick := s.meta.FirstTick
	time := int64(0)
	for range r.IntN(4) {
		for range r.IntN(600) {
			s.ticks = append(s.ticks, randomTick(r, s, tick, &time))
			tick++
		}
		if r.IntN(2) == 0 {
			last := tick + Tick(r.IntN(3000))
			s.gaps = append(s.gaps, Gap{First: tick, Last: last, Reason: "lost", ByRecorder: r.IntN(2) == 0})
			tick = last + 1
		}
	}
	randomNotes(r, s, tick)
	s.end = End{State: EndState(1 + r.IntN(2)), Reason: "because"}
	return s
}

func randomTick(r *rand.Rand, s *session, tick Tick, time *int64) modelTick {
	t := modelTick{tick: tick}
	if r.IntN(3) == 0 {
		for range r.IntN(4) {
			step := Step{Code: uint16(r.IntN(256)), Index: len(t.steps)}
			if s.meta.Width == Width16 {
				step.Code = uint16(r.Uint32())
			}
			if r.IntN(3) == 0 {
				step.Code = 3
			}
			for range r.IntN(5) {
				step.Params = append(step.Params, randomValue(r))
			}
			t.steps = append(t.steps, step)
		}
	}
	if s.meta.HashBytes > 0 && r.IntN(3) > 0 {
		t.hash = make([]byte, s.meta.HashBytes)
		for i := range t.hash {
			t.hash[i] = byte(r.Uint32())
		}
		s.late[tick] = r.IntN(4) == 0
	}
	if r.IntN(3) == 0 {
		*time += r.Int64N(100000)
		t.time, t.timed = *time, true
	}
	return t
}

func randomNotes(r *rand.Rand, s *session, next Tick) {
	within := func() Tick { return s.meta.FirstTick + Tick(r.Uint64N(uint64(next-s.meta.FirstTick)+1)) }
	for range r.IntN(3) {
		s.marks = append(s.marks, Mark{Tick: within(), Kind: "k\x00\"\u202e", Player: uint64(r.IntN(3)), Text: "t\xff"})
		s.reports = append(s.reports, Report{At: within(), Of: within(), Peer: r.Uint64(), Hash: []byte{byte(r.Uint32())}})
	}
	if r.IntN(2) == 0 {
		s.salt = []byte("salt of 16 bytes")
		for id := range uint64(r.IntN(3)) {
			s.players = append(s.players, PlayerEvent{Tick: within(), ID: id, Name: "näme", Team: "", Observer: id == 1})
		}
	}
	seen := map[Tick]bool{}
	for range r.IntN(4) {
		k := Keyframe{NextTick: within(), State: make([]byte, r.IntN(3)*r.IntN(40000))}
		for i := range k.State {
			k.State[i] = byte(r.Uint32())
		}
		if !seen[k.NextTick] {
			s.keyframes = append(s.keyframes, k)
		}
		seen[k.NextTick] = true
	}
}

func randomValue(r *rand.Rand) Value {
	switch r.IntN(12) {
	case 0:
		return Bool(r.IntN(2) == 0)
	case 1:
		return Float([]float64{0, math.Copysign(0, -1), math.NaN(), math.Inf(1), math.Inf(-1), 1e300, 5e-324, 1e21, 123456789, 0.1}[r.IntN(10)])
	case 2:
		return Float(math.Float64frombits(r.Uint64()))
	case 3:
		return BigInt(new(big.Int).Lsh(big.NewInt(r.Int64()-1<<62), uint(r.IntN(1900))))
	case 4:
		return String([]string{"", "x", "a\"\\\n\x01\u0085\u2028é", "\xff\xfe", "\U0001f600"}[r.IntN(5)])
	case 5:
		return Bytes([]byte{byte(r.Uint32()), 0xff}[:r.IntN(3)])
	case 6:
		list := make([]int64, r.IntN(5))
		for i := range list {
			list[i] = int64(r.Uint64()) >> r.IntN(64)
		}
		return Ints(list)
	case 7:
		return integer(r.Uint64()|1<<63, r.IntN(2) == 0)
	}
	return Int(int64(r.Uint64()) >> r.IntN(64))
}

// write writes the model through a Writer. chunk is how many ticks go into
// one chunk at most.
func (s *session) write(out ReplayFile, chunk int) error {
	w, err := NewWriter(out, &s.meta, s.book)
	if err != nil {
		return err
	}
	if s.salt != nil {
		err = errors.Join(err, w.Players(s.salt, s.players))
	}
	for _, m := range s.marks {
		err = errors.Join(err, w.Mark(m))
	}
	if len(s.reports) > 0 {
		err = errors.Join(err, w.Reports(s.reports))
	}
	for _, k := range s.keyframes {
		if k.NextTick == s.meta.FirstTick {
			err = errors.Join(err, w.Keyframe(k))
		}
	}
	gaps, late := s.gaps, []modelTick(nil)
	for i, t := range s.ticks {
		for len(gaps) > 0 && gaps[0].First < t.tick {
			err = errors.Join(err, w.Gap(gaps[0]))
			gaps = gaps[1:]
		}
		err = errors.Join(err, s.writeTick(w, t))
		if s.late[t.tick] {
			late = append(late, t)
		}
		if (i+1)%chunk == 0 {
			err = errors.Join(err, w.Flush())
			for _, l := range late {
				err = errors.Join(err, w.Hash(l.tick, l.hash))
			}
			late = nil
		}
	}
	for _, g := range gaps {
		err = errors.Join(err, w.Gap(g))
	}
	err = errors.Join(err, w.Flush())
	for _, l := range late {
		err = errors.Join(err, w.Hash(l.tick, l.hash))
	}
	for _, k := range s.keyframes {
		if k.NextTick != s.meta.FirstTick {
			err = errors.Join(err, w.Keyframe(k))
		}
	}
	return errors.Join(err, w.Finish(s.end.State, s.end.Reason))
}

func (s *session) writeTick(w *Writer, t modelTick) error {
	var err error
	for _, step := range t.steps {
		err = errors.Join(err, w.Step(step.Code, step.Params...))
	}
	if t.timed {
		err = errors.Join(err, w.EndTickAt(t.time))
	} else {
		err = errors.Join(err, w.EndTick())
	}
	if t.hash != nil && !s.late[t.tick] {
		err = errors.Join(err, w.Hash(t.tick, t.hash))
	}
	return err
}

// file writes the model and opens what was written.
func (s *session) file(t testing.TB, chunk int) (*File, []byte) {
	t.Helper()
	var out Buffer
	if err := s.write(&out, chunk); err != nil {
		t.Fatal(err)
	}
	return openBytes(t, out.Bytes()), out.Bytes()
}

func openBytes(t testing.TB, b []byte) *File {
	t.Helper()
	f, err := NewFile(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// readTicks gives every tick from the reader's place on.
func readTicks(r *Reader) ([]modelTick, error) {
	var ticks []modelTick
	var rec TickRecord
	var steps StepReader
	for {
		err := r.Next(&rec)
		if err == io.EOF {
			return ticks, nil
		}
		if err != nil {
			return ticks, err
		}
		t := modelTick{tick: rec.Tick, hash: bytes.Clone(rec.Hash), time: rec.Time, timed: rec.HasTime}
		steps.Reset(&rec)
		for s := (Step{}); steps.Next(&s); {
			s.Params = append([]Value(nil), s.Params...)
			for i := range s.Params {
				s.Params[i] = s.Params[i].Clone()
			}
			t.steps = append(t.steps, s)
		}
		ticks = append(ticks, t)
	}
}

// differs says how two lists of ticks differ; empty where they do not.
func differs(got, want []modelTick) string {
	if len(got) != len(want) {
		return fmt.Sprintf("%d ticks, want %d", len(got), len(want))
	}
	for i := range got {
		g, w := got[i], want[i]
		if g.tick != w.tick || !bytes.Equal(g.hash, w.hash) || (g.hash == nil) != (w.hash == nil) || g.time != w.time || g.timed != w.timed || len(g.steps) != len(w.steps) {
			return fmt.Sprintf("tick %+v, want %+v", g, w)
		}
		for n := range g.steps {
			if !sameStep(g.steps[n], w.steps[n]) {
				return fmt.Sprintf("tick %d, step %d: %v, want %v", g.tick, n, g.steps[n], w.steps[n])
			}
		}
	}
	return ""
}

// checkFile compares all that a file says with the model.
func (s *session) checkFile(t *testing.T, f *File) {
	t.Helper()
	sum := f.Summary()
	if !reflect.DeepEqual(sum.Meta, &s.meta) {
		t.Errorf("metadata %+v, want %+v", sum.Meta, &s.meta)
	}
	if !reflect.DeepEqual(f.Book(), s.book) {
		t.Errorf("code book %+v, want %+v", f.Book(), s.book)
	}
	for _, l := range []struct{ name, got, want string }{
		{"marks", fmt.Sprint(sum.Marks), fmt.Sprint(s.marks)},
		{"gaps", fmt.Sprint(sum.Gaps), fmt.Sprint(s.gaps)},
		{"players", fmt.Sprint(sum.Players), fmt.Sprint(s.players)},
		{"reports", fmt.Sprint(readReports(t, f)), fmt.Sprint(s.reports)},
		{"end", fmt.Sprint(sum.End.State, sum.End.Reason), fmt.Sprint(s.end.State, s.end.Reason)},
	} {
		if l.got != l.want {
			t.Errorf("%s %s, want %s", l.name, l.got, l.want)
		}
	}
	s.checkKeyframes(t, f)
	ticks, err := readTicks(f.Reader())
	if err != nil {
		t.Fatal(err)
	}
	if d := differs(ticks, s.ticks); d != "" {
		t.Error(d)
	}
}

func readReports(t *testing.T, f *File) []Report {
	t.Helper()
	var list []Report
	if err := f.Reports(func(r Report) error {
		r.Hash = bytes.Clone(r.Hash)
		list = append(list, r)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return list
}

func (s *session) checkKeyframes(t *testing.T, f *File) {
	t.Helper()
	if n := len(f.Summary().Keyframes); n != len(s.keyframes) {
		t.Fatalf("%d keyframes, want %d", n, len(s.keyframes))
	}
	want := map[Tick][]byte{}
	for _, k := range s.keyframes {
		want[k.NextTick] = k.State
	}
	for i := range f.Summary().Keyframes {
		k, err := f.Keyframe(i)
		if err != nil {
			t.Fatal(err)
		}
		if state, ok := want[k.NextTick]; !ok || !bytes.Equal(state, k.State) {
			t.Errorf("keyframe before tick %d has %d bytes, want %d", k.NextTick, len(k.State), len(state))
		}
	}
}

func checkWhole(t *testing.T, f *File) *CheckReport {
	t.Helper()
	report, err := f.Check()
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 1))
		s := randomSession(r)
		f, _ := s.file(t, 1+r.IntN(300))
		s.checkFile(t, f)
		report := checkWhole(t, f)
		if f.Summary().Digest == nil || *report.Root != *f.Summary().Digest {
			t.Errorf("seed %d: digest %v, the content gives %v", seed, f.Summary().Digest, report.Root)
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	s := smallSession()
	f, _ := s.file(t, 1)
	s.checkFileWithIndexes(t, f)
}

// checkFileWithIndexes fills in the steps' indexes that a model written by
// hand leaves out.
func (s *session) checkFileWithIndexes(t *testing.T, f *File) {
	t.Helper()
	for i := range s.ticks {
		for n := range s.ticks[i].steps {
			s.ticks[i].steps[n].Index = n
		}
	}
	s.checkFile(t, f)
}

func TestSeekEqualsReadingOn(t *testing.T) {
	for seed := range uint64(8) {
		r := rand.New(rand.NewPCG(seed, 2))
		s := randomSession(r)
		f, _ := s.file(t, 40)
		reader := f.Reader()
		from := 0
		next := f.Summary().NextTick
		for tick := s.meta.FirstTick; tick <= next+1; tick += 1 + Tick(r.IntN(23)) {
			for from < len(s.ticks) && s.ticks[from].tick < tick {
				from++
			}
			reader.Seek(tick)
			var rec TickRecord
			err := reader.Next(&rec)
			if from == len(s.ticks) {
				if err != io.EOF {
					t.Fatalf("seed %d: seek to %d behind the last tick: tick %d, error %v", seed, tick, rec.Tick, err)
				}
				continue
			}
			if err != nil || rec.Tick != s.ticks[from].tick || !bytes.Equal(rec.Hash, s.ticks[from].hash) {
				t.Fatalf("seed %d: seek to %d gives tick %d hash %x, error %v, want tick %d hash %x", seed, tick, rec.Tick, rec.Hash, err, s.ticks[from].tick, s.ticks[from].hash)
			}
			if from%37 == 0 {
				reader.Seek(tick)
				rest, err := readTicks(reader)
				if err != nil {
					t.Fatal(err)
				}
				if d := differs(rest, s.ticks[from:]); d != "" {
					t.Fatalf("seed %d: from %d on: %s", seed, tick, d)
				}
			}
		}
	}
}

func TestSessionsOfNoAndOneTick(t *testing.T) {
	for ticks := range 2 {
		s := &session{meta: Metadata{Width: Width16, FirstTick: 1<<32 - 1, HashBytes: 8}, end: End{State: EndSealed}}
		for i := range ticks {
			s.ticks = append(s.ticks, modelTick{tick: s.meta.FirstTick + Tick(i), hash: []byte("8 bytes.")})
		}
		f, b := s.file(t, 1)
		s.checkFile(t, f)
		checkWhole(t, f)
		if last, ok := f.Summary().LastTick(); ok != (ticks > 0) || ok && last != 1<<32-1 {
			t.Errorf("%d ticks: last tick %d, %v", ticks, last, ok)
		}
		if !f.Summary().Complete() || f.Unproven() {
			t.Errorf("%d ticks: complete %v, unproven %v", ticks, f.Summary().Complete(), f.Unproven())
		}
		var out Buffer
		if report, err := Repair(bytes.NewReader(b), int64(len(b)), &out); err != nil || !report.Whole || !bytes.Equal(out.Bytes(), b) {
			t.Errorf("%d ticks: repair: %+v, %v", ticks, report, err)
		}
	}
}

func TestTicksCrossTwoToThe32(t *testing.T) {
	s := &session{meta: Metadata{Width: Width8, FirstTick: 1<<32 - 3, HashBytes: 1}, end: End{State: EndSealed}}
	for i := range Tick(6) {
		s.ticks = append(s.ticks, modelTick{tick: s.meta.FirstTick + i, hash: []byte{byte(i)}, steps: []Step{{Code: 1, Params: []Value{Int(int64(i))}}}})
	}
	s.keyframes = []Keyframe{{NextTick: 1 << 32, State: []byte("state")}}
	f, _ := s.file(t, 2)
	s.checkFile(t, f)
	checkWhole(t, f)
}

func TestWriterRefusesAndGoesOn(t *testing.T) {
	s := &session{meta: Metadata{Width: Width8, HashBytes: 2}, end: End{State: EndSealed}}
	var out Buffer
	w, err := NewWriter(&out, &s.meta, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.EndTickAt(50); err != nil {
		t.Fatal(err)
	}
	for name, refuse := range map[string]func() error{
		"a wide code in 8 bits":    func() error { return w.Step(256) },
		"an unsupported value":     func() error { return w.Step(1, Value{}) },
		"256 parameters":           func() error { return w.Step(1, make([]Value, 256)...) },
		"more than a tick's bytes": func() error { return w.Step(1, Bytes(make([]byte, MaxRowBytes))) },
		"time that goes back":      func() error { return w.EndTickAt(49) },
		"negative time":            func() error { return w.EndTickAt(-1) },
		"hash of the open tick":    func() error { return w.Hash(1, []byte{1, 2}) },
		"hash of another width":    func() error { return w.Hash(0, []byte{1}) },
		"gap that is not due":      func() error { return w.Gap(Gap{First: 7, Last: 9}) },
		"gap without an end":       func() error { return w.Gap(Gap{First: 1, Last: MaxTick}) },
		"a mark's long text":       func() error { return w.Mark(Mark{Text: string(make([]byte, MaxText+1))}) },
		"a leave without a join":   func() error { return w.Players(make([]byte, SaltBytes), []PlayerEvent{{ID: 1, Leave: true}}) },
		"too many reports":         func() error { return w.Reports(make([]Report, MaxBody/4)) },
	} {
		if err := refuse(); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
	err = errors.Join(w.Step(255, Int(1)), w.EndTickAt(50), w.Hash(0, []byte{1, 2}), w.Finish(EndSealed, ""))
	if err != nil {
		t.Fatal(err)
	}
	s.ticks = []modelTick{{tick: 0, hash: []byte{1, 2}, time: 50, timed: true}, {tick: 1, steps: []Step{{Code: 255, Params: []Value{Int(1)}}}, time: 50, timed: true}}
	f := openBytes(t, out.Bytes())
	s.checkFile(t, f)
	checkWhole(t, f)
}
