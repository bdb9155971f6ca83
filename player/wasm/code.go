package wasm

import "fmt"

// Operations that the host must know by name.
const (
	opUnreachable  = 0x00
	opBlock        = 0x02
	opLoop         = 0x03
	opIf           = 0x04
	opElse         = 0x05
	opEnd          = 0x0b
	opBr           = 0x0c
	opBrIf         = 0x0d
	opBrTable      = 0x0e
	opReturn       = 0x0f
	opCall         = 0x10
	opCallIndirect = 0x11
	opDrop         = 0x1a
	opSelect       = 0x1b
	opSelectTyped  = 0x1c
	opLocalGet     = 0x20
	opLocalTee     = 0x22
	opGlobalGet    = 0x23
	opGlobalSet    = 0x24
	opTableGet     = 0x25
	opTableSet     = 0x26
	opFirstAccess  = 0x28
	opLastAccess   = 0x3e
	opMemorySize   = 0x3f
	opMemoryGrow   = 0x40
	opI32Const     = 0x41
	opI64Const     = 0x42
	opF32Const     = 0x43
	opF64Const     = 0x44
	opI32Eqz       = 0x45
	opFirstPlain   = 0x45
	opI32Add       = 0x6a
	opI32Sub       = 0x6b
	opI32And       = 0x71
	opLastPlain    = 0xc4
	opRefNull      = 0xd0
	opRefIsNull    = 0xd1
	opRefFunc      = 0xd2
	prefixBulk     = 0xfc
	prefixVector   = 0xfd

	blockEmpty = 0x40
)

// Operations behind prefixBulk.
const (
	bulkLastTruncate = 7
	bulkMemoryInit   = 8
	bulkDataDrop     = 9
	bulkMemoryCopy   = 10
	bulkMemoryFill   = 11
	bulkTableInit    = 12
	bulkElemDrop     = 13
	bulkTableCopy    = 14
	bulkTableGrow    = 15
	bulkTableSize    = 16
	bulkTableFill    = 17
)

// Operations behind prefixVector.
const (
	vectorLastAccess  = 11
	vectorConst       = 12
	vectorShuffle     = 13
	vectorFirstLane   = 21
	vectorLastLane    = 34
	vectorFirstLoad   = 84
	vectorLastLoad    = 91
	vectorLoadZero32  = 92
	vectorLoadZero64  = 93
	vectorLastDefined = 255
)

// mostLocals is how many locals a function may have, as in browsers.
const mostLocals = 50_000

const (
	// turns is how many calls and batches of loops go by between two looks at
	// the stop global: about a millisecond.
	turns = 4_000
	// batch is how many turns of the loops of one call are a batch.
	batch = 1 << 8
)

// code is the walk through the functions' bodies, which writes them anew with
// checks wherever a function could go on for ever: at each turn of a loop, and
// where a function that calls others begins. A check counts the turns global
// down; in loops only at every batch, which a new local variable counts. At
// zero it leaves compiled code, by asking for no memory, so that Go's scheduler
// and garbage collector are not held up, and looks at the stop global.
type code struct {
	*layout
	// check is the operations of the check.
	check []byte
	// hidden names the first operation that changes what snapshots do not
	// hold; empty where there is none.
	hidden string
	// Of the present function: calls is set where it calls others, inLoop is
	// the check of its loops.
	calls  bool
	inLoop []byte
	out    []byte
}

// newCode makes the walk for a module whose stop global has this index; the
// turns global is the next one.
func newCode(l *layout, stop uint32) *code {
	left := stop + 1
	c := appendU32([]byte{opGlobalGet}, left)
	c = append(c, opI32Const, 1, opI32Sub, opGlobalSet)
	c = append(appendU32(c, left), opGlobalGet)
	c = append(appendU32(c, left), opI32Eqz, opIf, blockEmpty)
	c = append(c, opI32Const, 0, opMemoryGrow, 0, opDrop)
	c = append(append(c, opI32Const), signedTurns...)
	c = append(appendU32(append(c, opGlobalSet), left), opGlobalGet)
	c = append(appendU32(c, stop), opIf, blockEmpty, opUnreachable, opEnd, opEnd)
	return &code{layout: l, check: c}
}

// signedTurns is turns as a constant is written, and signedMask is batch − 1.
var (
	signedTurns = []byte{turns&0x7f | 0x80, turns >> 7 & 0x7f}
	signedMask  = []byte{(batch-1)&0x7f | 0x80, (batch - 1) >> 7}
)

// loopCheck makes the check of loops with a local variable to count in.
func (c *code) loopCheck(dst []byte, local uint32) []byte {
	dst = appendU32(append(dst, opLocalGet), local)
	dst = append(dst, opI32Const, 1, opI32Add, opLocalTee)
	dst = append(appendU32(dst, local), opI32Const)
	dst = append(append(dst, signedMask...), opI32And, opI32Eqz, opIf, blockEmpty)
	return append(append(dst, c.check...), opEnd)
}

// rewrite writes the code section anew.
func (c *code) rewrite(s section) ([]byte, error) {
	r := &input{b: s.body, base: s.at}
	n := r.count("functions' bodies")
	if int(n) != len(c.types) {
		r.fail("%d bodies of %d functions", n, len(c.types))
	}
	body := appendU32(make([]byte, 0, len(s.body)+len(s.body)/8), n)
	for i := range n {
		size := r.u32("a body's length")
		at := r.base + r.off
		f := &input{b: r.bytes(size, "a body"), base: at}
		if r.err != nil {
			return nil, r.err
		}
		written, err := c.function(f, i)
		if err != nil {
			return nil, err
		}
		body = append(appendU32(body, uint32(len(written))), written...)
	}
	return body, r.done("the functions' bodies")
}

// function writes the body of a function that is not imported.
func (c *code) function(r *input, number uint32) ([]byte, error) {
	written, local := c.locals(r, c.params[c.types[number]])
	c.inLoop = c.loopCheck(c.inLoop[:0], local)
	c.out, c.calls = c.out[:0], false
	for depth := 1; depth > 0 && r.err == nil; {
		from := r.off
		op := r.byte("an operation")
		switch op {
		case opBlock, opLoop, opIf:
			depth++
		case opEnd:
			depth--
		}
		c.operation(r, op, c.imported+number)
		c.out = append(c.out, r.b[from:r.off]...)
		if op == opLoop {
			c.out = append(c.out, c.inLoop...)
		}
	}
	if c.calls {
		written = append(written, c.check...)
	}
	return append(written, c.out...), r.done("a function's end")
}

// locals writes the declarations of a function's local variables with one
// more, and gives its number.
func (c *code) locals(r *input, params uint32) (written []byte, local uint32) {
	n := r.count("locals")
	from, all := r.off, uint64(params)
	for i := uint32(0); i < n && r.err == nil; i++ {
		all += uint64(r.u32("a number of locals"))
		r.byte("a local's type")
	}
	if all > mostLocals {
		r.fail("%d parameters and locals, the most is %d", all, mostLocals)
	}
	written = append(appendU32(nil, n+1), r.b[from:r.off]...)
	return append(written, 1, valueI32), uint32(all)
}

// operation passes what stands behind an operation's byte.
func (c *code) operation(r *input, op byte, function uint32) {
	switch {
	case op == opBlock || op == opLoop || op == opIf:
		r.skipSigned(33, "a block's type")
	case op == opBr || op == opBrIf || op >= opLocalGet && op <= opGlobalSet || op == opTableGet || op == opRefFunc:
		r.u32("an index")
	case op == opBrTable:
		for n := r.count("targets"); n > 0 && r.err == nil; n-- {
			r.u32("a target")
		}
		r.u32("a target")
	case op == opCall:
		c.calls = true
		r.u32("a function")
	case op == opCallIndirect:
		c.calls = true
		r.u32("a type")
		r.u32("a table")
	case op == opSelectTyped:
		for n := r.count("types"); n > 0 && r.err == nil; n-- {
			r.byte("a type")
		}
	case op == opTableSet:
		c.hide("table.set", function)
		r.u32("a table")
	case op >= opFirstAccess && op <= opLastAccess:
		r.skipAccess()
	case op == opMemorySize || op == opMemoryGrow || op == opRefNull:
		r.byte("an index")
	case op == opI32Const:
		r.skipSigned(32, "a constant")
	case op == opI64Const:
		r.skipSigned(64, "a constant")
	case op == opF32Const:
		r.bytes(4, "a constant")
	case op == opF64Const:
		r.bytes(8, "a constant")
	case op == prefixBulk:
		c.bulk(r, function)
	case op == prefixVector:
		skipVector(r)
	case op <= 1 || op == opElse || op == opEnd || op == opReturn || op == opDrop || op == opSelect || op == opRefIsNull:
	case op >= opFirstPlain && op <= opLastPlain:
	default:
		r.fail("operation %#x is unknown", op)
	}
}

// skipAccess passes the alignment and offset of a memory access.
func (r *input) skipAccess() {
	if align := r.u32("an alignment"); align > 4 {
		r.fail("an alignment of %d", align)
	}
	r.u32("an offset")
}

func (c *code) hide(operation string, function uint32) {
	if c.hidden == "" {
		c.hidden = fmt.Sprintf("%s in function %d", operation, function)
	}
}

func (c *code) bulk(r *input, function uint32) {
	switch op := r.u32("an operation"); {
	case op <= bulkLastTruncate:
	case op == bulkMemoryInit:
		r.u32("a segment")
		r.byte("a memory")
	case op == bulkMemoryCopy:
		r.byte("a memory")
		r.byte("a memory")
	case op == bulkMemoryFill:
		r.byte("a memory")
	case op == bulkDataDrop:
		c.hide("data.drop", function)
		r.u32("a segment")
	case op == bulkElemDrop:
		c.hide("elem.drop", function)
		r.u32("a segment")
	case op == bulkTableInit || op == bulkTableCopy:
		c.hide(map[uint32]string{bulkTableInit: "table.init", bulkTableCopy: "table.copy"}[op], function)
		r.u32("an index")
		r.u32("a table")
	case op == bulkTableGrow || op == bulkTableFill:
		c.hide(map[uint32]string{bulkTableGrow: "table.grow", bulkTableFill: "table.fill"}[op], function)
		r.u32("a table")
	case op == bulkTableSize:
		r.u32("a table")
	default:
		r.fail("operation %#x %d is unknown", prefixBulk, op)
	}
}

func skipVector(r *input) {
	switch op := r.u32("an operation"); {
	case op <= vectorLastAccess || op == vectorLoadZero32 || op == vectorLoadZero64:
		r.skipAccess()
	case op == vectorConst || op == vectorShuffle:
		r.bytes(16, "a constant")
	case op >= vectorFirstLane && op <= vectorLastLane:
		r.byte("a lane")
	case op >= vectorFirstLoad && op <= vectorLastLoad:
		r.skipAccess()
		r.byte("a lane")
	case op > vectorLastDefined:
		r.fail("operation %#x %d is unknown", prefixVector, op)
	}
}
