package process

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"reprise/format"
	"reprise/player"
	"reprise/player/games/skirmish"
	"reprise/player/internal/playtest"
)

// TestPlaybackThroughAChild seeks to every tick around every keyframe, recorded
// and made on the way, of a game in a child, and compares its states with those
// of sequential play in this process. A side file serves a second child.
func TestPlaybackThroughAChild(t *testing.T) {
	const ticks = 200
	frames := []format.Tick{50, 51, 120, ticks}
	file, states := childFilm(t, ticks, frames)
	child := open(t, quick("skirmish"))
	p := player.NewPlayback(file, child, player.PlaybackOptions{Spacing: 32})
	var around []format.Tick
	for _, frame := range append(frames, 0, 32, 64, 96, 128) {
		for _, tick := range []format.Tick{frame - 1, frame, frame + 1} {
			if tick <= ticks {
				around = append(around, tick)
			}
		}
	}
	rng := rand.New(rand.NewPCG(5, 6))
	rng.Shuffle(len(around), func(i, j int) { around[i], around[j] = around[j], around[i] })
	wantStates := func(p *player.Playback) {
		for _, tick := range around {
			if err := p.Seek(t.Context(), tick); err != nil {
				t.Fatal(err)
			}
			for next := tick; next <= min(tick+2, ticks); next++ {
				if err := p.Play(t.Context(), next); err != nil {
					t.Fatal(err)
				}
				if state, err := p.Save(nil); err != nil || !bytes.Equal(state, states[next]) {
					t.Fatalf("sought to %d: the state before tick %d is another than that of sequential play (%v)", tick, next, err)
				}
			}
		}
		if r := p.Report(); r.Desync != nil || r.HashesCompared == 0 || len(p.BadKeyframes()) > 0 {
			t.Errorf("%+v, bad keyframes %v", r, p.BadKeyframes())
		}
	}
	wantStates(p)
	if kept, _ := p.Kept(); kept == 0 {
		t.Error("no keyframe was made on the way")
	}
	var side bytes.Buffer
	written, err := p.WriteKeyframes(&side, "child", player.KeyframeFileLimit)
	if err != nil {
		t.Fatal(err)
	}
	p = player.NewPlayback(file, open(t, quick("skirmish")), player.PlaybackOptions{Spacing: 32})
	if read, err := p.ReadKeyframes(&side, "child", player.KeyframeFileLimit); err != nil || read != written {
		t.Fatalf("%d keyframes of %d: %v", read, written, err)
	}
	wantStates(p)
}

// childFilm is a replay of skirmish with keyframes, and the states before each
// of its ticks.
func childFilm(t *testing.T, ticks int, frames []format.Tick) (*format.File, [][]byte) {
	t.Helper()
	start, records := playtest.Skirmish(t, ticks)
	out := new(format.Buffer)
	w, err := format.NewWriter(out, start.Meta, start.Book)
	if err != nil {
		t.Fatal(err)
	}
	local := player.NewLocal(new(skirmish.Game))
	if err := local.Reset(start); err != nil {
		t.Fatal(err)
	}
	states := [][]byte{}
	for i := 0; ; i++ {
		state, err := local.Save(nil)
		if err != nil {
			t.Fatal(err)
		}
		states = append(states, state)
		for _, frame := range frames {
			if frame == format.Tick(i) {
				err = w.Keyframe(format.Keyframe{NextTick: frame, State: state})
			}
		}
		if err == nil && i < len(records) {
			err = w.Add(&records[i])
		}
		if err == nil && i < len(records) {
			err = local.Advance(&records[i], false, func(player.Outcome) error { return nil })
		}
		if err != nil {
			t.Fatal(err)
		}
		if i == len(records) {
			break
		}
	}
	if err := w.Finish(format.EndSealed, ""); err != nil {
		t.Fatal(err)
	}
	file, err := format.NewFile(out, int64(len(out.Bytes())))
	if err != nil {
		t.Fatal(err)
	}
	return file, states
}
