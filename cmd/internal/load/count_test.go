package load

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reprise/format"
)

// replay makes a file by hand: what each tick holds, and what is wrong with it.
type replay struct {
	script Script
	b      []byte
	seq    uint64
	build  *format.BatchBuilder
}

func newReplay(s Script) *replay {
	spec := s.Spec()
	r := &replay{script: s, build: format.NewBatchBuilder(format.Width16, 0, 0)}
	r.b = format.AppendChunk(format.AppendHeader(nil), format.ChunkMeta, 0, format.AppendMeta(nil, &spec.Meta))
	r.b = format.AppendChunk(r.b, format.ChunkBook, 0, format.AppendBook(nil, spec.Book))
	return r
}

// ticks records n ticks of a script, as they are in tick numbers from from on.
func (r *replay) ticks(s Script, from format.Tick, n int) *replay {
	w := writer{script: &s}
	for i := range n {
		for player := range s.players() {
			code, params := w.step(from+format.Tick(i), player)
			if err := r.build.Step(code, params...); err != nil {
				panic(err)
			}
		}
		r.build.EndTick()
	}
	return r.chunk(format.ChunkTicks, r.cut())
}

func (r *replay) cut() []byte {
	body := r.build.AppendBody(nil)
	r.build.Cut()
	return body
}

func (r *replay) chunk(typ format.ChunkType, body []byte) *replay {
	r.seq++
	r.b = format.AppendChunk(r.b, typ, r.seq, body)
	return r
}

func (r *replay) gap(first, last format.Tick) *replay {
	r.build.Skip(last + 1)
	return r.chunk(format.ChunkGap, format.AppendGap(nil, format.Gap{First: first, Last: last}))
}

// save writes the file into a data folder.
func (r *replay) save(t *testing.T, data, folder, start string) string {
	t.Helper()
	path := filepath.Join(data, folder, fmt.Sprintf("room-%s-%s.rply", r.script.Session, start))
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, r.b, 0o600)); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestCount(t *testing.T) {
	s := Script{Session: "m", Number: 7, StepBytes: 40}
	crowd, other, larger, swapped := s, s, s, s
	crowd.Players, other.Number, larger.StepBytes, swapped.Players = 3, 8, 41, 2
	gaps := func(list ...format.Tick) (g []format.Gap) {
		for i := 0; i < len(list); i += 2 {
			g = append(g, format.Gap{First: list[i], Last: list[i+1]})
		}
		return g
	}
	for name, c := range map[string]struct {
		script Script
		file   *replay
		ticks  uint64
		next   format.Tick
		gaps   []format.Gap
		wrong  bool
	}{
		"whole":              {s, newReplay(s).ticks(s, 0, 10).ticks(s, 10, 5), 15, 15, nil, false},
		"no ticks":           {s, newReplay(s), 0, 0, nil, false},
		"three players":      {crowd, newReplay(crowd).ticks(crowd, 0, 10), 10, 10, nil, false},
		"a gap":              {s, newReplay(s).ticks(s, 0, 10).gap(10, 19).ticks(s, 20, 5), 15, 25, gaps(10, 19), false},
		"gaps at both ends":  {s, newReplay(s).gap(0, 4).ticks(s, 5, 5).gap(10, 10), 5, 11, gaps(0, 4, 10, 10), false},
		"gap beside gap":     {s, newReplay(s).ticks(s, 0, 2).gap(2, 3).gap(4, 5).ticks(s, 6, 1), 3, 7, gaps(2, 3, 4, 5), false},
		"another session's":  {s, newReplay(s).ticks(s, 0, 10).ticks(other, 10, 5), 0, 0, nil, true},
		"a tick twice":       {s, newReplay(s).ticks(s, 0, 10).ticks(s, 9, 5), 0, 0, nil, true},
		"a tick left out":    {s, newReplay(s).ticks(s, 0, 10).ticks(s, 11, 5), 0, 0, nil, true},
		"longer filler":      {s, newReplay(s).ticks(larger, 0, 1), 0, 0, nil, true},
		"a player more":      {s, newReplay(s).ticks(crowd, 0, 1), 0, 0, nil, true},
		"a player less":      {crowd, newReplay(crowd).ticks(s, 0, 1), 0, 0, nil, true},
		"behind its gap":     {s, newReplay(s).ticks(s, 0, 10).gap(10, 19).ticks(s, 19, 5), 0, 0, nil, true},
		"a replay of others": {other, newReplay(Script{Session: "x"}), 0, 0, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			found, err := c.script.Count(c.file.save(t, t.TempDir(), "live", "20260101T000000Z"))
			if c.wrong {
				if err == nil {
					t.Fatalf("found %+v, want an error", found)
				}
				return
			}
			if err != nil || found.Ticks != c.ticks || found.Next != c.next || fmt.Sprint(found.Gaps) != fmt.Sprint(c.gaps) {
				t.Errorf("found %+v (%v), want %d ticks before %d, gaps %v", found, err, c.ticks, c.next, c.gaps)
			}
		})
	}
}

// The order of the players' steps within a tick matters.
func TestCountOrderWithinTick(t *testing.T) {
	s := Script{Session: "m", Players: 2, StepBytes: 30}
	r := newReplay(s)
	w := writer{script: &s}
	for _, player := range []int{1, 0} {
		code, params := w.step(0, player)
		if err := r.build.Step(code, params...); err != nil {
			t.Fatal(err)
		}
	}
	r.build.EndTick()
	_, err := s.Count(r.chunk(format.ChunkTicks, r.cut()).save(t, t.TempDir(), "live", "20260101T000000Z"))
	if !errors.Is(err, ErrWrongTick) {
		t.Errorf("error %v, want %v", err, ErrWrongTick)
	}
}

// A flipped bit anywhere in the ticks is noticed.
func TestCountDamaged(t *testing.T) {
	s := Script{Session: "m", Number: 7, StepBytes: 40}
	head := len(newReplay(s).b)
	r := newReplay(s).ticks(s, 0, 3).ticks(s, 3, 1)
	for at := head; at < len(r.b); at++ {
		r.b[at] ^= 4
		found, err := s.Count(r.save(t, t.TempDir(), "live", "20260101T000000Z"))
		r.b[at] ^= 4
		if err == nil && found.Ticks == 4 {
			t.Fatalf("byte %d was changed, found %+v", at, found)
		}
	}
}

func TestMissing(t *testing.T) {
	s := Script{Session: "m", StepBytes: 20}
	sealed := &format.End{State: format.EndSealed}
	gap := func(first, last format.Tick) []format.Gap { return []format.Gap{{First: first, Last: last}} }
	for name, c := range map[string]struct {
		promise Promise
		found   Found
		acked   uint64
		missing uint64
		fault   string
	}{
		"all there":             {Promise{Durable: 10, Next: 12}, Found{Next: 12}, 10, 0, ""},
		"as far as promised":    {Promise{Durable: 10, Next: 12}, Found{Next: 10}, 10, 0, ""},
		"the last one":          {Promise{Durable: 10, Next: 12}, Found{Next: 9}, 10, 1, ""},
		"nothing":               {Promise{Durable: 10, Next: 12}, Found{}, 10, 10, ""},
		"in a gap":              {Promise{Durable: 10, Next: 12}, Found{Next: 12, Gaps: gap(3, 5)}, 10, 3, ""},
		"gap over the end":      {Promise{Durable: 10, Next: 12}, Found{Next: 12, Gaps: gap(8, 11)}, 10, 2, ""},
		"left out":              {Promise{Durable: 10, Next: 12, LeftOut: gap(3, 5)}, Found{Next: 12, Gaps: gap(3, 5)}, 7, 0, ""},
		"left out, not said":    {Promise{Durable: 10, Next: 12, LeftOut: gap(3, 5)}, Found{Next: 12}, 7, 0, "left out"},
		"left out, partly said": {Promise{Durable: 10, Next: 12, LeftOut: gap(3, 5)}, Found{Next: 12, Gaps: gap(4, 5)}, 7, 0, "left out"},
		"gap too wide":          {Promise{Durable: 10, Next: 12, LeftOut: gap(3, 5)}, Found{Next: 12, Gaps: gap(2, 6)}, 7, 2, ""},
		"left out, not there":   {Promise{Durable: 10, Next: 20, LeftOut: gap(12, 15)}, Found{Next: 10}, 10, 0, ""},
		"sealed":                {Promise{Durable: 12, Next: 12, Sealed: true}, Found{Next: 12, End: sealed}, 12, 0, ""},
		"sealed, not finished":  {Promise{Durable: 12, Next: 12, Sealed: true}, Found{Next: 12}, 12, 0, "sealed"},
		"sealed as unfinished":  {Promise{Durable: 12, Next: 12, Sealed: true}, Found{Next: 12, End: &format.End{State: format.EndUnfinished}}, 12, 0, "sealed"},
		"sealed, with more":     {Promise{Durable: 12, Next: 12, Sealed: true}, Found{Next: 13, End: sealed}, 12, 0, "before tick 13"},
	} {
		t.Run(name, func(t *testing.T) {
			c.promise.Script = s
			missing, err := c.promise.Missing(&c.found)
			if c.promise.Acknowledged() != c.acked || missing != c.missing || (err != nil) != (c.fault != "") || err != nil && !strings.Contains(err.Error(), c.fault) {
				t.Errorf("%d of %d are missing (%v), want %d of %d and %q", missing, c.promise.Acknowledged(), err, c.missing, c.acked, c.fault)
			}
		})
	}
}

// The files are looked up by session, and each session has one.
func TestCountFiles(t *testing.T) {
	script := func(id string, n int) Script { return Script{Session: id, Number: n, StepBytes: 20} }
	promise := func(s Script, durable format.Tick) Promise {
		return Promise{Script: s, Durable: durable, Next: durable}
	}
	a, b, c, d := script("a", 1), script("a-b", 2), script("c", 3), script("d", 4)
	data := t.TempDir()
	newReplay(a).ticks(a, 0, 5).save(t, data, "sealed", "20260101T000000Z")
	newReplay(b).ticks(b, 0, 5).gap(5, 6).save(t, data, "live", "20260101T000000Z")
	tally, err := CountFiles(data, []Promise{promise(a, 5), promise(b, 4), promise(d, 0)})
	if want := (Tally{Sessions: 2, Acknowledged: 9, InFiles: 10, Gaps: 2}); err != nil || tally != want {
		t.Errorf("%+v (%v), want %+v", tally, err, want)
	}
	// What one session has too many does not make up for another's loss.
	tally, err = CountFiles(data, []Promise{promise(a, 3), promise(b, 7)})
	if err != nil || tally.Missing != 2 {
		t.Errorf("%d are missing (%v), want 2", tally.Missing, err)
	}
	tally, err = CountFiles(data, []Promise{promise(c, 3)})
	if err == nil || tally.Missing != 3 {
		t.Errorf("a session without a replay: %d are missing (%v), want 3 and an error", tally.Missing, err)
	}
	newReplay(a).ticks(a, 0, 5).save(t, data, "unfinished", "20260101T000001Z")
	tally, err = CountFiles(data, []Promise{promise(a, 5)})
	if err == nil || tally.Missing != 5 {
		t.Errorf("a session with two replays: %d are missing (%v), want 5 and an error", tally.Missing, err)
	}
	if _, err := CountFiles(filepath.Join(data, "none"), nil); err == nil {
		t.Error("a data folder that is not there is no error")
	}
}
