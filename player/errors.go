package player

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"reprise/format"
)

var (
	// ErrNothingCompared is returned by a run that reached its end without
	// comparing one hash: it was played, not verified.
	ErrNothingCompared = errors.New("nothing was compared: the replay holds no state hash for the ticks that were run")
	// ErrStopped is returned by what was stopped before its end; what was
	// compared until then matched.
	ErrStopped = errors.New("playback was stopped")
	// ErrBusy is returned where a command or hook, or another goroutine,
	// asks for a step while one is being executed. Pause first and wait.
	ErrBusy = errors.New("a step is being executed")
	// ErrOutOfOrder is returned for a source that gives its ticks out of
	// order: check the replay's file.
	ErrOutOfOrder = errors.New("ticks out of order")
)

// DesyncError is a state hash that differs from the recorded one: from here on
// the simulation is not the recorded match.
type DesyncError struct {
	Tick format.Tick
	// LastGood is the last tick before whose hash was equal; only with
	// HasLastGood.
	LastGood    format.Tick
	HasLastGood bool
	Want, Got   []byte
	// Part names the first part of the hash that differs, of those that
	// Meta.HashParts declares; empty where there are none.
	Part string
}

func (e *DesyncError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "desync at tick %d", e.Tick)
	if e.Part != "" {
		fmt.Fprintf(&b, " in %q", e.Part)
	}
	fmt.Fprintf(&b, ": recorded %s, simulated %s", hex.EncodeToString(e.Want), hex.EncodeToString(e.Got))
	if e.HasLastGood {
		fmt.Fprintf(&b, " (last good hash at tick %d)", e.LastGood)
	} else {
		b.WriteString(" (no good hash before it)")
	}
	return b.String()
}

// Phase is the part of a step's life that failed.
type Phase string

const (
	PhaseExecute  Phase = "execute"
	PhasePassive  Phase = "passive"
	PhaseFinalize Phase = "finalize"
)

// StepFailure is a step that could not be carried out; playback stops at it.
// It matches format.WarnStepFailed.
type StepFailure struct {
	// Tick is the step's tick; only with HasTick (a sandbox knows none).
	Tick    format.Tick
	HasTick bool
	// Step is the zero-based position of the step: within its tick where
	// HasTick is set, else within the recording.
	Step  int
	Code  uint16
	Phase Phase
	// Err says why; nil where the game did not.
	Err error
}

func (e *StepFailure) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "error %d: ", format.WarnStepFailed)
	if e.HasTick {
		fmt.Fprintf(&b, "tick %d, ", e.Tick)
	}
	fmt.Fprintf(&b, "step %d (code %d): %s failed", e.Step, e.Code, e.Phase)
	if e.Err != nil {
		fmt.Fprintf(&b, ": %v", e.Err)
	}
	return b.String()
}

// Is matches the number that every failed step has.
func (e *StepFailure) Is(target error) bool { return target == format.WarnStepFailed }

func (e *StepFailure) Unwrap() error { return e.Err }

// GapError is a range of ticks that the replay does not hold. Nothing is ever
// simulated across one.
type GapError struct {
	Gap format.Gap
	// Declared tells a gap that the recording declares from ticks that are
	// missing without a word.
	Declared bool
	// Restarted is set where a keyframe at the gap's end let the run go on
	// there: every other tick was run.
	Restarted bool
}

func (e *GapError) Error() string {
	kind := "undeclared gap"
	if e.Declared {
		kind = "gap"
	}
	s := fmt.Sprintf("%s: ticks %d to %d are missing", kind, e.Gap.First, e.Gap.Last)
	if e.Gap.Reason != "" {
		s += fmt.Sprintf(" (%s)", e.Gap.Reason)
	}
	if e.Restarted {
		return s + ": run around it, from the keyframe at its end"
	}
	return s + ": stopped there, since no keyframe at its end can be restored"
}

// GameMissingError is a replay of a game that this program does not have.
type GameMissingError struct {
	// Game and Build are the recorded ones.
	Game, Build string
	// Present names the games that there are.
	Present []string
}

func (e *GameMissingError) Error() string {
	present := "no game is linked"
	if len(e.Present) > 0 {
		present = "there is " + strings.Join(e.Present, ", ")
	}
	return fmt.Sprintf("game %q (build %q) is not here: %s", e.Game, e.Build, present)
}

// BuildMismatchError is a replay of another build of a game that is here.
type BuildMismatchError struct {
	Game string
	// Recorded is the replay's build, Present are those that there are.
	Recorded string
	Present  []string
}

func (e *BuildMismatchError) Error() string {
	return fmt.Sprintf("game %q: recorded by build %q, here is %q: play it with the recorded build",
		e.Game, e.Recorded, strings.Join(e.Present, ", "))
}

// DataMismatchError is a replay of a game and build that are here, recorded
// with other data files.
type DataMismatchError struct {
	Game, Build string
	// Recorded is the replay's data, Present are those that there are.
	Recorded string
	Present  []string
}

func (e *DataMismatchError) Error() string {
	return fmt.Sprintf("game %q (build %q): recorded with data %q, here is %q: play it with the recorded data files",
		e.Game, e.Build, e.Recorded, strings.Join(e.Present, ", "))
}

// SimulationError is a simulation that crashed, hung or answered badly. It
// says nothing about the replay.
type SimulationError struct {
	// Tick is the tick that was being simulated; only with HasTick.
	Tick    format.Tick
	HasTick bool
	// What says what the simulation did.
	What string
	// Err is the simulation's own error, if there is one.
	Err error
	// Stack is where a game in this process panicked; empty otherwise.
	Stack []byte
}

func (e *SimulationError) Error() string {
	s := "simulation " + e.What
	if e.HasTick {
		s = fmt.Sprintf("tick %d: %s", e.Tick, s)
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

func (e *SimulationError) Unwrap() error { return e.Err }
