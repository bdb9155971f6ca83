package player

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"reprise/format"
)

func TestPlayRunsAllStepsInOrder(t *testing.T) {
	s := newStage(SystemOptions{})
	s.active(1)
	s.active(2)
	s.record(t, 1, 2, 1)
	b := s.sandbox(t, 0)
	if err := b.Play(); err != nil {
		t.Fatal(err)
	}
	s.wantLog(t, "start", "execute 1", "step 1", "execute 2", "step 2", "execute 1", "step 3", "stop")
	if !b.Playing() || !b.Ended() || b.Pausing() {
		t.Errorf("playing %v, ended %v, pausing %v", b.Playing(), b.Ended(), b.Pausing())
	}
}

func TestPlayAfterTheEndDoesNothing(t *testing.T) {
	s := newStage(SystemOptions{})
	s.active(1)
	s.record(t, 1)
	b := s.sandbox(t, 0)
	b.Play()
	s.wantLog(t, "start", "execute 1", "step 1", "stop")
	for _, again := range []func() error{b.Play, b.Resume} {
		if err := again(); err != nil {
			t.Error(err)
		}
	}
	s.wantLog(t)
}

func TestSecondPlayWhilePlayingDoesNothing(t *testing.T) {
	s := newStage(SystemOptions{})
	s.active(1).during = func(format.Step) {
		if err := s.Sandbox().Play(); err != nil {
			t.Error(err)
		}
	}
	s.record(t, 1)
	s.sandbox(t, 0).Play()
	if s.count("start") != 1 {
		t.Errorf("started %d times", s.count("start"))
	}
}

func TestPauseDuringAStepResolvesAfterIt(t *testing.T) {
	s := newStage(SystemOptions{})
	entered, goOn := make(chan struct{}), make(chan struct{})
	s.active(1).during = func(format.Step) { close(entered); <-goOn }
	s.active(2)
	s.record(t, 1, 2)
	b := s.sandbox(t, 0)
	played := make(chan error)
	go func() { played <- b.Play() }()
	<-entered
	first, second := b.Pause(), b.Pause()
	if closed(first) || !b.Pausing() {
		t.Error("the pause took effect during the step")
	}
	close(goOn)
	<-first
	<-second
	s.wantLog(t, "start", "execute 1", "step 1", "pause")
	if err := <-played; err != nil || !b.Pausing() || !b.Playing() {
		t.Errorf("Play gives %v, pausing %v, playing %v", err, b.Pausing(), b.Playing())
	}
	if err := b.Resume(); err != nil || !b.Ended() || b.Pausing() {
		t.Errorf("Resume gives %v, ended %v", err, b.Ended())
	}
	s.wantLog(t, "resume", "execute 2", "step 2", "stop")
}

func TestPauseReturnsWhenTheStepFails(t *testing.T) {
	s := newStage(SystemOptions{})
	var waiters []<-chan struct{}
	a := s.active(1)
	a.result = Failed
	a.during = func(format.Step) {
		for range 3 {
			waiters = append(waiters, s.Sandbox().Pause())
		}
	}
	s.record(t, 1)
	b := s.sandbox(t, 0)
	if err := b.Play(); !errors.Is(err, format.WarnStepFailed) {
		t.Errorf("Play gives %v", err)
	}
	for _, w := range waiters {
		if !closed(w) {
			t.Error("a waiter was not released")
		}
	}
	if b.Pausing() || s.count("pause") != 0 {
		t.Error("a failed playback is paused")
	}
}

func TestResumeWithdrawsAPauseThatHasNotTakenEffect(t *testing.T) {
	s := newStage(SystemOptions{})
	var waiter <-chan struct{}
	s.active(1).during = func(format.Step) {
		waiter = s.Sandbox().Pause()
		if err := s.Sandbox().Resume(); err != nil {
			t.Error(err)
		}
	}
	s.active(2).during = func(format.Step) {
		if !closed(waiter) {
			t.Error("the waiter of step 1 was not released")
		}
	}
	s.record(t, 1, 2)
	b := s.sandbox(t, 0)
	if err := b.Play(); err != nil || !b.Ended() {
		t.Errorf("Play gives %v, ended %v", err, b.Ended())
	}
	s.wantLog(t, "start", "execute 1", "step 1", "execute 2", "step 2", "stop")
}

func TestStopDuringAStepPausesFirst(t *testing.T) {
	s := newStage(SystemOptions{})
	s.active(1).during = func(format.Step) { s.Sandbox().Stop() }
	s.active(2)
	s.record(t, 1, 2)
	b := s.sandbox(t, 0)
	if err := b.Play(); err != nil {
		t.Errorf("Play gives %v", err)
	}
	s.wantLog(t, "start", "execute 1", "step 1", "pause", "stop")
	if b.Playing() || b.Ended() {
		t.Errorf("playing %v, ended %v", b.Playing(), b.Ended())
	}
	for name, again := range map[string]func() error{"Play": b.Play, "Resume": b.Resume} {
		if err := again(); !errors.Is(err, ErrStopped) {
			t.Errorf("%s after Stop gives %v", name, err)
		}
	}
	if ok, err := b.Step(); ok || !errors.Is(err, ErrStopped) {
		t.Errorf("Step after Stop gives %v, %v", ok, err)
	}
	s.wantLog(t)
}

func TestStopInThePauseNoticeStopsOnce(t *testing.T) {
	s := newStage(SystemOptions{})
	s.active(1).during = func(format.Step) { s.Sandbox().Pause() }
	s.record(t, 1, 1)
	b := s.sandbox(t, 0)
	b.AddHooks(SandboxHooks{OnPauseReplay: func() { b.Stop() }})
	if err := b.Play(); err != nil {
		t.Error(err)
	}
	s.wantLog(t, "start", "execute 1", "step 1", "pause", "stop")
	if b.Playing() {
		t.Error("still playing")
	}
}

func TestPlayOnAnExpiredStreamWarns156AndDoesNotStart(t *testing.T) {
	s := newStage(SystemOptions{})
	s.active(1)
	s.record(t, 1)
	b := s.sandbox(t, 0)
	s.record(t, 1)
	if err := b.Play(); !errors.Is(err, format.WarnExpired) {
		t.Errorf("Play gives %v", err)
	}
	s.wantWarnings(t, format.WarnExpired)
	s.wantLog(t)
	if b.Playing() || b.Ended() {
		t.Errorf("playing %v, ended %v", b.Playing(), b.Ended())
	}
}

func TestRecordingDuringPlaybackStopsIt(t *testing.T) {
	s := newStage(SystemOptions{})
	s.active(1).during = func(format.Step) { s.Record(1) }
	s.record(t, 1, 1)
	b := s.sandbox(t, 0)
	if err := b.Play(); !errors.Is(err, format.WarnExpired) || b.Playing() {
		t.Errorf("Play gives %v, playing %v", err, b.Playing())
	}
	s.wantLog(t, "start", "execute 1", "step 1", "stop")
}

func TestRecordingFromAnotherGoroutineIsSafe(t *testing.T) {
	s := newStage(SystemOptions{})
	recorded := make(chan struct{})
	s.active(1).during = func(format.Step) { <-recorded }
	for range 100 {
		s.record(t, 1)
	}
	b := s.sandbox(t, 0)
	go func() {
		defer close(recorded)
		for range 100 {
			s.Record(1, format.String("a step of the live game"))
		}
	}()
	if err := b.Play(); !errors.Is(err, format.WarnExpired) {
		t.Errorf("Play gives %v", err)
	}
}

func TestSetSpeedTellsTheSpeed(t *testing.T) {
	s := newStage(SystemOptions{})
	b := s.sandbox(t, 0)
	if b.Speed() != 1 {
		t.Errorf("speed at first is %v", b.Speed())
	}
	for _, speed := range []float64{2, 0.1, Max} {
		if err := b.SetSpeed(speed); err != nil || b.Speed() != speed {
			t.Errorf("SetSpeed(%v) gives %v, speed %v", speed, err, b.Speed())
		}
	}
	s.wantLog(t, "speed 2", "speed 0.1", "speed +Inf")
	for _, speed := range []float64{0, -1, math.NaN(), math.Inf(-1)} {
		if err := b.SetSpeed(speed); !errors.Is(err, ErrSpeed) || b.Speed() != Max {
			t.Errorf("SetSpeed(%v) gives %v, speed %v", speed, err, b.Speed())
		}
	}
	s.wantLog(t)
}

func TestStepsFollowTheInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(SystemOptions{StepInterval: 100 * time.Millisecond})
		start := time.Now()
		var at []time.Duration
		s.active(1).during = func(format.Step) {
			at = append(at, time.Since(start))
			time.Sleep(30 * time.Millisecond) // the step's own time is part of the interval
			switch len(at) {
			case 2:
				s.Sandbox().SetSpeed(2)
			case 4:
				s.Sandbox().SetSpeed(Max)
			}
		}
		s.record(t, 1, 1, 1, 1, 1)
		if err := s.sandbox(t, 0).Play(); err != nil {
			t.Fatal(err)
		}
		// At speed 2 the rest of the interval, 70 ms, takes 35 ms.
		want := []time.Duration{0, 100, 165, 215, 245}
		for i, d := range want {
			if got := at[i]; got != d*time.Millisecond {
				t.Errorf("step %d at %v, want %v ms", i, got, int(d))
			}
		}
	})
}

func TestSetSpeedWhileWaitingForAStepTakesEffectAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(SystemOptions{StepInterval: time.Minute})
		s.active(1)
		s.record(t, 1, 1, 1, 1)
		b := s.sandbox(t, 0)
		go b.Play()
		for i, c := range []struct {
			speed float64
			after time.Duration
			steps int
		}{
			{2, 20 * time.Second, 1},   // 40 s are left, at speed 2
			{Max, 25 * time.Second, 2}, // the second was due after 20
		} {
			time.Sleep(c.after)
			synctest.Wait()
			if got := s.count("execute 1"); got != c.steps {
				t.Errorf("change %d: %d steps", i, got)
			}
			b.SetSpeed(c.speed)
		}
		synctest.Wait()
		if !b.Ended() {
			t.Error("not ended at Max")
		}
	})
}

func TestTheIntervalAfterMaxIsOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(SystemOptions{StepInterval: time.Minute})
		s.active(1)
		n := 0
		s.active(2).during = func(format.Step) { s.Sandbox().SetSpeed(1) }
		s.record(t, 1, 1, 1, 2, 1)
		b := s.sandbox(t, 0)
		b.SetSpeed(Max)
		start := time.Now()
		b.AddHooks(SandboxHooks{OnStep: func(format.Step) {
			n++
			if got := time.Since(start); n == 5 && got != time.Minute {
				t.Errorf("step 5 at %v", got)
			}
		}})
		if err := b.Play(); err != nil || n != 5 {
			t.Errorf("%d steps, %v", n, err)
		}
	})
}

func TestPauseWhileWaitingForAStepTakesEffectAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(SystemOptions{StepInterval: time.Minute})
		s.active(1)
		s.record(t, 1, 1)
		b := s.sandbox(t, 0)
		start := time.Now()
		go b.Play()
		time.Sleep(20 * time.Second)
		<-b.Pause()
		if got := time.Since(start); got != 20*time.Second {
			t.Errorf("paused after %v", got)
		}
		time.Sleep(time.Hour)
		resumed := time.Now()
		go b.Resume()
		synctest.Wait()
		time.Sleep(39 * time.Second)
		if got := s.count("execute 1"); got != 1 {
			t.Errorf("%d steps %v after the pause", got, time.Since(resumed))
		}
		time.Sleep(2 * time.Second)
		if got := s.count("execute 1"); got != 2 {
			t.Errorf("%d steps %v after the pause", got, time.Since(resumed))
		}
		<-b.Stop()
	})
}

func TestControlsAnswerInEveryState(t *testing.T) {
	states := map[string]func(s *stage, b *Sandbox){
		"not started": func(s *stage, b *Sandbox) {},
		"stepped":     func(s *stage, b *Sandbox) { b.Step() },
		"playing":     func(s *stage, b *Sandbox) { go b.Play(); synctest.Wait() },
		"in a step": func(s *stage, b *Sandbox) {
			s.Command(1).(*act).during = func(format.Step) { time.Sleep(time.Second) }
			go b.Play()
			synctest.Wait()
		},
		"paused": func(s *stage, b *Sandbox) { go b.Play(); synctest.Wait(); <-b.Pause() },
		"ended":  func(s *stage, b *Sandbox) { b.SetSpeed(Max); b.Play() },
		"failed": func(s *stage, b *Sandbox) { s.Command(1).(*act).result = Failed; b.Play() },
		"expired": func(s *stage, b *Sandbox) {
			s.Record(1)
		},
		"stopped": func(s *stage, b *Sandbox) { b.Stop() },
	}
	commands := map[string]func(b *Sandbox){
		"play":    func(b *Sandbox) { go b.Play() },
		"pause":   func(b *Sandbox) { <-b.Pause() },
		"resume":  func(b *Sandbox) { go b.Resume() },
		"step":    func(b *Sandbox) { b.Step() },
		"speed 0": func(b *Sandbox) { b.SetSpeed(0) },
		"speed 9": func(b *Sandbox) { b.SetSpeed(9) },
		"max":     func(b *Sandbox) { b.SetSpeed(Max) },
		"stop":    func(b *Sandbox) { <-b.Stop() },
	}
	for state, enter := range states {
		for first, one := range commands {
			for second, two := range commands {
				t.Run(fmt.Sprintf("%s/%s/%s", state, first, second), func(t *testing.T) {
					controlPair(t, enter, one, two)
				})
			}
		}
	}
}

// controlPair applies two commands and wants each to answer within a step's
// time, a consistent state, and no step executed twice or out of order.
func controlPair(t *testing.T, enter func(s *stage, b *Sandbox), one, two func(b *Sandbox)) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(SystemOptions{StepInterval: 10 * time.Second})
		s.active(1)
		s.record(t, 1, 1, 1, 1)
		b := s.sandbox(t, 0)
		last := 0
		b.AddHooks(SandboxHooks{OnStep: func(step format.Step) {
			if step.Index != last+1 {
				t.Errorf("step %d after %d", step.Index, last)
			}
			last = step.Index
		}})
		enter(s, b)
		for _, command := range []func(b *Sandbox){one, two} {
			before := time.Now()
			command(b)
			synctest.Wait()
			if took := time.Since(before); took > time.Second {
				t.Errorf("answered after %v", took)
			}
		}
		if b.Ended() && b.Err() != nil || b.Pausing() && !b.Playing() {
			t.Errorf("ended %v, err %v, pausing %v, playing %v", b.Ended(), b.Err(), b.Pausing(), b.Playing())
		}
		<-b.Stop()
		if b.Playing() && !b.Ended() {
			t.Error("playing after Stop")
		}
		if n := s.count("stop"); n > 1 {
			t.Errorf("%d stop notices", n)
		}
	})
}
