package player

import "reprise/format"

// SandboxHooks are told what a sandbox does; each may be nil. They run in the
// goroutine that plays or, where none does, in the one that controls.
type SandboxHooks struct {
	// OnStep: an active step was executed. Its parameters are valid only
	// during the call.
	OnStep func(step format.Step)
	// OnIgnored: an active step, a passive answer or a finalize had no
	// effect; err may be nil.
	OnIgnored func(step format.Step, err error)
	// OnStartReplay: Play begins.
	OnStartReplay func()
	// OnPauseReplay: playback has come to rest after a step.
	OnPauseReplay func()
	// OnResumeReplay: playback goes on.
	OnResumeReplay func()
	// OnStopReplay: playback is over: ended, stopped or failed. It is
	// called once, and behind OnPauseReplay where a stop interrupts.
	OnStopReplay func()
	// OnSpeedSet: the speed is now speed.
	OnSpeedSet func(speed float64)
}

// AddHooks adds hooks to those that are there.
func (b *Sandbox) AddHooks(h SandboxHooks) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.hooks = append(b.hooks, h)
}

// notify calls one hook of each set, without the lock.
func (b *Sandbox) notify(call func(h *SandboxHooks)) {
	b.mu.Lock()
	hooks := b.hooks
	b.mu.Unlock()
	for i := range hooks {
		call(&hooks[i])
	}
}

// notifyPlain calls the hook that pick gives, where it is set.
func (b *Sandbox) notifyPlain(pick func(h *SandboxHooks) func()) {
	b.notify(func(h *SandboxHooks) {
		if f := pick(h); f != nil {
			f()
		}
	})
}

func onStart(h *SandboxHooks) func()  { return h.OnStartReplay }
func onPause(h *SandboxHooks) func()  { return h.OnPauseReplay }
func onResume(h *SandboxHooks) func() { return h.OnResumeReplay }
func onStop(h *SandboxHooks) func()   { return h.OnStopReplay }

func (b *Sandbox) notifyStep(step format.Step) {
	b.notify(func(h *SandboxHooks) {
		if h.OnStep != nil {
			h.OnStep(step)
		}
	})
}

func (b *Sandbox) notifyIgnored(step format.Step, err error) {
	b.mu.Lock()
	b.ignored++
	b.mu.Unlock()
	b.notify(func(h *SandboxHooks) {
		if h.OnIgnored != nil {
			h.OnIgnored(step, err)
		}
	})
}
