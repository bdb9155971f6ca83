package process

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"reprise/format"
	"reprise/player"
	"reprise/player/internal/playtest"
)

// examples are the messages that PROTOCOL.md shows.
func examples(t *testing.T) map[string][]byte {
	script := playtest.NewScript(t).One(3, format.Int(1), format.Ints([]int64{-1, 2}))
	var w tickWriter
	tick, err := w.append(nil, &script.Ticks[0], true)
	if err != nil {
		t.Fatal(err)
	}
	h := hello{lowest: 1, highest: 1, token: "sesame", program: "demo",
		games: []gameInfo{{name: "mygame", build: "7", abilities: canSave | canLoad, hashBytes: 8}}}
	r := reset{start: player.Start{
		Meta: &format.Metadata{Seed: 42, Map: "m1", Game: "mygame", Build: "7", Session: "s",
			TickRate: format.Rate{Num: 20, Den: 1}, HashBytes: 8, Width: format.Width16},
		Players: []format.Player{{ID: 1, Name: "ann"}},
	}}
	hash, _ := hex.DecodeString("0123456789abcdef")
	return map[string][]byte{
		"hello":    h.append(nil),
		"welcome":  (&welcome{version: 1}).append(nil),
		"reset":    r.append(nil),
		"ready":    appendEmpty(nil, typeReady),
		"tick":     tick,
		"done":     (&done{hash: hash}).append(nil),
		"failed":   (&failed{tick: 5, at: 5, step: 1, code: 3, text: "no unit 9"}).append(nil),
		"flush":    (&flush{}).append(nil),
		"flushed":  appendEmpty(nil, typeFlushed),
		"identity": (&identity{data: []string{"5f1c"}}).append(nil),
	}
}

// blocks gives the fenced blocks of PROTOCOL.md whose fence begins with kind,
// by what stands behind it.
func blocks(t *testing.T, kind string) map[string]string {
	t.Helper()
	document, err := os.ReadFile("PROTOCOL.md")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	parts := strings.Split(string(document), "\n```")
	for i := 1; i+1 < len(parts); i += 2 {
		fence, text, _ := strings.Cut(parts[i], "\n")
		if name, ok := strings.CutPrefix(fence, kind); ok {
			found[strings.TrimSpace(name)] = text
		}
	}
	return found
}

func TestDocumentShowsTheBytes(t *testing.T) {
	found := blocks(t, "hex ")
	for name, want := range examples(t) {
		var digits strings.Builder
		for line := range strings.Lines(found[name]) {
			code, _, _ := strings.Cut(line, ";")
			digits.WriteString(strings.Join(strings.Fields(code), ""))
		}
		got, err := hex.DecodeString(digits.String())
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: the document shows %x (%v), the bytes are\n%s", name, got, err, hex.Dump(want))
		}
		delete(found, name)
	}
	if len(found) > 0 {
		t.Errorf("no message for the blocks %v", found)
	}
}

func TestDocumentListsEveryMessage(t *testing.T) {
	document, err := os.ReadFile("PROTOCOL.md")
	if err != nil {
		t.Fatal(err)
	}
	for messageType, info := range messages {
		if entry := "| " + strconv.Itoa(int(messageType)) + " | `" + info.name + "` |"; !bytes.Contains(document, []byte(entry)) {
			t.Errorf("no %q in the table of messages", entry)
		}
		if heading := strconv.Itoa(int(messageType)) + " `" + info.name + "`"; !bytes.Contains(document, []byte(heading)) {
			t.Errorf("no heading with %q", heading)
		}
	}
}

// tally is the game of the document's whole simulation.
type tally struct{ total uint64 }

func (g *tally) Reset(start player.Start) error { g.total = start.Meta.Seed; return nil }

func (g *tally) Step(_ format.Tick, step format.Step) (player.Result, error) {
	g.total += uint64(step.Code)
	for _, v := range step.Params {
		switch v.Kind() {
		case format.KindInt:
			i, _ := v.Int64()
			g.total += uint64(i)
		default:
			g.total += uint64(v.Len())
		}
	}
	return player.Success, nil
}

func (g *tally) EndTick(tick format.Tick) error { g.total = g.total*31 + uint64(tick); return nil }

func (g *tally) Hash(dst []byte) []byte { return binary.BigEndian.AppendUint64(dst, g.total) }

func TestDocumentsSimulation(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not here: the document's simulation is not run")
	}
	program := filepath.Join(t.TempDir(), "tally.py")
	if err := os.WriteFile(program, []byte(blocks(t, "python")[""]), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tcp := range []bool{false, true} {
		o := quick("")
		o.Env, o.TCP = nil, tcp
		var output bytes.Buffer
		o.Output = &output
		child, err := New(context.Background(), "'"+python+"' '"+program+"'", o)
		if err != nil {
			t.Fatal(err)
		}
		playTally(t, child)
		if err := child.Close(); err != nil || output.Len() > 0 {
			t.Errorf("%v, output %s", err, &output)
		}
	}
}

func playTally(t *testing.T, child *Simulation) {
	t.Helper()
	meta := counterMeta()
	meta.Game = "tally"
	start := player.Start{Meta: meta}
	s := playtest.NewScript(t)
	for i := range int64(400) {
		s.Tick(func(add func(uint16, ...format.Value)) {
			add(uint16(i), format.Int(-i), format.String("four"), format.Ints([]int64{1, i}))
			add(7)
		}).Empty(1)
	}
	sameRun(t, child, player.NewLocal(new(tally)), start, s.Ticks, nil)
	if err := child.Reset(player.Start{Meta: meta, State: []byte{1}}); !isStart(err) || !strings.Contains(err.Error(), "from the beginning alone") {
		t.Errorf("a keyframe: %v", err)
	}
	s.One(9).One(1, format.Bool(true)).Empty(3)
	results, err := run(child, start, s.Ticks, nil)
	if want := "error 72: tick 801, step 0 (code 1): execute failed: a parameter of kind 1"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if len(results) != 802 {
		t.Errorf("%d answers", len(results))
	}
	if again, err := run(child, start, s.Ticks[:10], nil); err != nil || !slices.Equal(again, results[:10]) {
		t.Errorf("after a reset: %v", err)
	}
}
