package format

import (
	"os"
	"strings"
	"testing"
)

// readSpec gives the text of the specification.
func readSpec(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("SPEC.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestSpecNamesEveryChunk(t *testing.T) {
	spec := readSpec(t)
	for typ, name := range chunkNames {
		if !strings.Contains(spec, name) {
			t.Errorf("SPEC.md does not name the %v chunk", typ)
		}
	}
}
