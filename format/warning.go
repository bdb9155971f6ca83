package format

import "fmt"

// WarningCode is the number of a warning. It is an error too, so that
// errors.Is(err, WarnFull) finds a Warning of that code.
type WarningCode int

// The numbers of warnings. People know them: they must not change.
const (
	// WarnStepFailed (an error): an executed step, a passive answer or a
	// finalize returned Failed.
	WarnStepFailed WarningCode = 72
	// WarnNoPassive (an error): the pending step was asked for as passive,
	// but there is none or it is active.
	WarnNoPassive WarningCode = 73
	// WarnUnsupported: a value that no parameter type holds was dropped.
	WarnUnsupported WarningCode = 148
	// WarnGrowth: a growth multiplier is not above 1; 2 is used.
	WarnGrowth WarningCode = 149
	// WarnFull: the command or parameter area is at its maximum; the write
	// was refused and nothing changed.
	WarnFull WarningCode = 150
	// WarnBoolean: a boolean's payload is neither 0 nor 1; read as false.
	WarnBoolean WarningCode = 151
	// WarnBigInt: a big integer's magnitude is 2^2040 or more; dropped.
	WarnBigInt WarningCode = 152
	// WarnTooManyParams: more than MaxParams parameters; cut to that many.
	WarnTooManyParams WarningCode = 153
	// WarnCodeCut: narrowing the command width cut a code above 255.
	WarnCodeCut WarningCode = 154
	// WarnExpiredRead: an expired stream was read; the read happened.
	WarnExpiredRead WarningCode = 155
	// WarnExpired: the sandbox found its stream expired.
	WarnExpired WarningCode = 156
	// WarnUnknownCode: a step's command code is not registered.
	WarnUnknownCode WarningCode = 157
	// WarnCollectionOpen: a recording-safety collection was begun twice.
	WarnCollectionOpen WarningCode = 159
	// WarnCollectionClosed: a collection was ended without a begin.
	WarnCollectionClosed WarningCode = 160
	// WarnUnrecorded: a marked change happened without a recorded step.
	WarnUnrecorded WarningCode = 161
	// WarnUnknownDetail: no detail has the number that was asked for.
	WarnUnknownDetail WarningCode = 162
	// WarnCodeTaken: a command code was registered twice; the first is kept.
	WarnCodeTaken WarningCode = 163
	// WarnOutOfRange: an insert, delete or set was out of range; nothing
	// changed.
	WarnOutOfRange WarningCode = 179
	// WarnPassiveSkipped: the pending passive step was not taken during the
	// active step; it was skipped.
	WarnPassiveSkipped WarningCode = 194
)

var warningTexts = map[WarningCode]string{
	WarnStepFailed:       "the step failed",
	WarnNoPassive:        "no passive step is pending",
	WarnUnsupported:      "the value is of no parameter type and was dropped",
	WarnGrowth:           "a growth multiplier must be above 1; 2 is used",
	WarnFull:             "the area is at its maximum; nothing was written",
	WarnBoolean:          "a boolean is stored as neither 0 nor 1; it was read as false",
	WarnBigInt:           "the big integer's magnitude is 2^2040 or more; it was dropped",
	WarnTooManyParams:    "a step holds at most 255 parameters; the rest was cut",
	WarnCodeCut:          "the command code does not fit 8 bits and was cut",
	WarnExpiredRead:      "the stream has expired; create a new one",
	WarnExpired:          "the sandbox's stream has expired; create a new sandbox",
	WarnUnknownCode:      "the command code is not registered",
	WarnCollectionOpen:   "a collection is open already; end it before the next begin",
	WarnCollectionClosed: "no collection is open; begin one before the end",
	WarnUnrecorded:       "a marked change happened without a recorded step",
	WarnUnknownDetail:    "no detail has this number",
	WarnCodeTaken:        "the command code is registered already; the first is kept",
	WarnOutOfRange:       "the index is out of range; nothing changed",
	WarnPassiveSkipped:   "the passive step was not taken during the active step and was skipped",
}

// Severe reports whether the number means an error, not a warning.
func (c WarningCode) Severe() bool { return c == WarnStepFailed || c == WarnNoPassive }

// Error gives the number and its sentence.
func (c WarningCode) Error() string {
	text, known := warningTexts[c]
	if !known {
		text = "unknown warning"
	}
	if c.Severe() {
		return fmt.Sprintf("error %d: %s", int(c), text)
	}
	return fmt.Sprintf("warning %d: %s", int(c), text)
}

// NoStep is the Step of a Warning that concerns no step.
const NoStep = -1

// Warning is one warning, as a value that a caller can match by its Code.
type Warning struct {
	Code WarningCode
	// Step is the zero-based index of the step, or the index that was asked
	// for where that is out of range; NoStep where there is none.
	Step int
	// Param is the zero-based position of the parameter as it was given or
	// stored; only with WarnUnsupported, WarnBoolean and WarnBigInt.
	Param int
	// Command is the command code that the warning is about, and After the
	// code of the last active command; zero where a number needs none.
	Command, After uint16
	// Detail is what the fields above cannot say: "execute" or "finalize",
	// the names of marked calls.
	Detail string
}

// Error is String: a Warning can be returned as an error.
func (w Warning) Error() string { return w.String() }

// Unwrap gives the code, for errors.Is.
func (w Warning) Unwrap() error { return w.Code }

// String prints the number, the sentence and the place.
func (w Warning) String() string {
	s := w.Code.Error()
	if w.Step != NoStep || w.Code == WarnOutOfRange {
		s += fmt.Sprintf(" (step %d%s)", w.Step, w.paramText())
	}
	s += w.commandText()
	if w.Detail != "" {
		s += ": " + w.Detail
	}
	return s
}

func (w Warning) paramText() string {
	switch w.Code {
	case WarnUnsupported, WarnBoolean, WarnBigInt:
		return fmt.Sprintf(", parameter %d", w.Param)
	}
	return ""
}

func (w Warning) commandText() string {
	switch w.Code {
	case WarnPassiveSkipped:
		return fmt.Sprintf(" (passive code %d after active code %d)", w.Command, w.After)
	case WarnStepFailed, WarnCodeCut, WarnUnknownCode, WarnCodeTaken:
		return fmt.Sprintf(" (code %d)", w.Command)
	}
	return ""
}
