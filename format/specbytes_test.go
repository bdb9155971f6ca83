package format

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math/big"
	"regexp"
	"strings"
	"testing"
)

// exampleSession is the session that the specification takes apart.
func exampleSession() *session {
	return &session{
		meta:      Metadata{Game: "g", TickRate: Rate{112, 5}, FirstTick: 7, HashBytes: 2, Width: Width8},
		book:      &CodeBook{Codes: []CodeInfo{{Code: 1, Name: "go", Params: []ParamInfo{{Name: "player", Type: "int"}}}}},
		salt:      []byte("0123456789abcdef"),
		players:   []PlayerEvent{{Tick: 7, ID: 2, Name: "A"}},
		marks:     []Mark{{Tick: 8, Kind: "m", Player: 2, Text: "hi"}},
		reports:   []Report{{At: 9, Of: 7, Peer: 2, Hash: []byte{0xaa, 0xbb}}},
		keyframes: []Keyframe{{NextTick: 7, State: []byte("st")}},
		gaps:      []Gap{{First: 10, Last: 11, Reason: "x"}},
		ticks: []modelTick{
			{tick: 7, steps: []Step{{Code: 1, Params: []Value{Int(2), Int(300)}}}, hash: []byte{0xaa, 0xbb}, time: 0, timed: true},
			{tick: 8},
			{tick: 9, hash: []byte{0xcc, 0xdd}},
		},
		late: map[Tick]bool{9: true},
		end:  End{State: EndSealed},
	}
}

// specBlocks gives the fenced blocks of the specification by the word behind
// the fence.
func specBlocks(t *testing.T, word string) []string {
	t.Helper()
	var blocks []string
	for _, part := range strings.Split(readSpec(t), "\n```"+word+"\n")[1:] {
		block, _, ok := strings.Cut(part, "\n```")
		if !ok {
			t.Fatalf("a block %s has no end", word)
		}
		blocks = append(blocks, block)
	}
	if len(blocks) == 0 {
		t.Fatalf("SPEC.md has no block %s", word)
	}
	return blocks
}

func TestSpecBytesAreThoseOfTheExample(t *testing.T) {
	_, b := exampleSession().file(t, 3)
	at := 0
	for _, line := range strings.Split(specBlocks(t, "bytes")[0], "\n") {
		fields := strings.SplitN(line, "|", 3)
		if len(fields) != 3 {
			t.Fatalf("line %q is not offset | bytes | meaning", line)
		}
		want, err := hex.DecodeString(strings.ReplaceAll(fields[1], " ", ""))
		if err != nil {
			t.Fatalf("line %q: %v", line, err)
		}
		if got := strings.TrimSpace(fields[0]); got != fmt.Sprint(at) {
			t.Fatalf("line %q: offset %d", line, at)
		}
		if at+len(want) > len(b) || string(b[at:at+len(want)]) != string(want) {
			t.Fatalf("line %q: the file has % x", line, b[at:min(len(b), at+len(want))])
		}
		at += len(want)
	}
	if at != len(b) {
		t.Errorf("the specification shows %d of %d bytes, next is % x", at, len(b), b[at:min(len(b), at+24)])
	}
}

func TestSpecJSONLinesAreThoseOfTheExample(t *testing.T) {
	f, _ := exampleSession().file(t, 3)
	if got, want := toJSONL(t, f, JSONLWriteOptions{}), specBlocks(t, "jsonl")[0]+"\n"; got != want {
		t.Errorf("the specification shows\n%s\nthe example gives\n%s", want, got)
	}
}

func TestSpecDigestsAreThoseOfTheExample(t *testing.T) {
	s := exampleSession()
	groups := s.modelGroups()
	block := specBlocks(t, "digests")[0]
	var want strings.Builder
	for kind := 1; kind < len(groups); kind++ {
		fmt.Fprintf(&want, "%2d  %d  %x\n", kind, len(groups[kind]), treeRoot(groups[kind]))
	}
	fmt.Fprintf(&want, "root   %v", s.modelRoot())
	if block != want.String() {
		t.Errorf("the specification shows\n%s\nthe example gives\n%s", block, want.String())
	}
}

func TestSpecGivesTheLimits(t *testing.T) {
	spec := strings.ReplaceAll(readSpec(t), ",", "")
	for name, limit := range map[string]uint64{
		"MaxBody": MaxBody, "MaxRowBytes": MaxRowBytes, "MaxChunkTicks": MaxChunkTicks, "MaxHashBytes": MaxHashBytes, "MaxText": MaxText,
		"MaxLabels": MaxLabels, "MaxCodes": MaxCodes, "MaxOrigin": MaxOrigin, "MaxOpening": MaxOpening, "MaxKeyframePart": MaxKeyframePart, "MaxKeyframe": MaxKeyframe,
		"MaxOpenKeyframes": MaxOpenKeyframes, "MaxKeyframes": MaxKeyframes, "MaxNoteBytes": MaxNoteBytes, "MaxHashLag": MaxHashLag,
		"MaxJSONLine": MaxJSONLine, "MaxJSONLTicks": MaxJSONLTicks,
	} {
		if row := fmt.Sprintf("| `%s` | %d |", name, limit); !strings.Contains(spec, row) {
			t.Errorf("SPEC.md lacks %q", row)
		}
	}
}

// TestSpecArrayBytes encodes the specification's example of a parameter area
// and compares every line of it.
func TestSpecArrayBytes(t *testing.T) {
	a := NewArray(Options{Width: Width8})
	a.Add(42, Int(100))
	a.Add(7, String("hi"), Bool(true), Float(-0.5))
	a.Add(7)
	a.Add(200, Int(-300), Int(1<<31), Int(-(1<<32 + 1)), BigInt(big.NewInt(-256)), Bytes([]byte{0xff}), Ints([]int64{1, -2, 300}))
	_, section, _ := strings.Cut(readSpec(t), "Parameter area, 59 bytes:")
	lines := regexp.MustCompile(`(?m)^ *(\d+)  ((?:[0-9a-f]{2} )+) `).FindAllStringSubmatch(section, -1)
	at := 0
	for _, line := range lines {
		want := unhex(t, line[2])
		if line[1] != fmt.Sprint(at) || !bytes.HasPrefix(a.ParamArea()[at:], want) {
			t.Fatalf("line %q: at %d the area has % x", line[0], at, a.ParamArea()[at:])
		}
		at += len(want)
	}
	if at != len(a.ParamArea()) || at != 59 {
		t.Errorf("the specification shows %d of %d bytes", at, len(a.ParamArea()))
	}
	if !strings.Contains(section, fmt.Sprintf("Index: %s.", strings.Trim(strings.ReplaceAll(fmt.Sprint(a.Index()), " ", ", "), "[]"))) {
		t.Errorf("the specification lacks the index %v", a.Index())
	}
}
