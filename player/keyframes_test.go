package player

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"slices"
	"testing"
	"time"

	"reprise/format"
)

const sideSim = "mixer build 1"

// playedSide plays a match to its end and gives the side file of it.
func playedSide(t *testing.T, m *match, limit int64) []byte {
	t.Helper()
	p := NewPlayback(m.file, NewLocal(&mixer{}), PlaybackOptions{Spacing: 16, Clock: frozen{}})
	if err := p.Play(context.Background(), m.next); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	n, err := p.WriteKeyframes(&out, sideSim, limit)
	if err != nil || n == 0 || int64(out.Len()) > limit {
		t.Fatalf("%d keyframes in %d bytes: %v", n, out.Len(), err)
	}
	return out.Bytes()
}

// frozen is a clock that stands, so that no keyframe is left out to save time.
type frozen struct{ Clock }

func (frozen) Now() time.Time { return time.Time{} }

// reopened is a playback that was given a side file.
func reopened(t *testing.T, m *match, game *mixer, side []byte) *Playback {
	t.Helper()
	p := NewPlayback(m.file, NewLocal(game), PlaybackOptions{Spacing: 16})
	if n, err := p.ReadKeyframes(bytes.NewReader(side), sideSim, KeyframeFileLimit); err != nil || n == 0 {
		t.Fatalf("%d keyframes: %v", n, err)
	}
	return p
}

// TestSideFileMakesTheNextOpeningInstant: every tick is near a keyframe, and
// the states are those of playing from the start.
func TestSideFileMakesTheNextOpeningInstant(t *testing.T) {
	gap := format.Gap{First: 250, Last: 269, Reason: "spool full"}
	for name, m := range map[string]*match{
		"whole":  recordMatch(t, matchPlan{ticks: 400, hashEvery: 1}),
		"few":    recordMatch(t, matchPlan{ticks: 400, hashEvery: 30}),
		"gapped": recordMatch(t, matchPlan{ticks: 400, hashEvery: 7, frames: []format.Tick{270}, gaps: []format.Gap{gap}}),
	} {
		t.Run(name, func(t *testing.T) {
			side := playedSide(t, m, KeyframeFileLimit)
			for tick := m.first; tick <= m.next; tick += 13 {
				if tick > gap.First && tick <= gap.Last && name == "gapped" {
					continue
				}
				game := &mixer{}
				p := reopened(t, m, game, side)
				if err := p.Seek(context.Background(), tick); err != nil {
					t.Fatal(err)
				}
				m.wantAt(t, game, p, tick)
				if r := p.Report(); r.TicksRun > 16 || r.Desync != nil || len(p.BadKeyframes()) > 0 {
					t.Errorf("before %d: %+v, bad %v", tick, r, p.BadKeyframes())
				}
			}
		})
	}
}

// TestSideFileIsWrittenAgain: what was read is written with what is new.
func TestSideFileIsWrittenAgain(t *testing.T) {
	m := recordMatch(t, matchPlan{ticks: 400, hashEvery: 1})
	half := NewPlayback(m.file, NewLocal(&mixer{}), PlaybackOptions{Spacing: 16, Clock: frozen{}})
	if err := half.Play(context.Background(), 300); err != nil {
		t.Fatal(err)
	}
	var first, second bytes.Buffer
	before, err := half.WriteKeyframes(&first, sideSim, KeyframeFileLimit)
	if err != nil {
		t.Fatal(err)
	}
	p := NewPlayback(m.file, NewLocal(&mixer{}), PlaybackOptions{Spacing: 16, Clock: frozen{}})
	if _, err := p.ReadKeyframes(&first, sideSim, KeyframeFileLimit); err != nil {
		t.Fatal(err)
	}
	if err := p.Seek(context.Background(), m.next); err != nil {
		t.Fatal(err)
	}
	after, err := p.WriteKeyframes(&second, sideSim, KeyframeFileLimit)
	if want := 400/16 + before - 200/16; err != nil || after < want-1 || after > want+1 {
		t.Errorf("%d keyframes and then %d, want %d: %v", before, after, want, err)
	}
	if r := p.Report(); r.TicksRun > 200+16 {
		t.Errorf("%d ticks were run for the second half", r.TicksRun)
	}
}

func TestSideFileStaysInItsLimit(t *testing.T) {
	m := recordMatch(t, matchPlan{ticks: 1600, hashEvery: 1})
	whole := playedSide(t, m, KeyframeFileLimit)
	_, all, err := parseSide(whole)
	if err != nil {
		t.Fatal(err)
	}
	limit := int64(len(whole) / 4)
	_, few, err := parseSide(playedSide(t, m, limit))
	if err != nil || len(few) < len(all)/6 || len(few) > len(all)/4 {
		t.Fatalf("%d of %d keyframes: %v", len(few), len(all), err)
	}
	slices.SortFunc(few, func(a, b *sideFrame) int { return cmp.Compare(a.next, b.next) })
	for i := range few[1:] {
		if distance := few[i+1].next - few[i].next; distance > 16*8 {
			t.Errorf("%d ticks lie between two keyframes", distance)
		}
	}
	if last := few[len(few)-1].next; last < m.next-16*8 {
		t.Errorf("the last keyframe stands before tick %d", last)
	}
	p := NewPlayback(m.file, NewLocal(&mixer{}), PlaybackOptions{})
	if _, err := p.WriteKeyframes(io.Discard, sideSim, 10); !errors.Is(err, format.ErrLimit) {
		t.Errorf("a limit of 10 bytes: %v", err)
	}
	if _, err := p.ReadKeyframes(bytes.NewReader(whole), sideSim, limit); !errors.Is(err, ErrKeyframeFile) {
		t.Errorf("a side file above the limit: %v", err)
	}
}

// TestDamagedSideFileIsIgnored damages every byte, and cuts at each.
func TestDamagedSideFileIsIgnored(t *testing.T) {
	m := recordMatch(t, matchPlan{ticks: 100, hashEvery: 1})
	side := playedSide(t, m, KeyframeFileLimit)
	ignored := func(b []byte, what string, at int) {
		t.Helper()
		p := NewPlayback(m.file, NewLocal(&mixer{}), PlaybackOptions{})
		if n, err := p.ReadKeyframes(bytes.NewReader(b), sideSim, KeyframeFileLimit); !errors.Is(err, ErrKeyframeFile) || n > 0 || len(p.recorded) > 0 {
			t.Fatalf("%s %d: %d keyframes, %v", what, at, n, err)
		}
	}
	for at := range side {
		bad := bytes.Clone(side)
		bad[at] ^= 4
		ignored(bad, "damage at", at)
		ignored(side[:at], "cut at", at)
	}
	ignored(append(bytes.Clone(side), 0), "longer than", len(side))
}

// TestSideFileOfAnotherIsIgnored: another game, another match.
func TestSideFileOfAnotherIsIgnored(t *testing.T) {
	m := recordMatch(t, matchPlan{ticks: 100, hashEvery: 1})
	side := playedSide(t, m, KeyframeFileLimit)
	for what, c := range map[string]struct {
		m   *match
		sim string
	}{
		"another build":  {m, "mixer build 2"},
		"another match":  {recordMatch(t, matchPlan{ticks: 101, hashEvery: 1}), sideSim},
		"other hashes":   {recordMatch(t, matchPlan{ticks: 100, hashEvery: 2}), sideSim},
		"without hashes": {recordMatch(t, matchPlan{ticks: 100}), sideSim},
		"a shorter one":  {recordMatch(t, matchPlan{ticks: 50, hashEvery: 1}), sideSim},
	} {
		p := NewPlayback(c.m.file, NewLocal(&mixer{}), PlaybackOptions{})
		if n, err := p.ReadKeyframes(bytes.NewReader(side), c.sim, KeyframeFileLimit); !errors.Is(err, ErrKeyframeFile) || n > 0 {
			t.Errorf("%s: %d keyframes, %v", what, n, err)
		}
	}
	unable := NewPlayback(m.file, bare{NewLocal(&mixer{})}, PlaybackOptions{})
	if _, err := unable.ReadKeyframes(bytes.NewReader(side), sideSim, KeyframeFileLimit); !errors.Is(err, ErrUnable) {
		t.Errorf("a game without Save: %v", err)
	}
	if _, err := unable.WriteKeyframes(io.Discard, sideSim, KeyframeFileLimit); !errors.Is(err, ErrUnable) {
		t.Errorf("a game without Save: %v", err)
	}
}

// TestForgedSideFileIsFoundOut: a side file that is right but for one state is
// not trusted with it, whether or not the tick before has a hash.
func TestForgedSideFileIsFoundOut(t *testing.T) {
	for _, every := range []int{1, 30} {
		m := recordMatch(t, matchPlan{ticks: 400, hashEvery: every})
		h, frames, err := parseSide(playedSide(t, m, KeyframeFileLimit))
		if err != nil {
			t.Fatal(err)
		}
		var packer sidePacker
		var forged bytes.Buffer
		out := newSideWriter(&forged, h, KeyframeFileLimit)
		for _, f := range frames {
			if f.next == 304 {
				state, err := packer.unpack(nil, f)
				if err != nil {
					t.Fatal(err)
				}
				state[0] ^= 1
				if f, err = packer.pack(f.next, state); err != nil {
					t.Fatal(err)
				}
			}
			out.add(f)
		}
		if err := out.close(); err != nil {
			t.Fatal(err)
		}
		game := &mixer{}
		p := reopened(t, m, game, forged.Bytes())
		for _, tick := range []format.Tick{304, 310, 332, 304, 310, 400} {
			err := p.Seek(context.Background(), tick)
			if tick == 332 { // step by step, over the hash after tick 330
				err = errors.Join(p.Seek(context.Background(), 310), p.Play(context.Background(), 320), p.Play(context.Background(), 332))
			}
			if err != nil {
				t.Fatal(err)
			}
			if every == 1 || tick == 332 || len(p.BadKeyframes()) > 0 { // before, no hash could tell
				m.wantAt(t, game, p, tick)
			}
		}
		if r := p.Report(); r.Desync != nil {
			t.Errorf("hash every %d: a desync was reported: %v", every, r.Desync)
		}
		if bad := p.BadKeyframes(); len(bad) != 1 || bad[0].NextTick != 304 || !bad[0].Side {
			t.Errorf("bad keyframes are %v", bad)
		}
		if n, err := p.WriteKeyframes(io.Discard, sideSim, KeyframeFileLimit); err != nil || n == 0 {
			t.Errorf("written again: %d, %v", n, err)
		}
	}
}

// TestNothingBehindADesyncIsSaved: those states are not the recorded match.
func TestNothingBehindADesyncIsSaved(t *testing.T) {
	m := recordMatch(t, matchPlan{ticks: 400, hashEvery: 1})
	game := &mixer{}
	game.endTick = func(at format.Tick) error {
		if at == 300 {
			game.world ^= 1
		}
		return nil
	}
	p := NewPlayback(m.file, NewLocal(game), PlaybackOptions{Spacing: 16, Clock: frozen{}})
	if err := p.Play(context.Background(), m.next); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if _, err := p.WriteKeyframes(&out, sideSim, KeyframeFileLimit); err != nil {
		t.Fatal(err)
	}
	_, frames, err := parseSide(out.Bytes())
	if err != nil || len(frames) < 10 {
		t.Fatalf("%d keyframes: %v", len(frames), err)
	}
	for _, f := range frames {
		if f.next > 300 {
			t.Errorf("the state before tick %d is saved", f.next)
		}
	}
}

// TestSideFileOfALiveReplayServesItLater: what was saved while the replay grew
// is good for the longer and for the sealed one.
func TestSideFileOfALiveReplayServesItLater(t *testing.T) {
	meta := mixerMeta()
	meta.Width = format.Width16
	out := new(format.Buffer)
	w, err := format.NewWriter(out, meta, nil)
	if err != nil {
		t.Fatal(err)
	}
	game := &mixer{}
	game.Reset(Start{Meta: meta})
	grow := func(ticks int) *format.File {
		for range ticks {
			tick := w.NextTick()
			if err := errors.Join(w.Step(1, format.Int(int64(tick))), w.EndTick()); err != nil {
				t.Fatal(err)
			}
			game.Step(tick, stepOf(1, format.Int(int64(tick))))
			game.EndTick(tick)
			if err := w.Hash(tick, game.Hash(nil)); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		return openBytes(t, bytes.Clone(out.Bytes()))
	}
	live := &match{file: grow(200)}
	live.next = live.file.Summary().NextTick
	side := playedSide(t, live, KeyframeFileLimit)
	longer := &match{file: grow(200)}
	if err := w.Finish(format.EndSealed, ""); err != nil {
		t.Fatal(err)
	}
	sealed := &match{file: openBytes(t, out.Bytes())}
	for name, m := range map[string]*match{"live": live, "longer": longer, "sealed": sealed} {
		p := reopened(t, m, &mixer{}, side)
		if err := p.Seek(context.Background(), 190); err != nil {
			t.Fatal(err)
		}
		if r := p.Report(); r.TicksRun > 16 || r.Desync != nil {
			t.Errorf("%s: %+v", name, r)
		}
	}
	other := mixerMeta()
	other.Width, other.Seed = format.Width16, 99
	out = new(format.Buffer)
	if w, err = format.NewWriter(out, other, nil); err != nil {
		t.Fatal(err)
	}
	p := NewPlayback(grow(300), NewLocal(&mixer{}), PlaybackOptions{})
	if _, err := p.ReadKeyframes(bytes.NewReader(side), sideSim, KeyframeFileLimit); !errors.Is(err, ErrKeyframeFile) {
		t.Errorf("another live match: %v", err)
	}
}

func TestSpreadBeginsEverywhere(t *testing.T) {
	list := make([]int, 100)
	for i := range list {
		list[i] = i
	}
	order := spread(list)
	if sorted := slices.Sorted(slices.Values(order)); !slices.Equal(sorted, list) {
		t.Fatalf("the list became %v", order)
	}
	for n := 1; n <= 100; n++ {
		begin := append(slices.Sorted(slices.Values(order[:n])), len(list))
		for i := range begin[1:] {
			if d := begin[i+1] - begin[i]; d > 4*100/n {
				t.Errorf("of %d, two are %d apart", n, d)
			}
		}
	}
}

// FuzzKeyframeFile reads any bytes as a side file, with the right checksum: it
// gives an error or frames that can be written again, and that unpack to what
// they say or not at all.
func FuzzKeyframeFile(f *testing.F) {
	var packer sidePacker
	frame, err := packer.pack(7, bytes.Repeat([]byte("state"), 100))
	if err != nil {
		f.Fatal(err)
	}
	for _, frames := range [][]*sideFrame{nil, {frame}, {frame, frame}, {frame, {next: 3, packed: []byte{1}}}} {
		var out bytes.Buffer
		w := newSideWriter(&out, sideHead{simulation: "s", replay: "r", covered: 9}, 1<<20)
		for _, frame := range frames {
			w.add(frame)
		}
		if err := w.close(); err != nil {
			f.Fatal(err)
		}
		f.Add(out.Bytes()[:out.Len()-sha256.Size])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		sum := sha256.Sum256(b)
		b = append(b, sum[:]...)
		h, frames, err := parseSide(b)
		if err != nil {
			if !errors.Is(err, ErrKeyframeFile) {
				t.Fatal(err)
			}
			return
		}
		var again bytes.Buffer
		w := newSideWriter(&again, h, int64(len(b)))
		for _, frame := range frames {
			if !w.add(frame) {
				t.Fatal("no room for what was there")
			}
			if state, err := packer.unpack(nil, frame); err == nil && (uint64(len(state)) != frame.size || sha256.Sum256(state) != frame.sum) {
				t.Fatal("another state")
			}
		}
		if err := w.close(); err != nil || !bytes.Equal(again.Bytes(), b) {
			t.Fatalf("written again: %v, %d bytes of %d", err, again.Len(), len(b))
		}
	})
}
