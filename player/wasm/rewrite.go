package wasm

import (
	"fmt"
	"strconv"
)

// Names that the host exports things under, and the functions of the module.
const (
	stopExport   = hostPrefix + "stop"
	startExport  = hostPrefix + "start"
	globalExport = hostPrefix + "global "

	bufferExport     = "reprise_buffer"
	messageExport    = "reprise_message"
	initializeExport = "_initialize"
)

// rewritten is a module as the engine gets it. It differs from the original
// so:
//
//   - every mutable global is exported, so that the host can read and set it;
//   - two globals are added, which loops and functions look at: one that the
//     host sets to stop the module, and one that counts the turns until then;
//   - the start function is exported and no longer called by the engine: a
//     restored instance must not run it;
//   - custom sections are left out.
type rewritten struct {
	*layout
	file []byte
	// names are the exports of the mutable globals, in their order.
	names []string
	// unable says why no snapshot can be taken; empty where one can.
	unable string
}

// rewrite reads a module and writes it for the engine.
func rewrite(file []byte) (*rewritten, error) {
	l, err := parseLayout(file)
	if err != nil {
		return nil, err
	}
	w := &rewritten{layout: l}
	stop := uint32(len(l.globals))
	exports := w.hostExports(stop)
	c := newCode(l, stop)
	out := append([]byte{}, magic...)
	globals := false
	for _, s := range l.sections {
		if !globals && sectionOrder[s.id] >= sectionOrder[sectionGlobal] {
			globals = true
			out = appendSection(out, sectionGlobal, hostGlobals(l.section(sectionGlobal)))
		}
		switch s.id {
		case sectionGlobal, sectionStart, sectionCustom:
			continue
		case sectionExport:
			s.body = appendItems(s.body, exports...)
		case sectionCode:
			if s.body, err = c.rewrite(s); err != nil {
				return nil, err
			}
		}
		out = appendSection(out, s.id, s.body)
	}
	w.file = out
	if w.unable == "" && c.hidden != "" {
		w.unable = "the module changes more than memory and globals: " + c.hidden
	}
	return w, nil
}

// section gives the body of a section; nil where there is none.
func (l *layout) section(id byte) []byte {
	for _, s := range l.sections {
		if s.id == id {
			return s.body
		}
	}
	return nil
}

// hostExports makes the entries of the export section that the host needs.
func (w *rewritten) hostExports(stop uint32) [][]byte {
	entry := func(name string, kind byte, index uint32) []byte {
		return appendU32(append(appendName(nil, name), kind), index)
	}
	entries := [][]byte{entry(stopExport, kindGlobal, stop)}
	for i, g := range w.globals {
		if !g.mutable {
			continue
		}
		switch g.kind {
		case valueI32, valueI64, valueF32, valueF64:
		default:
			w.unable = fmt.Sprintf("global %d of the module holds a vector or a reference", i)
			continue
		}
		name := globalExport + strconv.Itoa(i)
		w.names = append(w.names, name)
		entries = append(entries, entry(name, kindGlobal, uint32(i)))
	}
	if w.hasStart {
		entries = append(entries, entry(startExport, kindFunc, w.start))
	}
	return entries
}

// hostGlobals adds the stop and the turns global to the body of a global
// section.
func hostGlobals(body []byte) []byte {
	if body == nil {
		body = []byte{0}
	}
	left := append(append([]byte{valueI32, 1, opI32Const}, signedTurns...), opEnd)
	return appendItems(body, []byte{valueI32, 1, opI32Const, 0, opEnd}, left)
}

// appendItems adds items to the body of a section that is a list, which was
// read before.
func appendItems(body []byte, items ...[]byte) []byte {
	r := input{b: body}
	out := appendU32(nil, r.u32("items")+uint32(len(items)))
	out = append(out, body[r.off:]...)
	for _, item := range items {
		out = append(out, item...)
	}
	return out
}
