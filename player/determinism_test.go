package player_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"

	"reprise/format"
	"reprise/player"
	"reprise/player/games/skirmish"
	"reprise/player/games/tower"
)

// film is a recorded match of a sample game, and what its ticks hash to when a
// fresh game plays it from the start.
type film struct {
	file  *format.File
	trace []string
	fresh func() player.Simulation
}

const filmTicks = 260

// filmFrames are the ticks that the films' keyframes stand before: two next to
// each other, one at the end.
var filmFrames = []format.Tick{50, 51, 120, 200, filmTicks}

// films records a match of each sample game.
func films(t testing.TB) map[string]*film {
	t.Helper()
	all := map[string]*film{
		"skirmish": {file: skirmishFilm(t, 1), fresh: skirmish.Factory().Simulation},
		"tower":    {file: towerFilm(t), fresh: tower.Factory().Simulation},
	}
	for name, f := range all {
		trace, err := f.play(f.fresh(), player.EngineOptions{})
		if err != nil || len(trace) < filmTicks/2 {
			t.Fatalf("%s: %d ticks, %v", name, len(trace), err)
		}
		f.trace = trace
	}
	return all
}

// play plays a film and gives a line for every tick.
func (f *film) play(sim player.Simulation, o player.EngineOptions) ([]string, error) {
	var trace []string
	o.Start = player.StartOf(f.file)
	o.Trace = func(tick format.Tick, hash []byte) error {
		trace = append(trace, fmt.Sprintf("%d %x", tick, hash))
		return nil
	}
	_, err := player.Run(context.Background(), sim, player.NewFileSource(f.file), o)
	return trace, err
}

// writeFilm opens what write wrote.
func writeFilm(t testing.TB, meta *format.Metadata, book *format.CodeBook, write func(w *format.Writer) error) *format.File {
	t.Helper()
	out := new(format.Buffer)
	w, err := format.NewWriter(out, meta, book)
	if err == nil {
		err = write(w)
	}
	if err == nil {
		err = w.Finish(format.EndSealed, "")
	}
	var file *format.File
	if err == nil {
		file, err = format.NewFile(out, int64(len(out.Bytes())))
	}
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func skirmishFilm(t testing.TB, seed uint64) *format.File {
	live, err := skirmish.NewMatch(seed, 3, "plains-100")
	if err != nil {
		t.Fatal(err)
	}
	return writeFilm(t, live.Metadata(), skirmish.CodeBook(), func(w *format.Writer) error {
		for tick := range format.Tick(filmTicks) {
			if slices.Contains(filmFrames, tick) {
				if err := w.Keyframe(format.Keyframe{NextTick: tick, State: live.Game().Save(nil)}); err != nil {
					return err
				}
			}
			_, commands, _ := live.Next()
			var errs []error
			for _, c := range commands {
				errs = append(errs, w.Step(c.Op, c.AppendParams(nil)...))
			}
			errs = append(errs, w.EndTick(), live.Simulate(), w.Hash(tick, live.Game().Hash(nil)))
			if err := errors.Join(errs...); err != nil {
				return err
			}
		}
		return w.Keyframe(format.Keyframe{NextTick: filmTicks, State: live.Game().Save(nil)})
	})
}

func towerFilm(t testing.TB) *format.File {
	run, err := tower.NewRun(5, "tower-10")
	if err != nil {
		t.Fatal(err)
	}
	return writeFilm(t, tower.Metadata("", 5, "tower-10"), tower.CodeBook(), func(w *format.Writer) error {
		for range filmTicks {
			turn, settled, more := run.Next()
			var errs []error
			if more {
				turn.Steps(func(code uint16, params ...format.Value) { errs = append(errs, w.Step(code, params...)) })
				errs = append(errs, w.EndTick())
			}
			for _, s := range settled {
				errs = append(errs, w.Hash(s.Tick, s.Hash))
			}
			if err := errors.Join(errs...); err != nil || !more {
				return err
			}
		}
		return nil
	})
}

// wantTrace compares two runs tick by tick.
func wantTrace(t *testing.T, what string, got, want []string) {
	t.Helper()
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			t.Fatalf("%s: %s, a fresh game gives %s", what, got[i], want[i])
		}
	}
	if len(got) != len(want) {
		t.Fatalf("%s: %d ticks, a fresh game gives %d", what, len(got), len(want))
	}
}

// TestRestartsEqualAFreshGame: twenty runs in one process, some of them broken
// off, leave nothing behind.
func TestRestartsEqualAFreshGame(t *testing.T) {
	for name, f := range films(t) {
		t.Run(name, func(t *testing.T) {
			used := f.fresh()
			defer used.Close()
			rng := rand.New(rand.NewPCG(1, 2))
			for range 20 {
				last := format.Tick(rng.IntN(len(f.trace) - 1))
				part, err := f.play(used, player.EngineOptions{Last: &last})
				if err != nil && !errors.Is(err, player.ErrNothingCompared) {
					t.Fatal(err)
				}
				wantTrace(t, "a part", part, f.trace[:len(part)])
				whole, err := f.play(used, player.EngineOptions{})
				if err != nil {
					t.Fatal(err)
				}
				wantTrace(t, "a restart", whole, f.trace)
			}
		})
	}
}

// TestSpeedChangesNoHash plays at every kind of speed, in virtual time.
func TestSpeedChangesNoHash(t *testing.T) {
	for name, f := range films(t) {
		for _, speed := range []float64{0.1, 1, 64, player.Max} {
			t.Run(fmt.Sprintf("%s/%v", name, speed), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					sim := f.fresh()
					defer sim.Close()
					trace, err := f.play(sim, player.EngineOptions{Speed: speed})
					if err != nil {
						t.Fatal(err)
					}
					wantTrace(t, "played", trace, f.trace)
				})
			})
		}
	}
}

// TestProcessorsChangeNoHash plays under one processor and under many, alone
// and in parts.
func TestProcessorsChangeNoHash(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	all := films(t)
	for _, processors := range []int{1, 2, 64} {
		runtime.GOMAXPROCS(processors)
		for name, f := range all {
			sim := f.fresh()
			trace, err := f.play(sim, player.EngineOptions{})
			if err = errors.Join(err, sim.Close()); err != nil {
				t.Fatalf("%s, %d processors: %v", name, processors, err)
			}
			wantTrace(t, fmt.Sprintf("%s, %d processors", name, processors), trace, f.trace)
		}
		f := all["skirmish"]
		for _, jobs := range []int{1, 3} {
			report, err := player.VerifySegments(context.Background(), f.file, player.SegmentOptions{Jobs: jobs,
				Simulation: func() (player.Simulation, func(), error) { return f.fresh(), func() {}, nil }})
			if err != nil || report.TicksRun != filmTicks || report.HashesCompared != filmTicks {
				t.Errorf("%d processors, %d jobs: %+v, %v", processors, jobs, report, err)
			}
		}
	}
}

// TestEveryStartPointEqualsSequentialPlay seeks to every tick around every
// keyframe, recorded and made on the way, and plays on from there.
func TestEveryStartPointEqualsSequentialPlay(t *testing.T) {
	f := films(t)["skirmish"]
	game := skirmish.Factory().New()
	states := map[format.Tick][]byte{}
	saver := game.(player.Saver)
	p := player.NewPlayback(f.file, player.NewLocal(game), player.PlaybackOptions{Budget: -1})
	for tick := range format.Tick(filmTicks + 1) {
		if err := p.Play(t.Context(), tick); err != nil {
			t.Fatal(err)
		}
		if tick == 0 {
			if err := p.Seek(t.Context(), 0); err != nil {
				t.Fatal(err)
			}
		}
		states[tick] = saver.Save(nil)
	}
	p = player.NewPlayback(f.file, player.NewLocal(game), player.PlaybackOptions{Spacing: 32})
	var around []format.Tick
	for _, frame := range append(slices.Clone(filmFrames), 0, 32, 64, 96, 128, 224) {
		for _, tick := range []format.Tick{frame, frame + 1, frame - 1, 0, filmTicks} {
			if tick <= filmTicks {
				around = append(around, tick)
			}
		}
	}
	rng := rand.New(rand.NewPCG(3, 4))
	rng.Shuffle(len(around), func(i, j int) { around[i], around[j] = around[j], around[i] })
	for _, tick := range around {
		if err := p.Seek(t.Context(), tick); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(saver.Save(nil), states[tick]) {
			t.Fatalf("the state before tick %d is another than that of sequential play", tick)
		}
		for range 3 {
			at, err := p.Step(t.Context())
			if err == io.EOF {
				break
			}
			if err != nil || !bytes.Equal(saver.Save(nil), states[at+1]) {
				t.Fatalf("played on from %d, after tick %d: %v", tick, at, err)
			}
		}
	}
	if r := p.Report(); r.Desync != nil || len(p.BadKeyframes()) > 0 {
		t.Errorf("%v, bad keyframes %v", r.Desync, p.BadKeyframes())
	}
}
