package player

import (
	"context"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"reprise/format"
)

// timing plays a tape in virtual time and gives the moment of every tick.
// during is called inside each tick.
func timing(t *testing.T, s *tape, o EngineOptions, during func(e *Engine, tick format.Tick)) (at []time.Duration, report Report) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		game := &mixer{}
		var e *Engine
		game.endTick = func(tick format.Tick) error {
			at = append(at, time.Since(start))
			if during != nil {
				during(e, tick)
			}
			return nil
		}
		o.Start.Meta = s.meta
		e = NewEngine(NewLocal(game), s, o)
		var err error
		if report, err = e.Run(context.Background()); err != nil && !errors.Is(err, ErrNothingCompared) {
			t.Error(err)
		}
	})
	return at, report
}

// wantAt compares moments in milliseconds, to a microsecond.
func wantAt(t *testing.T, at []time.Duration, want ...float64) {
	t.Helper()
	if len(at) != len(want) {
		t.Fatalf("%d ticks, want %d", len(at), len(want))
	}
	for i := range want {
		if d := float64(at[i])/1e6 - want[i]; math.Abs(d) > 0.001 {
			t.Errorf("tick %d at %v, want %v ms", i, at[i], want[i])
		}
	}
}

func TestTicksFollowTheTickRateWithoutDrift(t *testing.T) {
	s := tapeOf(t, 30*600, 0)
	rng := rand.New(rand.NewPCG(7, 8))
	at, report := timing(t, s, EngineOptions{Speed: 1}, func(*Engine, format.Tick) {
		time.Sleep(time.Duration(rng.Int64N(40)) * time.Millisecond) // sometimes longer than a tick
	})
	for i := 0; i < len(at); i += 977 {
		due := time.Duration(i) * time.Second / 30
		if late := at[i] - due; late < 0 || late > 300*time.Millisecond {
			t.Errorf("tick %d at %v, due %v", i, at[i], due)
		}
	}
	if report.Rebased != 0 {
		t.Errorf("rebased %d times", report.Rebased)
	}
}

func TestTickRatesThatAreNoWholeNumbers(t *testing.T) {
	s := tapeOf(t, 1121, 0)
	s.meta.TickRate = format.Rate{Num: 112, Den: 5} // 22.4
	at, _ := timing(t, s, EngineOptions{Speed: 2}, nil)
	if got := at[1120]; got < 25*time.Second || got > 25*time.Second+time.Microsecond {
		t.Errorf("tick 1120 at %v, want 25s", got)
	}
}

func TestRecordedTimesPace(t *testing.T) {
	s := tapeOf(t, 5, 0)
	for i, ms := range []int64{500, 510, 900, 0, 2000} {
		s.items[i].Tick.Time = ms * 1000
	}
	s.items[3].Tick.HasTime = false // follows by a tick of 33.3 ms
	at, _ := timing(t, s, EngineOptions{Speed: 1, RecordedTimes: true}, nil)
	wantAt(t, at, 0, 10, 400, 433.334, 1500)
	s.at = 0
	s.items[0].Tick.HasTime = false
	at, _ = timing(t, s, EngineOptions{Speed: 1, RecordedTimes: true}, nil)
	wantAt(t, at, 0, 33.334, 423.334, 456.667, 1523.334)
}

func TestTurnsWithoutATickRateFollowByTheInterval(t *testing.T) {
	s := tapeOf(t, 3, 0)
	s.meta.TickRate = format.Rate{}
	at, _ := timing(t, s, EngineOptions{Speed: 2}, nil)
	wantAt(t, at, 0, 500, 1000)
	at, _ = timing(t, s.copy(), EngineOptions{Speed: 1, TurnInterval: 250 * time.Millisecond}, nil)
	wantAt(t, at, 0, 250, 500)
}

func TestMaxWaitsForNothing(t *testing.T) {
	at, report := timing(t, tapeOf(t, 1000, 0), EngineOptions{}, nil)
	if at[999] != 0 || report.Rebased != 0 {
		t.Errorf("last tick at %v, rebased %d", at[999], report.Rebased)
	}
}

func TestSpeedChangesTakeEffectFromTheirMoment(t *testing.T) {
	s := tapeOf(t, 8, 0)
	s.meta.TickRate = format.Rate{Num: 10, Den: 1}
	at, _ := timing(t, s, EngineOptions{Speed: 1}, func(e *Engine, tick format.Tick) {
		switch tick {
		case 1:
			time.Sleep(50 * time.Millisecond)
			e.SetSpeed(0.5) // half a tick is left, at half the speed
		case 3:
			e.SetSpeed(Max)
		case 5:
			e.SetSpeed(2)
		}
	})
	wantAt(t, at, 0, 100, 250, 450, 450, 450, 500, 550)
}

func TestAGapTakesNoTime(t *testing.T) {
	s := tapeOf(t, 20, 0)
	s.meta.TickRate = format.Rate{Num: 10, Den: 1}
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		e := NewEngine(NewLocal(&mixer{}), s.cut(t, 2, 17, true, true), EngineOptions{Start: Start{Meta: s.meta}, Speed: 1})
		e.Run(context.Background())
		if got := time.Since(start); got != 300*time.Millisecond {
			t.Errorf("4 ticks took %v", got)
		}
	})
}

func TestASuspendedProcessCausesNoBurst(t *testing.T) {
	s := tapeOf(t, 30, 0)
	s.meta.TickRate = format.Rate{Num: 10, Den: 1}
	at, report := timing(t, s, EngineOptions{Speed: 1}, func(_ *Engine, tick format.Tick) {
		switch tick {
		case 5:
			time.Sleep(250 * time.Millisecond) // a stall: catch up
		case 15:
			time.Sleep(30 * time.Second) // a suspended process: start anew
		}
	})
	wantAt(t, at[5:10], 500, 750, 750, 800, 900)
	wantAt(t, at[15:18], 1500, 31500, 31600)
	if report.Rebased != 1 {
		t.Errorf("rebased %d times", report.Rebased)
	}
}

func TestRecordedTimesOfAnySizeAreWaitedFor(t *testing.T) {
	s := tapeOf(t, 3, 0)
	s.items[1].Tick.Time = math.MaxInt64
	s.items[2].Tick.Time = math.MaxInt64
	synctest.Test(t, func(t *testing.T) {
		e := NewEngine(NewLocal(&mixer{}), s, EngineOptions{Start: Start{Meta: s.meta}, Speed: 1, RecordedTimes: true})
		done := make(chan error)
		go func() { _, err := e.Run(context.Background()); done <- err }()
		time.Sleep(100 * time.Hour)
		if got := e.Status(); got.Tick != 0 || got.State != EnginePlaying {
			t.Errorf("status %+v", got)
		}
		<-e.Stop()
		if err := <-done; !errors.Is(err, ErrStopped) {
			t.Errorf("Run gives %v", err)
		}
	})
}

// endless gives empty ticks.
type endless struct {
	record format.TickRecord
	n      format.Tick
	last   format.Tick
}

func (e *endless) Next() (Item, error) {
	if e.n > e.last {
		return Item{}, io.EOF
	}
	e.record = format.TickRecord{Tick: e.n}
	e.n++
	return Item{Tick: &e.record}, nil
}

func TestTenHoursOfRandomSpeedChanges(t *testing.T) {
	const rate = 4
	last := format.Tick(10 * 3600 * rate)
	meta := &format.Metadata{TickRate: format.Rate{Num: rate, Den: 1}}
	plain, played := &mixer{}, &mixer{}
	Run(context.Background(), NewLocal(plain), &endless{last: last}, EngineOptions{Start: Start{Meta: meta}})
	synctest.Test(t, func(t *testing.T) {
		e := NewEngine(NewLocal(played), &endless{last: last}, EngineOptions{Start: Start{Meta: meta}, Speed: 1})
		done := make(chan error)
		go func() { _, err := e.Run(context.Background()); done <- err }()
		rng := rand.New(rand.NewPCG(9, 10))
		position, speed := 0.0, 1.0
		for position < 36000-32 {
			d := time.Duration(1+rng.IntN(500)) * time.Millisecond
			time.Sleep(d)
			synctest.Wait()
			position += d.Seconds() * speed
			if tick := float64(e.Status().Tick); math.Abs(tick-math.Floor(position*rate)) > 1 {
				t.Fatalf("at tick %v, position %v s", tick, position)
			}
			speed = math.Exp2(rng.Float64()*9 - 3) // 1/8 to 64
			e.SetSpeed(speed)
		}
		e.SetSpeed(Max)
		if err := <-done; !errors.Is(err, ErrNothingCompared) {
			t.Error(err)
		}
	})
	if played.world != plain.world || played.random != plain.random || plain.random == 0 {
		t.Errorf("state %x %x, want %x %x", played.world, played.random, plain.world, plain.random)
	}
}

// TestTenMinutesAtEverySpeed: at any speed and tick rate, ten minutes of the
// clock are ten minutes of the replay times the speed, to 0.1 %, though the
// ticks take time themselves; and no tick comes early or in a burst.
func TestTenMinutesAtEverySpeed(t *testing.T) {
	const clock = 10 * time.Minute
	for _, c := range []struct {
		speed float64
		rate  format.Rate
	}{
		{0.1, format.Rate{Num: 60, Den: 1}}, {0.1, format.Rate{Num: 1000, Den: 7}}, {0.5, format.Rate{Num: 112, Den: 5}},
		{1, format.Rate{Num: 60, Den: 1}}, {1, format.Rate{Num: 22, Den: 3}}, {3, format.Rate{Num: 20, Den: 1}},
		{16, format.Rate{Num: 5, Den: 1}}, {64, format.Rate{Num: 2, Den: 1}},
	} {
		perSecond := c.rate.Float() * c.speed
		last := format.Tick(perSecond * clock.Seconds())
		interval := time.Duration(float64(time.Second) / perSecond)
		meta := &format.Metadata{TickRate: c.rate}
		rng := rand.New(rand.NewPCG(11, 12))
		synctest.Test(t, func(t *testing.T) {
			game, start, before := &mixer{}, time.Now(), time.Duration(-time.Hour)
			game.endTick = func(tick format.Tick) error {
				at := time.Since(start)
				due := time.Duration(float64(tick) / perSecond * float64(time.Second))
				if at < due-time.Microsecond || at > due+2*interval || at-before < interval/100 {
					t.Fatalf("speed %v, rate %v: tick %d at %v, due %v, the one before at %v", c.speed, c.rate, tick, at, due, before)
				}
				before = at
				time.Sleep(time.Duration(rng.Float64() * 0.9 * float64(interval)))
				return nil
			}
			e := NewEngine(NewLocal(game), &endless{last: last}, EngineOptions{Start: Start{Meta: meta}, Speed: c.speed})
			if _, err := e.Run(context.Background()); !errors.Is(err, ErrNothingCompared) {
				t.Error(err)
			}
			if took := time.Since(start); math.Abs(took.Seconds()/clock.Seconds()-1) > 0.001 {
				t.Errorf("speed %v, rate %v: ten minutes took %v", c.speed, c.rate, took)
			}
		})
	}
}

// TestASuspendedProcessAtEverySpeed: what was missed is not made up for, and
// the pace behind it is the one before, also where the speed was changed or
// playback paused meanwhile.
func TestASuspendedProcessAtEverySpeed(t *testing.T) {
	const rate, at = 10, 20
	for _, speed := range []float64{0.1, 1, 8, 64} {
		interval := time.Duration(float64(time.Second) / rate / speed)
		for name, during := range map[string]func(e *Engine){
			"only suspended":  func(*Engine) {},
			"another speed":   func(e *Engine) { e.SetSpeed(2 * speed) },
			"paused, resumed": func(e *Engine) { e.Pause(); e.Play() },
		} {
			s := tapeOf(t, 60, 0)
			s.meta.TickRate = format.Rate{Num: rate, Den: 1}
			moments, report := timing(t, s, EngineOptions{Speed: speed}, func(e *Engine, tick format.Tick) {
				if tick == at {
					time.Sleep(30*time.Second + 20*interval)
					during(e)
				}
			})
			pace := interval
			if name == "another speed" {
				pace /= 2
			}
			for i := at + 2; i < len(moments); i++ {
				if d := moments[i] - moments[i-1]; d < pace-time.Microsecond || d > pace+time.Microsecond {
					t.Fatalf("speed %v, %s: tick %d came %v after the one before, want %v", speed, name, i, d, pace)
				}
			}
			if report.Rebased != 1 {
				t.Errorf("speed %v, %s: rebased %d times", speed, name, report.Rebased)
			}
		}
	}
}

// TestChangesAtAnyMoment changes speed, pauses and resumes at random moments,
// from another goroutine, and compares with an exact account of the position.
func TestChangesAtAnyMoment(t *testing.T) {
	const rate = 50
	synctest.Test(t, func(t *testing.T) {
		meta := &format.Metadata{TickRate: format.Rate{Num: rate, Den: 1}}
		e := NewEngine(NewLocal(&mixer{}), &endless{last: 1 << 40}, EngineOptions{Start: Start{Meta: meta}, Speed: 1})
		done := make(chan error)
		go func() { _, err := e.Run(context.Background()); done <- err }()
		rng := rand.New(rand.NewPCG(13, 14))
		position, speed, paused := 0.0, 1.0, false
		for range 3000 {
			d := time.Duration(1 + rng.Int64N(int64(300*time.Millisecond)))
			time.Sleep(d)
			synctest.Wait()
			if !paused {
				position += d.Seconds() * speed
			}
			if tick := float64(e.Status().Tick); math.Abs(tick-math.Floor(position*rate)) > 1 {
				t.Fatalf("at tick %v, position %v s", tick, position)
			}
			switch rng.IntN(4) {
			case 0:
				<-e.Pause()
				paused = true
			case 1:
				e.Play()
				paused = false
			default:
				speed = 0.1 * math.Exp2(rng.Float64()*9.3) // 0.1 to 64
				e.SetSpeed(speed)
			}
		}
		<-e.Stop()
		if err := <-done; !errors.Is(err, ErrStopped) {
			t.Error(err)
		}
	})
}
