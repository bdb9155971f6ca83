package player

// Play starts playback and executes steps until playback is over, paused or
// stopped; the states tell which, and an error says why it failed. It does
// nothing while playing or paused and after the end, gives ErrStopped after a
// stop, and does not start on an expired stream (warning 156).
func (b *Sandbox) Play() error {
	b.mu.Lock()
	switch {
	case b.playing || b.state == sandboxEnded:
		b.mu.Unlock()
		return nil
	case b.state == sandboxStopped:
		b.mu.Unlock()
		return ErrStopped
	case b.driving:
		b.mu.Unlock()
		return ErrBusy
	}
	b.driving = true
	b.mu.Unlock()
	defer b.leave()
	if err := b.usable(); err != nil {
		return err
	}
	b.run()
	b.notifyPlain(onStart)
	return b.drive()
}

// Resume goes on after a pause, as Play does. A pause that has not taken
// effect yet is withdrawn, and the goroutine that plays goes on instead.
// Without a pause it does nothing, and after a stop it gives ErrStopped.
func (b *Sandbox) Resume() error {
	b.mu.Lock()
	switch {
	case b.state == sandboxStopped:
		b.mu.Unlock()
		return ErrStopped
	case b.state != sandboxPaused:
		b.pauseAsked = false
		b.mu.Unlock()
		return nil
	case b.driving:
		b.mu.Unlock()
		return ErrBusy
	}
	b.driving = true
	b.mu.Unlock()
	defer b.leave()
	b.run()
	b.notifyPlain(onResume)
	return b.drive()
}

// Step plays one step, also while paused or before Play: true where a step
// was executed or skipped. Behind the last step it finalizes, ends playback
// and gives false, as it does ever after.
func (b *Sandbox) Step() (bool, error) {
	b.mu.Lock()
	switch {
	case b.state == sandboxEnded:
		b.mu.Unlock()
		return false, nil
	case b.state == sandboxStopped:
		b.mu.Unlock()
		return false, ErrStopped
	case b.driving:
		b.mu.Unlock()
		return false, ErrBusy
	}
	b.driving = true
	b.mu.Unlock()
	defer b.leave()
	return b.guard()
}

// Pause asks playback to rest after the current step. The channel is closed
// when no step is being executed any more, also when the step fails. A command
// or hook must not wait for it: it is part of the step.
func (b *Sandbox) Pause() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.state == sandboxPlaying {
		b.pauseAsked = true
		b.signal()
	}
	return b.rest()
}

// Stop ends playback for good after the current step: it cannot be resumed.
// The channel is as with Pause.
func (b *Sandbox) Stop() <-chan struct{} {
	b.mu.Lock()
	b.stopAsked = true
	if b.driving {
		defer b.mu.Unlock()
		b.signal()
		return b.rest()
	}
	b.driving = true
	b.mu.Unlock()
	b.leave()
	done := make(chan struct{})
	close(done)
	return done
}

// SetSpeed changes how fast the steps of a system with a StepInterval follow
// each other, from now on: 1 is normal, Max waits for nothing. What is not
// above 0 is ErrSpeed; to halt, pause.
func (b *Sandbox) SetSpeed(speed float64) error {
	if err := checkSpeed(speed); err != nil {
		return err
	}
	b.mu.Lock()
	b.pace.setSpeed(b.clock.Now(), speed)
	b.signal()
	b.mu.Unlock()
	b.notify(func(h *SandboxHooks) {
		if h.OnSpeedSet != nil {
			h.OnSpeedSet(speed)
		}
	})
	return nil
}

// run enters the playing state.
func (b *Sandbox) run() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.state, b.playing = sandboxPlaying, true
	b.pace.run(b.clock.Now())
}

// drive plays steps, each when it is due, until something else is asked.
func (b *Sandbox) drive() error {
	for b.awaitDue() {
		if more, err := b.guard(); err != nil || !more {
			return err
		}
	}
	return nil
}

// guard is advance, which leaves a failed sandbox where a command panics.
func (b *Sandbox) guard() (more bool, err error) {
	panicking := true
	defer func() {
		if panicking {
			b.close(sandboxFailed, &SimulationError{What: "panicked in a command"})
		}
	}()
	more, err = b.advance()
	panicking = false
	return more, err
}

// awaitDue waits until the next step is due; false where a pause or stop is
// asked for.
func (b *Sandbox) awaitDue() bool {
	for {
		b.mu.Lock()
		if b.pauseAsked || b.stopAsked {
			b.mu.Unlock()
			return false
		}
		b.release()
		now := b.clock.Now()
		wait := b.pace.wait(now, b.due)
		if wait <= 0 {
			b.pace.rebase(now, b.due)
			b.mu.Unlock()
			return true
		}
		b.mu.Unlock()
		select {
		case <-b.wake:
		case <-b.clock.After(wait):
		}
	}
}

// moveDue makes the step after this one due an interval later.
func (b *Sandbox) moveDue() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.pace.running {
		b.pace.pos = b.due
	}
	b.due += float64(b.interval)
}

// leave takes up what was asked for during the last step, and lets go.
func (b *Sandbox) leave() {
	for {
		b.mu.Lock()
		notices := b.takeRequests()
		if len(notices) == 0 {
			b.driving = false
			b.release()
			b.mu.Unlock()
			return
		}
		b.mu.Unlock()
		for _, pick := range notices {
			b.notifyPlain(pick)
		}
	}
}

// takeRequests changes the state as it was asked for, and gives the notices of
// that in order.
func (b *Sandbox) takeRequests() (notices []func(h *SandboxHooks) func()) {
	pause, stop := b.pauseAsked || b.stopAsked, b.stopAsked
	b.pauseAsked, b.stopAsked = false, false
	if b.state == sandboxPlaying && pause {
		b.state = sandboxPaused
		b.pace.freeze(b.clock.Now())
		notices = append(notices, onPause)
	}
	if !b.state.over() && stop {
		b.state, b.playing = sandboxStopped, false
		b.steps.destroy()
		notices = append(notices, onStop)
	}
	return notices
}

// rest gives a channel that is closed when no step is being executed.
func (b *Sandbox) rest() <-chan struct{} {
	done := make(chan struct{})
	if b.driving {
		b.waiters = append(b.waiters, done)
	} else {
		close(done)
	}
	return done
}

// release closes what rest gave.
func (b *Sandbox) release() { closeAll(&b.waiters) }

// signal wakes a goroutine that waits for the next step to be due.
func (b *Sandbox) signal() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}
