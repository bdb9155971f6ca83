package wasm

import (
	"fmt"
	"strings"
)

// functionType begins the type of a function.
const functionType = 0x60

// wasiModule is the only module that may be imported from.
const wasiModule = "wasi_snapshot_preview1"

// memoryExport is the name of the memory.
const memoryExport = "memory"

// hostPrefix begins the names that the host exports things under.
const hostPrefix = "reprise host "

// layout is what a module consists of, as far as the host must know.
type layout struct {
	sections  []section
	functions uint32 // all, the imported ones first
	imported  uint32 // functions
	globals   []globalType
	exports   map[string]export
	// params are the numbers of parameters of the types, and types the types
	// of the functions that are not imported.
	params, types []uint32
	// memories counts the memories; least is the first one's initial size,
	// in pages of 64 KiB.
	memories, least uint32
	start           uint32
	hasStart        bool
}

type globalType struct {
	kind    byte
	mutable bool
}

type export struct {
	kind  byte
	index uint32
}

// parseLayout reads a module. What it does not look at is checked by the
// engine, which however believes every count: so no list may claim to be
// longer than its bytes.
func parseLayout(file []byte) (*layout, error) {
	sections, err := splitSections(file)
	if err != nil {
		return nil, err
	}
	l := &layout{sections: sections, exports: map[string]export{}}
	for _, s := range sections {
		r := &input{b: s.body, base: s.at}
		switch s.id {
		case sectionType:
			err = l.readTypes(r)
		case sectionImport:
			err = l.readImports(r)
		case sectionFunction:
			err = l.readFunctions(r)
		case sectionMemory:
			err = l.readMemories(r)
		case sectionGlobal:
			err = l.readGlobals(r)
		case sectionExport:
			err = l.readExports(r)
		case sectionStart:
			l.start, l.hasStart = r.u32("the start function"), true
			err = r.done("the start function")
		case sectionElement:
			err = readElements(r)
		case sectionTable, sectionData:
			r.count("items")
			err = r.err
		}
		if err != nil {
			return nil, err
		}
	}
	return l, l.check()
}

func (l *layout) readTypes(r *input) error {
	for n := r.count("types"); n > 0 && r.err == nil; n-- {
		if form := r.byte("a type"); form != functionType {
			r.fail("a type of the form %#x", form)
		}
		params := r.u32("parameters")
		r.bytes(params, "parameters")
		l.params = append(l.params, params)
		r.bytes(r.u32("results"), "results")
	}
	return r.done("the types")
}

// The bits of an element segment's flags.
const (
	elementPassive  = 1
	elementExplicit = 2
	elementExprs    = 4
)

func readElements(r *input) error {
	for n := r.count("elements"); n > 0 && r.err == nil; n-- {
		flags := r.u32("an element's flags")
		if flags > 7 {
			r.fail("elements with the flags %#x", flags)
		}
		if flags&elementPassive == 0 {
			if flags&elementExplicit != 0 {
				r.u32("a table")
			}
			r.skipConstant()
		}
		if flags&(elementPassive|elementExplicit) != 0 {
			r.byte("an element's kind")
		}
		for items := r.count("elements"); items > 0 && r.err == nil; items-- {
			if flags&elementExprs != 0 {
				r.skipConstant()
			} else {
				r.u32("a function")
			}
		}
	}
	return r.done("the elements")
}

// readImports takes functions of WASI alone: anything else would bring in
// what is no part of the state.
func (l *layout) readImports(r *input) error {
	for n := r.count("imports"); n > 0 && r.err == nil; n-- {
		module, name := r.name("an import's module"), r.name("an import's name")
		switch kind := r.byte("an import's kind"); {
		case r.err != nil:
		case kind != kindFunc || module != wasiModule:
			r.fail("it imports %q of %q: only functions of %q can be", name, module, wasiModule)
		}
		r.u32("an import's type")
		l.imported++
	}
	l.functions += l.imported
	return r.done("the imports")
}

func (l *layout) readFunctions(r *input) error {
	n := r.count("functions")
	for range n {
		t := r.u32("a function's type")
		if uint64(t) >= uint64(len(l.params)) {
			r.fail("type %d of %d", t, len(l.params))
		}
		l.types = append(l.types, t)
	}
	l.functions += n
	return r.done("the functions")
}

func (l *layout) readMemories(r *input) error {
	l.memories = r.count("memories")
	for range l.memories {
		flags := r.byte("a memory's flags")
		if flags > 1 {
			r.fail("a memory with the flags %#x: shared and 64-bit memory cannot be played", flags)
		}
		l.least = r.u32("a memory's size")
		if flags == 1 {
			r.u32("a memory's limit")
		}
	}
	return r.done("the memories")
}

func (l *layout) readGlobals(r *input) error {
	for n := r.count("globals"); n > 0 && r.err == nil; n-- {
		g := globalType{kind: r.byte("a global's type")}
		mutable := r.byte("a global's mutability")
		if mutable > 1 {
			r.fail("a mutability of %d", mutable)
		}
		g.mutable = mutable == 1
		r.skipConstant()
		l.globals = append(l.globals, g)
	}
	return r.done("the globals")
}

// skipConstant passes a constant expression.
func (r *input) skipConstant() {
	for r.err == nil {
		switch op := r.byte("a constant"); op {
		case opEnd:
			return
		case opI32Const:
			r.skipSigned(32, "a constant")
		case opI64Const:
			r.skipSigned(64, "a constant")
		case opF32Const:
			r.bytes(4, "a constant")
		case opF64Const:
			r.bytes(8, "a constant")
		case opGlobalGet, opRefFunc:
			r.u32("an index")
		case opRefNull:
			r.byte("a type")
		case prefixVector:
			if sub := r.u32("an operation"); sub != vectorConst {
				r.fail("operation %d in a constant", sub)
			}
			r.bytes(16, "a constant")
		default:
			r.fail("operation %#x in a constant", op)
		}
	}
}

func (l *layout) readExports(r *input) error {
	for n := r.count("exports"); n > 0 && r.err == nil; n-- {
		name := r.name("an export's name")
		e := export{kind: r.byte("an export's kind"), index: r.u32("an export's index")}
		_, twice := l.exports[name]
		switch {
		case r.err != nil:
		case twice:
			r.fail("two exports %q", name)
		case strings.HasPrefix(name, hostPrefix):
			r.fail("an export %q: names with %q are the host's", name, hostPrefix)
		}
		l.exports[name] = e
	}
	return r.done("the exports")
}

// check asks for what INTERFACE.md demands of the exports; the types of the
// functions are checked when they are used.
func (l *layout) check() error {
	if e, has := l.exports[memoryExport]; !has || e.kind != kindMemory || l.memories != 1 {
		return fmt.Errorf("%w: it must have one memory, exported as %q", ErrModule, memoryExport)
	}
	for _, name := range [...]string{bufferExport, messageExport} {
		if e, has := l.exports[name]; !has || e.kind != kindFunc {
			return fmt.Errorf("%w: it does not export the function %q (is it built as a library, a reactor?)", ErrModule, name)
		}
	}
	return nil
}
