package wasm

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"hash/crc32"
	"testing"

	"github.com/tetratelabs/wazero"
)

// FuzzRewrite: what is read as a module is written as one that reads the same,
// and a module that the engine takes is taken once it is rewritten.
func FuzzRewrite(f *testing.F) {
	f.Add(marblesFile)
	for _, p := range []parts{
		{}, {start: true, more: []string{""}}, {dataCount: true, more: []string{str(prefixBulk, bulkDataDrop, 0)}},
		{globals: []string{str(valueI64, 1, opI64Const, 0x7f, opEnd)}, imports: []string{"random_get"}},
		{tables: []string{"\x70\x00\x04"}, elements: []string{str(0, constant(0), opEnd, 1, 0)}},
		{onTick: []byte(str(opLoop, blockEmpty, opBlock, blockEmpty, constant(0), opBrTable, 2, 0, 1, 0, opEnd, opEnd))},
	} {
		f.Add(assemble(p))
	}
	ctx := context.Background()
	engine := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter().WithMemoryLimitPages(64))
	f.Cleanup(func() { _ = engine.Close(ctx) })
	f.Fuzz(func(t *testing.T, file []byte) {
		w, err := rewrite(file)
		if err != nil {
			if !errors.Is(err, ErrModule) {
				t.Fatal(err)
			}
			return
		}
		// Names, which the engine reads with trust, are left out.
		plain := withoutCustom(w)
		original, engineErr := engine.CompileModule(ctx, plain)
		if engineErr == nil {
			defer func() { _ = original.Close(ctx) }()
		}
		written, err := engine.CompileModule(ctx, w.file)
		if err == nil {
			defer func() { _ = written.Close(ctx) }()
		}
		if engineErr == nil && err != nil {
			t.Fatalf("the engine takes the module, and not what it is rewritten as: %v", err)
		}
		again, err := parseLayout(withoutHost(w))
		if err != nil {
			t.Fatalf("what was written cannot be read: %v", err)
		}
		if len(again.globals) != len(w.globals)+2 || again.functions != w.functions || len(again.exports) <= len(w.exports) {
			t.Errorf("%d globals, %d functions, %d exports are written as %d, %d, %d", len(w.globals), w.functions, len(w.exports),
				len(again.globals), again.functions, len(again.exports))
		}
	})
}

// withoutHost gives a rewritten module in which the host's names are like any
// others.
func withoutHost(w *rewritten) []byte {
	file := append([]byte{}, w.file...)
	for i := 0; i+len(hostPrefix) <= len(file); i++ {
		if string(file[i:i+len(hostPrefix)]) == hostPrefix {
			file[i] = 'R'
		}
	}
	return file
}

// withoutCustom is the module as it was read, without its custom sections.
func withoutCustom(w *rewritten) []byte {
	file := append([]byte{}, magic...)
	for _, s := range w.sections {
		if s.id != sectionCustom {
			file = appendSection(file, s.id, s.body)
		}
	}
	return file
}

// FuzzState: what is read as a saved state is written as the same bytes.
func FuzzState(f *testing.F) {
	file := assemble(parts{memory: "\x00\x00", globals: []string{str(valueI32, 1, constant(5), opEnd)}})
	w, err := rewrite(file)
	if err != nil {
		f.Fatal(err)
	}
	m := &Module{code: w, digest: sha256.Sum256(file)}
	kept := &snapshot{module: m, next: 7, now: 8, buffer: 9, room: 10, globals: []uint64{11}}
	good := kept.appendTail(nil, 0)
	if _, err := m.parseState(good); err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add(good[8:])
	f.Fuzz(func(t *testing.T, state []byte) {
		if len(state) > 4 && isSaved(state) { // else a sum would hardly ever be right
			end := len(state) - len(stateMagic)
			order.PutUint32(state[end-4:], crc32.Checksum(state[:end-4], castagnoli))
		}
		kept, err := m.parseState(state)
		if err != nil {
			return
		}
		var memory []byte
		for _, p := range kept.pages {
			memory = append(memory, p[:]...)
		}
		if again := kept.appendTail(memory, 0); !bytes.Equal(again, state) {
			t.Errorf("%x is read and written as %x", state, again)
		}
	})
}
