package format

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
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

// specSection gives the part of the specification under a heading.
func specSection(t *testing.T, heading string) string {
	t.Helper()
	_, text, ok := strings.Cut(readSpec(t), "\n"+heading+"\n")
	if !ok {
		t.Fatalf("SPEC.md has no section %q", heading)
	}
	level, _, _ := strings.Cut(heading, " ")
	if end := regexp.MustCompile(`\n#{1,` + strconv.Itoa(len(level)) + `} `).FindStringIndex(text); end != nil {
		text = text[:end[0]]
	}
	return text
}

func TestSpecNamesEveryChunk(t *testing.T) {
	table := specSection(t, "### Chunk")
	for typ, name := range chunkNames {
		if row := fmt.Sprintf("| `%02x` | %s |", uint8(typ), name); !strings.Contains(table, row) {
			t.Errorf("SPEC.md lacks %q", row)
		}
	}
	if n := strings.Count(table, "\n| `") - 2; n != len(chunkNames) { // two rows are reserved
		t.Errorf("SPEC.md has %d types, there are %d", n, len(chunkNames))
	}
}

// TestSpecHasEveryLimit compares the table of limits with limits.go, in both
// directions.
func TestSpecHasEveryLimit(t *testing.T) {
	limits := map[string]uint64{
		"MaxBody": MaxBody, "MaxRowBytes": MaxRowBytes, "MaxChunkTicks": MaxChunkTicks, "MaxParams": MaxParams, "MaxTick": uint64(MaxTick), "MaxHashBytes": MaxHashBytes,
		"MaxHashLag": MaxHashLag, "MaxText": MaxText, "MaxLabels": MaxLabels, "MaxCodes": MaxCodes, "MaxOrigin": MaxOrigin, "MaxOpening": MaxOpening,
		"MaxKeyframePart": MaxKeyframePart, "MaxKeyframe": MaxKeyframe, "MaxOpenKeyframes": MaxOpenKeyframes, "MaxKeyframes": MaxKeyframes,
		"MaxNoteBytes": MaxNoteBytes, "MaxSignatures": MaxSignatures, "MaxSessionID": MaxSessionID, "MaxUnwrapped": MaxUnwrapped, "MaxJSONLine": MaxJSONLine, "MaxJSONLTicks": MaxJSONLTicks,
	}
	rows := regexp.MustCompile("\n\\| `(Max[A-Za-z]+)` \\| ([0-9,]+) \\|").FindAllStringSubmatch(specSection(t, "## Limits"), -1)
	for _, row := range rows {
		want, ok := limits[row[1]]
		if got := strings.ReplaceAll(row[2], ",", ""); !ok || got != fmt.Sprint(want) {
			t.Errorf("%s is %s in SPEC.md, %d in the code", row[1], row[2], want)
		}
		delete(limits, row[1])
	}
	for name := range limits {
		t.Errorf("SPEC.md lacks %s", name)
	}
	source, err := os.ReadFile("limits.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)^(?:\t|const )(Max\w+)\b.*=`).FindAllStringSubmatch(string(source), -1) {
		if !strings.Contains(specSection(t, "## Limits"), "`"+m[1]+"`") {
			t.Errorf("SPEC.md lacks %s of limits.go", m[1])
		}
	}
}

// TestSpecNumbersInTheText compares numbers that stand in sentences.
func TestSpecNumbersInTheText(t *testing.T) {
	for heading, sentences := range map[string][]string{
		"### Digest, `85`":     {fmt.Sprintf("0 where there are more than %s", thousands(maxSegments))},
		"### Seek table, `87`": {fmt.Sprintf("%s ticks or %s bytes or more after", thousands(seekTicks), thousands(seekBytes))},
		"### Trailer, `88`":    {fmt.Sprintf("the last %d bytes", trailerSize), trailerMagic},
		"### Players, `81`":    {fmt.Sprintf("%d random bytes", SaltBytes)},
		"## Content digest":    {fmt.Sprintf("× %s on", thousands(SegmentTicks)), fmt.Sprintf("for each kind 1 to %d", leafKinds)},
		"## Wrapped files":     {fmt.Sprintf("more than %d MiB", zstdWindow>>20)},
		"### File header":      {strings.TrimSpace(fmt.Sprintf("% x", Magic)), fmt.Sprintf("| major | u8 | %d.", VersionMajor), fmt.Sprintf("| minor | u8 | %d.", VersionMinor)},
	} {
		text := specSection(t, heading)
		for _, s := range sentences {
			if !strings.Contains(text, s) {
				t.Errorf("%s of SPEC.md lacks %q", heading, s)
			}
		}
	}
}

// thousands prints n with commas.
func thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
