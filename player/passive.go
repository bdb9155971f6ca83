package player

import "reprise/format"

// PassiveStep is the pending passive step, handed over to whoever asks for it.
type PassiveStep struct {
	// Step holds the recorded answer; it may be kept.
	Step    format.Step
	sandbox *Sandbox
	serial  uint64
}

// GetPassive gives the pending step where it is passive, and the same one
// again until its Next is called. Otherwise it gives nil and error 73: carry
// on as if no replay were played. It is meant for the active step that is
// being executed, in any goroutine.
func (b *Sandbox) GetPassive() (*PassiveStep, error) {
	step, serial, pending := b.steps.passive()
	var command Command
	if pending {
		command = b.lookup(step.Code)
	}
	if command == nil || command.Type() != Passive {
		w := format.Warning{Code: format.WarnNoPassive, Step: format.NoStep}
		b.warn(w)
		return nil, w
	}
	if err := checkParams(command.ParamTypes(), step); err != nil {
		return nil, b.refuse(step, err)
	}
	return &PassiveStep{Step: step, sandbox: b, serial: serial}, nil
}

// Next says how the step went; the sandbox then reads on. After Failed
// playback stops behind the active step. Only the first answer counts, and
// none does once the step was skipped.
func (p *PassiveStep) Next(result Result) {
	b := p.sandbox
	if !b.steps.answer(p.serial) {
		return
	}
	switch result {
	case Success:
	case Ignored:
		b.notifyIgnored(p.Step, nil)
	default:
		b.refuse(p.Step, nil)
	}
}

// refuse notes that a passive step failed; the active step that asked for it
// ends first.
func (b *Sandbox) refuse(step format.Step, err error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	failure := &StepFailure{Step: step.Index - 1, Code: step.Code, Phase: PhasePassive, Err: err}
	if b.refused == nil {
		b.refused = failure
	}
	return failure
}
