package wasm

import (
	"os"
	"strings"
	"testing"
)

// TestDocumentNamesEverything: what a module can use stands in INTERFACE.md.
func TestDocumentNamesEverything(t *testing.T) {
	b, err := os.ReadFile("INTERFACE.md")
	if err != nil {
		t.Fatal(err)
	}
	document := string(b)
	names := []string{memoryExport, bufferExport, messageExport, initializeExport, wasiModule, "proc_exit", BuildPrefix}
	for name := range wasiCalls {
		names = append(names, name)
	}
	for _, p := range []parts{{more: []string{str(prefixBulk, bulkDataDrop, 0)}}, {more: []string{str(prefixBulk, bulkElemDrop, 0)}}} {
		w, err := rewrite(assemble(p))
		if err != nil {
			t.Fatal(err)
		}
		operation := strings.Fields(w.unable)
		names = append(names, operation[len(operation)-4])
	}
	for _, name := range names {
		if !strings.Contains(document, "`"+name+"`") {
			t.Errorf("INTERFACE.md does not name `%s`", name)
		}
	}
}
