package skirmish

import (
	"fmt"

	"reprise/format"
)

// Operations: the codes of the steps. They are recorded and must not
// change.
const (
	OpMove       uint16 = 1
	OpAttack     uint16 = 2
	OpStop       uint16 = 3
	OpAttackMove uint16 = 4
	OpBuild      uint16 = 5
	OpTrain      uint16 = 6
	OpSurrender  uint16 = 7
)

// paramCount is the number of parameters of every step.
const paramCount = 5

// Command is one order of a player, as a step carries it: the operation is
// the step's code, the other fields are its parameters, in this order.
// What an operation does not use is 0.
type Command struct {
	Op     uint16
	Player int64
	// Unit is the unit or building that is to do it.
	Unit int64
	// TX, TY is the place, in tiles, Q16.16.
	TX, TY int64
	// Target is a foe's id for attack, what to make for build and train.
	Target int64
}

// AppendParams appends the parameters of the command's step to dst.
func (c Command) AppendParams(dst []format.Value) []format.Value {
	return append(dst, format.Int(c.Player), format.Int(c.Unit), format.Int(c.TX), format.Int(c.TY), format.Int(c.Target))
}

// ParseStep reads the command that a step carries.
func ParseStep(step format.Step) (Command, error) {
	if step.Code < OpMove || step.Code > OpSurrender {
		return Command{}, fmt.Errorf("skirmish: no operation has code %d; codes are %d to %d", step.Code, OpMove, OpSurrender)
	}
	if len(step.Params) != paramCount {
		return Command{}, fmt.Errorf("skirmish: %s has %d parameters, a step has %d", opName(step.Code), len(step.Params), paramCount)
	}
	c := Command{Op: step.Code}
	for i, field := range [...]*int64{&c.Player, &c.Unit, &c.TX, &c.TY, &c.Target} {
		v, ok := step.Params[i].Int64()
		if !ok {
			return Command{}, fmt.Errorf("skirmish: parameter %s of %s is %v, not a 64-bit integer", paramNames[i], opName(step.Code), step.Params[i])
		}
		*field = v
	}
	return c, nil
}

var opNames = [...]string{
	OpMove:       "move",
	OpAttack:     "attack",
	OpStop:       "stop",
	OpAttackMove: "attack-move",
	OpBuild:      "build",
	OpTrain:      "train",
	OpSurrender:  "surrender",
}

var paramNames = [paramCount]string{"player", "unit", "tx", "ty", "target"}

func opName(op uint16) string {
	if int(op) < len(opNames) && opNames[op] != "" {
		return opNames[op]
	}
	return fmt.Sprintf("operation %d", op)
}

// CodeBook names the operations and their parameters. Every call makes a
// new one.
func CodeBook() *format.CodeBook {
	book := new(format.CodeBook)
	for op := OpMove; op <= OpSurrender; op++ {
		info := format.CodeInfo{Code: op, Name: opNames[op]}
		for _, name := range paramNames {
			info.Params = append(info.Params, format.ParamInfo{Name: name, Type: "int"})
		}
		book.Codes = append(book.Codes, info)
	}
	return book
}
