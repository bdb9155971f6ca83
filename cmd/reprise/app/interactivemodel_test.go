package app

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"reprise/format"
	"reprise/player"
)

// Ten minutes of play, with the speed changed on the way, stay within a
// thousandth of the time.
func TestInteractivePlayKeepsTime(t *testing.T) {
	sit(t, court{ticks: 10_000, slow: true}.record(t), true, func(s *sitting) {
		s.press("space")
		want := 1.0 // the first tick is due at once
		for _, leg := range []struct {
			keys    []string
			speed   float64
			minutes time.Duration
		}{{nil, 1, 4}, {[]string{"+"}, 2, 3}, {[]string{"-", "-", "-"}, 0.25, 2}, {[]string{"+", "+", "+", "+"}, 4, 1}} {
			s.wait(7 * time.Millisecond) // the change comes between two ticks
			s.press(leg.keys...)
			s.wait(leg.minutes * time.Minute)
			want += 5 * leg.speed * (60*float64(leg.minutes) + 0.007)
			if got := float64(s.v.at.next); math.Abs(got-want) > want/1000+1 {
				t.Fatalf("after %d more minutes at speed %v: tick %v, want %v", leg.minutes, leg.speed, got, want)
			}
		}
	})
}

// A simulation that needs a part of each tick's time does not slow the pace.
func TestInteractivePlayCatchesUp(t *testing.T) {
	sit(t, court{ticks: 4_000, slow: true}.record(t), true, func(s *sitting) {
		rng := rand.New(rand.NewPCG(1, 2))
		s.game.endTick = func(format.Tick) error {
			time.Sleep(time.Duration(rng.Int64N(240)) * time.Millisecond)
			return nil
		}
		s.press("space")
		s.wait(10 * time.Minute)
		if got := float64(s.v.at.next); math.Abs(got-3_000) > 3 {
			t.Errorf("tick %v after 10 minutes, want 3000", got)
		}
	})
}

// A move while the replay plays changes where it plays, not how fast.
func TestInteractiveMovesWhilePlaying(t *testing.T) {
	sit(t, court{ticks: 1000, every: 100}.record(t), true, func(s *sitting) {
		s.press("space")
		s.wait(1975 * time.Millisecond)
		s.at(40, 0)
		s.press("pgdown")
		s.wait(975 * time.Millisecond)
		s.at(260, 0)
		s.press("home")
		s.wait(975 * time.Millisecond)
		s.at(20, 0)
		s.press("space")
		s.wait(time.Minute)
		s.press("space")
		s.wait(500 * time.Millisecond)
		s.at(30, 0)
	})
}

// What a suspended process missed is not made up for.
func TestInteractiveNoBurstAfterSuspension(t *testing.T) {
	sit(t, court{ticks: 2_000}.record(t), true, func(s *sitting) {
		s.press("space")
		s.wait(5 * time.Second)
		s.game.endTick = func(format.Tick) error {
			s.game.endTick = nil
			time.Sleep(time.Minute)
			return nil
		}
		s.wait(time.Minute + time.Second)
		if got := s.v.at.next; got < 115 || got > 125 {
			t.Errorf("tick %d a second after a minute's rest at tick 101, want about 121", got)
		}
	})
}

// Whatever is under way, a key has its effect within a tick's time, 50 ms.
func TestInteractiveKeysAnswerAtAnyMoment(t *testing.T) {
	const tick = 50 * time.Millisecond
	r := court{ticks: 20_000}.record(t)
	busy := func(s *sitting) {
		s.game.endTick = func(format.Tick) error { time.Sleep(5 * time.Millisecond); return nil }
	}
	for name, state := range map[string]struct {
		saves bool
		begin func(s *sitting)
	}{
		"long seek":            {true, func(s *sitting) { s.hit("end") }},
		"long seek, no Save":   {false, func(s *sitting) { s.hit("end") }},
		"playing at max":       {true, func(s *sitting) { s.hit("+", "+", "+", "+", "+", "+", "+", "space") }},
		"playing":              {true, func(s *sitting) { s.hit("space") }},
		"playing far too fast": {false, func(s *sitting) { s.hit("+", "+", "+", "+", "+", "+", "space") }},
		"search":               {true, func(s *sitting) { s.enter("/", "99") }},
		"rest":                 {true, func(*sitting) {}},
	} {
		for key, done := range map[string]func(s *sitting) bool{
			"esc":  func(s *sitting) bool { return s.v.job.kind == jobNone },
			"home": func(s *sitting) bool { return s.v.job.kind == jobNone && s.v.at.next < 20 },
			"?":    func(s *sitting) bool { return s.v.help },
			"g":    func(s *sitting) bool { return s.v.prompt != nil },
			"+":    func(s *sitting) bool { return s.v.pacer.Speed() > 1 },
			"q":    func(s *sitting) bool { return s.quit },
		} {
			t.Run(name+"/"+key, func(t *testing.T) {
				sit(t, r, state.saves, func(s *sitting) {
					busy(s)
					state.begin(s)
					s.wait(3 * time.Second)
					s.hit(key)
					s.wait(tick)
					if !done(s) {
						t.Errorf("no effect after %v: job %+v at tick %d", tick, s.v.job, s.v.at.next)
					}
				})
			})
		}
		t.Run(name+"/pause", func(t *testing.T) {
			sit(t, r, state.saves, func(s *sitting) {
				busy(s)
				state.begin(s)
				s.wait(3*time.Second + time.Millisecond)
				s.hit("esc")
				if s.v.playing {
					s.hit("space")
				}
				more := 0
				s.game.endTick = func(format.Tick) error { more++; return nil }
				s.wait(time.Second)
				if more > 0 || s.v.playing {
					t.Errorf("%d ticks began after the pause", more)
				}
			})
		})
	}
}

// A user who presses keys at random always sees the state that sequential
// play has there.
func TestInteractiveShowsTheStateOfThePlace(t *testing.T) {
	c := court{ticks: 300, every: 70, marks: []format.Mark{{Tick: 40}, {Tick: 41}, {Tick: 222}},
		gap: format.Gap{First: 100, Last: 139}, broken: 280}
	r := c.record(t)
	checked := 0
	names := []string{"right", "left", ".", ",", "pgup", "pgdown", "home", "end", "n", "N", "space", "esc", "+", "-"}
	for _, saves := range []bool{true, false} {
		for seed := range uint64(20) {
			t.Run(fmt.Sprintf("%v/%d", saves, seed), func(t *testing.T) {
				sit(t, r, saves, func(s *sitting) {
					rng := rand.New(rand.NewPCG(seed, 1))
					for range 60 {
						s.hit(names[rng.IntN(len(names))])
						if rng.IntN(4) == 0 {
							s.enter("g", fmt.Sprint(rng.IntN(310)))
						}
						if rng.IntN(2) == 0 {
							s.wait(time.Duration(rng.IntN(300)) * time.Millisecond)
						}
						if rng.IntN(3) == 0 && !s.v.playing {
							s.settle()
							c.checkSight(s)
							checked++
						}
					}
				})
			})
		}
	}
	if checked < 200 {
		t.Errorf("only %d places were checked", checked)
	}
}

// checkSight compares what is shown with sequential play.
func (c court) checkSight(s *sitting) {
	s.t.Helper()
	at := s.v.at
	if s.v.problem != nil {
		s.t.Fatalf("at tick %d: %v", at.next, s.v.problem)
	}
	game := new(ball)
	apply := func(tick format.Tick, n int) {
		for _, step := range c.steps(tick)[:n] {
			code, _ := step[0].Int64()
			game.Step(tick, format.Step{Code: uint16(code), Params: step[1:]})
		}
	}
	for tick := range at.next {
		apply(tick, len(c.steps(tick)))
		game.EndTick(tick)
	}
	if at.within > 0 {
		apply(at.next, at.within)
	}
	if got, want := fmt.Sprint(s.v.state.fields), fmt.Sprint(game.Dump()); got != want || s.v.state.err != nil {
		s.t.Fatalf("at tick %d step %d: %s (%v), want %s", at.next, at.within, got, s.v.state.err, want)
	}
	if n := len(s.v.steps.steps); s.v.steps.here && n != len(c.steps(at.next)) {
		s.t.Fatalf("tick %d shows %d steps", at.next, n)
	}
	if at.desync != nil {
		s.t.Fatalf("a desync where there is none: %v", at.desync)
	}
}

func TestInteractiveMoves(t *testing.T) {
	c := court{ticks: 300, every: 100, marks: []format.Mark{{Tick: 40}, {Tick: 41}, {Tick: 222}}}
	sit(t, c.record(t), true, func(s *sitting) {
		for _, move := range []struct {
			keys []string
			tick format.Tick
			step int
		}{
			{[]string{"right"}, 1, 0}, {[]string{"right"}, 2, 0}, {[]string{"."}, 2, 1}, {[]string{"shift+right"}, 2, 2},
			{[]string{"."}, 3, 0}, {[]string{","}, 2, 2}, {[]string{",", ","}, 2, 0}, {[]string{","}, 1, 1}, {[]string{"left"}, 1, 0},
			{[]string{"left", "left"}, 0, 0}, {[]string{","}, 0, 0}, {[]string{"n"}, 40, 0}, {[]string{"n", "n"}, 222, 0},
			{[]string{"n"}, 222, 0}, {[]string{"N"}, 41, 0}, {[]string{"pgdown"}, 241, 0}, {[]string{"pgdown"}, 300, 0},
			{[]string{"right", "."}, 300, 0}, {[]string{"pgup"}, 100, 0}, {[]string{"home"}, 0, 0}, {[]string{"end"}, 300, 0},
			{[]string{"left"}, 299, 0}, {[]string{"N", "N", "N", "N"}, 40, 0},
		} {
			s.press(move.keys...)
			s.at(move.tick, move.step)
		}
		// Presses that come faster than the game add up.
		s.press("home")
		s.hit("right", "right", "right", "right", "left", "pgdown")
		s.settle()
		s.at(203, 0)
		for _, entry := range []struct {
			text string
			tick format.Tick
		}{{"17", 17}, {"+5", 22}, {"-2", 20}, {"0:05", 100}, {"0:5.5", 110}, {"300", 300}, {"301", 300}, {"x", 300}, {"", 300}, {"-1000", 0}, {"1:00:00", 0}} {
			s.enter("g", entry.text)
			s.at(entry.tick, 0)
		}
		if !strings.Contains(s.v.notice, "tick 72000 is not in the replay, which has the ticks 0 to 299") {
			t.Errorf("notice %q", s.v.notice)
		}
		s.enter("g", "12\x7f")
		s.hit("g", "1", "2", "backspace")
		s.press("enter")
		s.at(1, 0)
		s.press("g", "5", "esc")
		s.at(1, 0)
	})
}

func TestInteractiveSearch(t *testing.T) {
	sit(t, court{ticks: 300}.record(t), true, func(s *sitting) {
		s.enter("/", "GOA")
		s.at(49, 0)
		s.enter("/", "")
		s.at(99, 0)
		s.enter("/", "1")
		s.at(100, 0)
		s.enter("/", "header")
		s.at(100, 0)
		if want := "no command of the code book is named header"; s.v.notice != want {
			t.Errorf("notice %q, want %q", s.v.notice, want)
		}
		s.enter("/", "77")
		s.at(100, 0)
		if want := "no command 77 from here to the end"; s.v.notice != want {
			t.Errorf("notice %q, want %q", s.v.notice, want)
		}
		s.enter("/", "99999")
		s.press("end")
		s.enter("/", "goal")
		s.at(300, 0)
	})
}

// Playing rests behind the first tick that differs, and goes on from there.
func TestInteractivePlayHaltsAtADesync(t *testing.T) {
	sit(t, court{ticks: 300, flip: 120}.record(t), true, func(s *sitting) {
		s.press("+", "+", "+", "+", "+", "+", "+", "space")
		s.at(121, 0)
		if s.v.playing || s.v.at.desync == nil || s.v.at.desync.Tick != 120 {
			t.Errorf("playing %v, desync %v", s.v.playing, s.v.at.desync)
		}
		s.press("space")
		s.at(300, 0)
		if s.v.playing || s.v.stateWord() != "ENDED" {
			t.Errorf("at the end: %s", s.v.stateWord())
		}
	})
}

// Where a step fails, the player rests before its tick, and everything before
// can still be looked at.
func TestInteractiveStepThatFails(t *testing.T) {
	for _, saves := range []bool{true, false} {
		sit(t, court{ticks: 300, foul: 120}.record(t), saves, func(s *sitting) {
			for _, keys := range [][]string{{"+", "+", "+", "+", "+", "+", "+", "space"}, {"end"}, {"home", "pgdown"}} {
				s.press(keys...)
				s.at(120, 0)
				var failure *player.StepFailure
				if !errors.As(s.v.problem, &failure) || failure.Tick != 120 {
					t.Errorf("%v: problem %v", keys, s.v.problem)
				}
			}
			s.press("left")
			s.at(119, 0)
			if s.v.problem != nil || s.v.state.err != nil {
				t.Errorf("problem %v, state %v", s.v.problem, s.v.state.err)
			}
		})
	}
}

// A crash in the game's own code is told, and the player stays.
func TestInteractiveGameThatPanics(t *testing.T) {
	sit(t, court{ticks: 300}.record(t), true, func(s *sitting) {
		s.game.endTick = func(tick format.Tick) error {
			if tick == 77 {
				panic("own goal")
			}
			return nil
		}
		s.press("end")
		s.at(77, 0)
		if !isError[*player.SimulationError](s.v.problem) {
			t.Errorf("problem %v", s.v.problem)
		}
		s.game.endTick = nil
		s.press("end")
		s.at(300, 0)
	})
}

// A gap that no keyframe follows is the end of the way.
func TestInteractiveGapWithoutKeyframe(t *testing.T) {
	sit(t, court{ticks: 300, gap: format.Gap{First: 100, Last: 139}}.record(t), true, func(s *sitting) {
		s.press("+", "+", "+", "+", "+", "+", "+", "space")
		s.at(100, 0)
		if !isError[*player.GapError](s.v.problem) {
			t.Errorf("problem %v", s.v.problem)
		}
		s.press("left")
		s.at(99, 0)
		s.enter("g", "120")
		s.at(99, 0)
		if want := "tick 120 is missing: there is a gap from 100 to 139"; s.v.notice != want {
			t.Errorf("notice %q, want %q", s.v.notice, want)
		}
	})
}

// A gap takes no time: the tick behind it follows as if there were none.
func TestInteractivePlayPassesAGap(t *testing.T) {
	c := court{ticks: 300, every: 70, gap: format.Gap{First: 100, Last: 139}}
	sit(t, c.record(t), true, func(s *sitting) {
		s.press("space")
		s.wait(5975 * time.Millisecond)
		if want := format.Tick(1 + 119 + 40); s.v.at.next != want {
			t.Errorf("tick %d, want %d", s.v.at.next, want)
		}
		s.press("space")
		c.checkSight(s)
		s.press("left", "pgup", "right")
		s.enter("g", "100")
		s.press("right")
		s.at(140, 0)
		s.press("left")
		s.at(100, 0)
	})
}

// A turn-based game looks ahead: every place can be reached all the same, and
// its fields are named.
func TestInteractiveTurns(t *testing.T) {
	r, err := (&opener{running: map[string]bool{}}).open(sample{tower: true, ticks: 60}.write(t))
	must(t, err)
	defer r.Close()
	game, err := SampleGames().Lookup(r.Summary().Meta)
	must(t, err)
	sitWith(t, r, game.Simulation(), func(s *sitting) {
		s.press("space")
		s.wait(9500 * time.Millisecond)
		s.at(10, 0)
		s.press("space", "left", "left", "right", "pgdown", "pgdown")
		s.at(29, 0)
		s.press(".")
		s.at(29, 0)
		if s.v.notice != noInner || len(s.v.state.fields) == 0 || !s.v.at.playsThrough {
			t.Errorf("notice %q, %d fields", s.v.notice, len(s.v.state.fields))
		}
		s.press("end")
		if s.at(r.Summary().NextTick, 0); s.v.at.desync != nil {
			t.Error(s.v.at.desync)
		}
	})
}

// farSighted is a game that looks ahead: its moves cannot rest on the way.
type farSighted struct{ *player.Local }

func (farSighted) LooksAhead() bool { return true }

// A move that cannot rest on the way can be given up all the same: the player
// then stands at the beginning, from where it would replay anyway.
func TestInteractiveGivesUpAWholeMove(t *testing.T) {
	game := new(ball)
	sitWith(t, court{ticks: 20_000}.record(t), farSighted{player.NewLocal(game)}, func(s *sitting) {
		s.press("right", "right")
		s.at(2, 0)
		game.endTick = func(format.Tick) error { time.Sleep(5 * time.Millisecond); return nil }
		s.hit("end")
		s.wait(3 * time.Second)
		if text := s.v.jobText(); s.v.stateWord() != "SEEKS" || !strings.Contains(text, "going to tick 20000, now at tick 5") {
			t.Errorf("while seeking: %s, %s", s.v.stateWord(), text)
		}
		s.hit("esc")
		s.wait(50 * time.Millisecond)
		s.at(0, 0)
		if s.v.job.kind != jobNone || s.v.problem != nil || fmt.Sprint(s.v.state.fields) != fmt.Sprint(new(ball).Dump()) {
			t.Errorf("job %v, problem %v, state %v", s.v.job.kind, s.v.problem, s.v.state.fields)
		}
	})
}
