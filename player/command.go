package player

import (
	"errors"
	"fmt"

	"reprise/format"
)

// CommandType tells commands that act from commands that answer.
type CommandType uint8

const (
	// Active: the sandbox executes the step.
	Active CommandType = 0
	// Passive: the step follows an active one and answers what that one
	// asks, such as a choice in a dialogue. The sandbox hands it over; see
	// Sandbox.GetPassive.
	Passive CommandType = 1
)

// Command is what the steps of one code mean. A command is registered once
// and used for every playback, so it keeps no state from one playback to the
// next. A command that also is a Finalizer is told when a run of its steps is
// over.
type Command interface {
	// Type is constant.
	Type() CommandType
	// ParamTypes declares the parameters, in order. A step whose count or
	// types differ fails and is not executed. Nil declares nothing: any
	// parameters are taken.
	ParamTypes() []ParamType
	// Execute carries out an active step; it may block as long as the step
	// takes. The parameters are valid only during the call. The error says
	// why for Failed and Ignored, and may be nil. It is never called for a
	// passive command.
	Execute(step format.Step) (Result, error)
}

// Finalizer is a command whose consecutive steps are one movement. Finalize
// is called after a step of the command when the next active step has another
// code, or when the steps are over.
type Finalizer interface {
	Finalize() (Result, error)
}

// ParamType is the declared type of a parameter, by the names that a code
// book uses.
type ParamType string

const (
	// TypeAny takes every value.
	TypeAny  ParamType = ""
	TypeBool ParamType = "bool"
	TypeInt  ParamType = "int"
	// TypeFloat takes integers too: format.Number stores an integral number
	// as one.
	TypeFloat  ParamType = "float"
	TypeBigInt ParamType = "bigint"
	TypeString ParamType = "string"
	TypeBytes  ParamType = "bytes"
	TypeInts   ParamType = "ints"
)

// takes reports whether a value of kind k has the type.
func (t ParamType) takes(k format.Kind) bool {
	switch t {
	case TypeAny:
		return true
	case TypeBool:
		return k == format.KindBool
	case TypeInt:
		return k == format.KindInt
	case TypeFloat:
		return k == format.KindFloat || k == format.KindInt
	case TypeBigInt:
		return k == format.KindBig
	case TypeString:
		return k == format.KindString
	case TypeBytes:
		return k == format.KindBytes
	case TypeInts:
		return k == format.KindInts
	}
	return false
}

// ErrParams is wrapped by the failure of a step whose parameters are not those
// that its command declares: the step was recorded by another version of the
// game, or the wrong command is registered for its code.
var ErrParams = errors.New("parameters are not those that the command declares")

// checkParams compares a step's parameters with a declaration.
func checkParams(types []ParamType, step format.Step) error {
	if types == nil {
		return nil
	}
	if len(types) != len(step.Params) {
		return fmt.Errorf("%w: %d declared, %d recorded", ErrParams, len(types), len(step.Params))
	}
	for i, t := range types {
		if kind := step.Params[i].Kind(); !t.takes(kind) {
			return fmt.Errorf("%w: parameter %d is declared %s and recorded as %s", ErrParams, i, t, kind)
		}
	}
	return nil
}

// Base is what commands have in common: a type and declared parameters.
// Embed it in a command and add Execute; a passive command is complete
// without.
type Base struct {
	kind  CommandType
	types []ParamType
}

// NewActive makes the Base of an active command that takes exactly types.
func NewActive(types ...ParamType) Base {
	return Base{Active, append([]ParamType{}, types...)}
}

// NewPassive makes the Base of a passive command that takes exactly types. It
// can be registered as it is.
func NewPassive(types ...ParamType) Base {
	return Base{Passive, append([]ParamType{}, types...)}
}

// Type gives the command's type.
func (b Base) Type() CommandType { return b.kind }

// ParamTypes gives the declared parameters; never nil.
func (b Base) ParamTypes() []ParamType { return b.types }

// Execute fails: a passive command is not executed, and an active one
// replaces this method.
func (b Base) Execute(step format.Step) (Result, error) {
	return Failed, fmt.Errorf("the command of code %d has no Execute", step.Code)
}

// Func makes an active command of a function.
func Func(execute func(step format.Step) (Result, error), types ...ParamType) Command {
	return funcCommand{NewActive(types...), execute}
}

type funcCommand struct {
	Base
	execute func(step format.Step) (Result, error)
}

func (c funcCommand) Execute(step format.Step) (Result, error) { return c.execute(step) }
