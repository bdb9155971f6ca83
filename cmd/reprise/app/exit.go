package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"reprise/format"
	"reprise/player"
	"reprise/player/process"
)

// Exit codes. Scripts rely on them: they must not change.
const (
	exitOK         = 0
	exitFalse      = 1
	exitUsage      = 2
	exitNotTried   = 3
	exitPartly     = 4
	exitDamaged    = 5
	exitNothing    = 6
	exitGame       = 7
	exitSimulation = 8
)

// exitSentences explains the codes, in order.
var exitSentences = [...]string{
	exitOK:         "the claim holds",
	exitFalse:      "it does not: desync, difference, changed content",
	exitUsage:      "usage or configuration",
	exitNotTried:   "could not be tried: I/O, network, refused, interrupted",
	exitPartly:     "partly: a part was kept (repair), verified around a gap, or a signature that does not prove all that is there",
	exitDamaged:    "damaged, torn, not a replay, or newer than this program (the text says which, and where)",
	exitNothing:    "nothing was compared: no hashes, no ticks",
	exitGame:       "the game is missing, or its build or data differ from the recorded ones",
	exitSimulation: "the simulation crashed, hung or answered badly",
}

// exitError carries the code that the program ends with. A nil err means
// that everything has been said.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return exitSentences[e.code]
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// hintedError says what to do next, where that does not follow from the error.
type hintedError struct {
	error
	hint string
}

func (e *hintedError) Unwrap() error { return e.error }

// usagef is an error of the command line.
func usagef(text string, args ...any) error {
	return &exitError{exitUsage, fmt.Errorf(text, args...)}
}

// exitCode finds the code for an error: one that was set, or the one that
// its kind stands for, the weightiest first.
func exitCode(err error) int {
	var exit *exitError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &exit):
		return exit.code
	case isError[*player.DesyncError](err), isError[*player.StepFailure](err), isError[*player.KeyframeError](err), isError[*repeatError](err):
		return exitFalse
	case errors.Is(err, format.ErrChanged), isError[*trustError](err):
		return exitFalse
	case isError[*player.SimulationError](err):
		return exitSimulation
	case format.IsDamage(err), errors.Is(err, player.ErrOutOfOrder), errors.Is(err, format.ErrTotals), errors.Is(err, format.ErrState):
		return exitDamaged
	case isError[*player.GameMissingError](err), isError[*player.BuildMismatchError](err), isError[*player.DataMismatchError](err), errors.Is(err, player.ErrStart):
		return exitGame
	case errors.Is(err, player.ErrNothingCompared):
		return exitNothing
	case isError[*player.GapError](err), isError[*unprovenError](err):
		return exitPartly
	case errors.Is(err, process.ErrCommand):
		return exitUsage
	}
	return exitNotTried
}

func isError[T error](err error) bool {
	var target T
	return errors.As(err, &target)
}

// hintFor says what a person can do about an error; empty where the error
// says so itself.
func hintFor(err error) string {
	var hinted *hintedError
	switch {
	case errors.As(err, &hinted):
		return hinted.hint
	case errors.Is(err, format.ErrChanged):
		return "its checksums hold, so this was no accident: ask for the original"
	case isError[*trustError](err):
		return `the file of --trust has a line for each trusted key: the .pub file of "reprise keygen"`
	case errors.Is(err, format.ErrTorn), errors.Is(err, format.ErrCorrupt):
		return `"reprise repair FILE -o OUT" keeps what is intact`
	case errors.Is(err, format.ErrNewer):
		return "read it with the version of reprise that wrote it, or a later one"
	case errors.Is(err, format.ErrNotReplay):
		return "a replay is RPLY1, RPLY2 or JSON lines, as it is or in .zst or .gz"
	case errors.Is(err, format.ErrLossy):
		return "RPLY2 and JSON lines hold all of it; --lossy leaves behind what can be left out"
	case isError[*player.DesyncError](err):
		return `"reprise cat --from T --to T FILE" prints what was recorded for tick T`
	case isError[*player.GameMissingError](err):
		return "--sim must name the simulation of the recorded game"
	case isError[*player.BuildMismatchError](err):
		return "--any-build plays it all the same: what the builds do differently shows as desync"
	case isError[*player.DataMismatchError](err):
		return "--any-build plays it all the same: what the data change shows as desync"
	case errors.Is(err, player.ErrNothingCompared):
		return "--allow-unverified accepts replays without hashes"
	}
	return ""
}

// complain prints what went wrong, once, and what can be done about it.
func complain(stderr io.Writer, err error) {
	var exit *exitError
	if err != nil && (!errors.As(err, &exit) || exit.err != nil) {
		say(stderr, "%s", errorText(err))
	}
	if hint := hintFor(err); hint != "" {
		say(stderr, "hint: %s", hint)
	}
}

// say prints a message, never a raw control character.
func say(stderr io.Writer, text string, args ...any) {
	fmt.Fprintf(stderr, "reprise: %s\n", printableLines(fmt.Sprintf(text, args...)))
}

// errorText is an error as it is shown.
func errorText(err error) string {
	if errors.Is(err, context.Canceled) {
		return strings.ReplaceAll(err.Error(), context.Canceled.Error(), "interrupted")
	}
	return err.Error()
}

// outcome gathers what a run over several files comes to.
type outcome struct {
	code int
	hint string
}

// add takes the result of one file.
func (o *outcome) add(err error) {
	code := exitCode(err)
	if worst := worse(o.code, code); worst != o.code {
		o.code, o.hint = worst, hintFor(err)
	}
}

// err is the error that a command returns when all has been said.
func (o *outcome) err() error {
	if o.code == exitOK {
		return nil
	}
	return &hintedError{&exitError{code: o.code}, o.hint}
}

// worse picks the code that a run over several files ends with: the first
// in this order that any file gave.
func worse(a, b int) int {
	for _, code := range [...]int{exitFalse, exitSimulation, exitDamaged, exitGame, exitNotTried, exitUsage, exitNothing, exitPartly} {
		if a == code || b == code {
			return code
		}
	}
	return exitOK
}
