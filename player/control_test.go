package player

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"reprise/format"
)

// deck is an engine at work in virtual time.
type deck struct {
	*Engine
	t    *testing.T
	game *mixer
	tape *tape
	done chan error
}

// newDeck makes a deck of 40 ticks, ten a second, each with a hash.
func newDeck(t *testing.T, o EngineOptions) *deck {
	d := &deck{t: t, game: &mixer{}, tape: tapeOf(t, 40, 1), done: make(chan error, 1)}
	d.tape.meta.TickRate = format.Rate{Num: 10, Den: 1}
	o.Start.Meta = d.tape.meta
	d.Engine = NewEngine(NewLocal(d.game), d.tape, o)
	return d
}

func (d *deck) run() {
	go func() {
		_, err := d.Run(context.Background())
		d.done <- err
	}()
	synctest.Wait()
}

// at wants a state and the number of ticks answered.
func (d *deck) at(state EngineState, ticks int) {
	d.t.Helper()
	synctest.Wait()
	s := d.Status()
	got := 0
	if s.HasTick {
		got = int(s.Tick) + 1
	}
	if s.State != state || got != ticks {
		d.t.Errorf("%v after %d ticks, want %v after %d", s.State, got, state, ticks)
	}
}

func TestPauseRestsAfterTheTick(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDeck(t, EngineOptions{Speed: 1})
		d.game.endTick = func(tick format.Tick) error { time.Sleep(20 * time.Millisecond); return nil }
		d.run()
		time.Sleep(110 * time.Millisecond)
		d.at(EnginePlaying, 1)
		first, second := d.Pause(), d.Pause()
		if closed(first) {
			t.Error("paused inside a tick")
		}
		<-first
		<-second
		d.at(EnginePaused, 2)
		time.Sleep(time.Hour)
		d.at(EnginePaused, 2)
		d.Resume()
		time.Sleep(95 * time.Millisecond)
		d.at(EnginePlaying, 2) // the rest of the interval was still to wait
		time.Sleep(20 * time.Millisecond)
		d.at(EnginePlaying, 3)
		d.SetSpeed(Max)
		if err := <-d.done; err != nil {
			t.Error(err)
		}
		d.at(EngineEnded, 40)
	})
}

func TestStepRunsOneTick(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDeck(t, EngineOptions{Paused: true, Speed: 1})
		d.run()
		d.at(EnginePaused, 0)
		<-d.Step()
		d.at(EnginePaused, 1)
		a, b := d.Step(), d.Step()
		<-a
		<-b
		d.at(EnginePaused, 3)
		d.Play()
		time.Sleep(250 * time.Millisecond)
		d.at(EnginePlaying, 5)
		<-d.Step() // pauses
		d.at(EnginePaused, 6)
		<-d.Stop()
		if err := <-d.done; !errors.Is(err, ErrStopped) {
			t.Errorf("Run gives %v", err)
		}
		d.at(EngineStopped, 6)
		if !closed(d.Step()) || !closed(d.Pause()) || !closed(d.Stop()) {
			t.Error("a control waits after the stop")
		}
	})
}

func TestStepsBehindTheEndAreLetGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDeck(t, EngineOptions{Paused: true})
		var steps []<-chan struct{}
		for range 45 {
			steps = append(steps, d.Step())
		}
		d.run()
		for i, step := range steps {
			if !closed(step) {
				t.Errorf("step %d waits", i)
			}
		}
		d.at(EngineEnded, 40)
		<-d.done
	})
}

func TestSpeedZeroIsAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDeck(t, EngineOptions{Speed: 1})
		d.run()
		time.Sleep(150 * time.Millisecond)
		d.SetSpeed(0)
		time.Sleep(time.Hour)
		d.at(EnginePaused, 2)
		if got := d.Status().Speed; got != 0 {
			t.Errorf("speed is %v", got)
		}
		<-d.Step()
		d.at(EnginePaused, 3)
		d.Pause()
		d.SetSpeed(2) // still paused by Pause
		time.Sleep(time.Hour)
		d.at(EnginePaused, 3)
		d.Play()
		time.Sleep(120 * time.Millisecond)
		d.at(EnginePlaying, 5)
		d.SetSpeed(0)
		d.Play() // back to the speed before
		if got := d.Status().Speed; got != 2 {
			t.Errorf("speed is %v", got)
		}
		<-d.Stop()
	})
}

func TestSpeedsThatAreNoneAreRefused(t *testing.T) {
	d := newDeck(t, EngineOptions{Speed: 3})
	for _, speed := range []float64{-1, math.NaN(), math.Inf(-1)} {
		if err := d.SetSpeed(speed); !errors.Is(err, ErrSpeed) || d.Status().Speed != 3 {
			t.Errorf("SetSpeed(%v) gives %v, speed %v", speed, err, d.Status().Speed)
		}
	}
}

func TestStopBeforeTheRunRunsNothing(t *testing.T) {
	d := newDeck(t, EngineOptions{})
	if !closed(d.Stop()) {
		t.Error("Stop waits before the run")
	}
	report, err := d.Run(context.Background())
	if !errors.Is(err, ErrStopped) || report.TicksRun != 0 || d.game.steps != 0 {
		t.Errorf("Run gives %v, report %+v", err, report)
	}
}

func TestPauseHasLateAnswersComeIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := tapeOf(t, 40, 1)
		e := NewEngine(&slow{Local: NewLocal(&mixer{}), lag: 5}, s, EngineOptions{Start: Start{Meta: s.meta}, Paused: true})
		done := make(chan error)
		go func() { _, err := e.Run(context.Background()); done <- err }()
		for n := range format.Tick(3) {
			<-e.Step()
			if got := e.Status(); got.Tick != n || !got.HasTick {
				t.Errorf("status %+v behind tick %d", got, n)
			}
		}
		e.Play()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestStopHasLateAnswersComeIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := tapeOf(t, 40, 1)
		s.tick(3).Hash[0] ^= 1
		e := NewEngine(&slow{Local: NewLocal(&mixer{}), lag: 30}, s, EngineOptions{Start: Start{Meta: s.meta}, Speed: 1})
		done := make(chan error)
		go func() { _, err := e.Run(context.Background()); done <- err }()
		time.Sleep(390 * time.Millisecond) // between two ticks
		e.Stop()
		err := <-done
		wantDesync(t, err, 3)
		if !errors.Is(err, ErrStopped) || e.Status().State != EngineStopped {
			t.Errorf("Run gives %v, status %+v", err, e.Status())
		}
	})
}

func TestPausingATurnBasedRunChangesNoHash(t *testing.T) {
	// Flushing at the pause would end the walk between two moves.
	synctest.Test(t, func(t *testing.T) {
		s := &tape{meta: &format.Metadata{Game: "walker"}}
		for i := range 10 {
			s.items = append(s.items, Item{Tick: tickOf(format.Tick(i), moveStep(int64(i)))})
		}
		var traces [2]string
		for i := range traces {
			o := EngineOptions{Start: Start{Meta: s.meta}, Paused: i == 1}
			o.Trace = func(tick format.Tick, hash []byte) error { traces[i] += fmt.Sprintf("%d %x\n", tick, hash); return nil }
			e := NewEngine(NewTurns(newWalker()), s.copy(), o)
			done := make(chan error)
			go func() { _, err := e.Run(context.Background()); done <- err }()
			if i == 1 {
				for range 10 {
					<-e.Step()
				}
				e.Play()
			}
			<-done
		}
		if traces[0] != traces[1] || len(traces[0]) == 0 {
			t.Errorf("plain\n%s\nstepped\n%s", traces[0], traces[1])
		}
	})
}

func TestControlsAnswerWhileTheSourceWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDeck(t, EngineOptions{})
		more := make(chan struct{})
		d.tape.before = func(i int) {
			if i == 5 {
				<-more
			}
		}
		d.run()
		d.at(EnginePlaying, 5)
		if !closed(d.Pause()) {
			t.Error("Pause waits for the source")
		}
		d.at(EnginePaused, 5)
		step := d.Step()
		close(more)
		<-step
		d.at(EnginePaused, 6)
		<-d.Stop()
		<-d.done
	})
}

func TestEngineControlsAnswerInEveryState(t *testing.T) {
	states := map[string]func(d *deck){
		"not started": func(d *deck) {},
		"at tick 0":   func(d *deck) { d.Pause(); d.run() },
		"playing":     func(d *deck) { d.run(); time.Sleep(450 * time.Millisecond) },
		"in a tick": func(d *deck) {
			d.game.endTick = func(tick format.Tick) error { time.Sleep(50 * time.Millisecond); return nil }
			d.run()
			time.Sleep(420 * time.Millisecond)
		},
		"paused":       func(d *deck) { d.run(); <-d.Pause() },
		"halted":       func(d *deck) { d.run(); d.SetSpeed(0) },
		"at the end":   func(d *deck) { d.SetSpeed(Max); d.run() },
		"after desync": func(d *deck) { d.tape.items[3].Tick.Hash[0] ^= 1; d.SetSpeed(Max); d.run() },
		"after crash": func(d *deck) {
			d.game.endTick = func(format.Tick) error { panic("crash") }
			d.run()
		},
		"stopped": func(d *deck) { d.run(); <-d.Stop() },
	}
	commands := map[string]func(d *deck){
		"play":      func(d *deck) { d.Play() },
		"resume":    func(d *deck) { d.Resume() },
		"pause":     func(d *deck) { <-d.Pause() },
		"step":      func(d *deck) { d.Step() },
		"speed 0":   func(d *deck) { d.SetSpeed(0) },
		"speed 0.1": func(d *deck) { d.SetSpeed(0.1) },
		"speed 1":   func(d *deck) { d.SetSpeed(1) },
		"speed 64":  func(d *deck) { d.SetSpeed(64) },
		"max":       func(d *deck) { d.SetSpeed(Max) },
		"stop":      func(d *deck) { <-d.Stop() },
	}
	for state, enter := range states {
		for first, one := range commands {
			for second, two := range commands {
				t.Run(fmt.Sprintf("%s/%s/%s", state, first, second), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { enginePair(t, enter, one, two) })
				})
			}
		}
	}
}

// enginePair gives two commands, wants each to answer within a tick's time,
// and the run to end as a run without commands does.
func enginePair(t *testing.T, enter, one, two func(d *deck)) {
	d := newDeck(t, EngineOptions{Speed: 1})
	enter(d)
	for _, command := range []func(d *deck){one, two} {
		before := time.Now()
		command(d)
		if took := time.Since(before); took > 100*time.Millisecond {
			t.Errorf("answered after %v", took)
		}
		synctest.Wait()
	}
	if d.Status().State == EngineReady {
		d.run()
	}
	d.SetSpeed(Max)
	d.Play()
	err := <-d.done
	status := d.Status()
	var desync *DesyncError
	var broken *SimulationError
	switch {
	case status.Err != err:
		t.Errorf("Run gives %v, the status has %v", err, status.Err)
	case err == nil && (status.State != EngineEnded || status.Tick != 39):
		t.Errorf("ended in %+v", status)
	case errors.Is(err, ErrStopped) && status.State != EngineStopped:
		t.Errorf("stopped in %+v", status)
	case (errors.As(err, &desync) || errors.As(err, &broken)) && status.State != EngineFailed:
		t.Errorf("failed in %+v", status)
	}
	if err != nil && !errors.Is(err, ErrStopped) && desync == nil && broken == nil {
		t.Errorf("Run gives %v", err)
	}
}
