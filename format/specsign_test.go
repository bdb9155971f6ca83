package format

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// hexLines prints bytes as the specification does: 32 a line.
func hexLines(b []byte) string {
	var lines []string
	for len(b) > 0 {
		n := min(len(b), 32)
		lines = append(lines, fmt.Sprintf("%x", b[:n]))
		b = b[n:]
	}
	return strings.Join(lines, "\n")
}

func TestSpecSignatureIsThatOfTheExample(t *testing.T) {
	s := exampleSession()
	_, b := s.file(t, 3)
	b = signedFile(t, b, testKey(1))
	g := openBytes(t, b).Signatures()[0]
	facts := sha([]byte{3}, AppendMeta(nil, &s.meta))
	root := s.modelRoot()
	statement := bytes.Join([][]byte{[]byte("RPLY2 content signature"), {0}, {1}, root[:], facts}, nil)
	if len(statement) != 89 || !strings.Contains(specSection(t, "## What is signed"), "89 bytes") {
		t.Errorf("the statement has %d bytes", len(statement))
	}
	want := fmt.Sprintf("key        %x\nfacts      %x\nstatement  %s\nsignature  %s", g.Key[:], facts,
		strings.ReplaceAll(hexLines(statement), "\n", "\n           "), strings.ReplaceAll(hexLines(g.Value[:]), "\n", "\n           "))
	if block := specBlocks(t, "signature")[0]; block != want {
		t.Errorf("the specification shows\n%s\nthe example gives\n%s", block, want)
	}
	for word, chunk := range map[string][]byte{
		"leaves":         AppendChunk(nil, ChunkLeaves, 0, chunkOf(t, b, ChunkLeaves)),
		"signaturechunk": AppendChunk(nil, ChunkSignature, 0, chunkOf(t, b, ChunkSignature)),
		"redaction":      AppendChunk(nil, ChunkRedaction, 0, exampleRedaction(t, b)),
	} {
		var shown []byte
		for _, line := range strings.Split(specBlocks(t, word)[0], "\n") {
			hex, _, _ := strings.Cut(line, "|")
			shown = append(shown, unhex(t, hex)...)
		}
		if !bytes.Equal(shown, chunk) {
			t.Errorf("the specification shows for %s\n%x\nthe example gives\n%x", word, shown, chunk)
		}
	}
}

// exampleRedaction redacts the example with all that there is to erase.
func exampleRedaction(t *testing.T, b []byte) []byte {
	t.Helper()
	_, red := redact(t, b, RedactOptions{MarkTexts: true})
	return chunkOf(t, red, ChunkRedaction)
}
