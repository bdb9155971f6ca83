package tower

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"reprise/format"
	"reprise/player"
)

// tape is a recorded game: its turns and the hashes of settled ticks.
type tape struct {
	seed    uint64
	mapName string
	turns   []Turn
	hashes  map[format.Tick][]byte
	outcome string
	last    []byte
}

// play lets a climber play a whole game and records it.
func play(t testing.TB, seed uint64, mapName string) *tape {
	t.Helper()
	r, err := NewRun(seed, mapName)
	if err != nil {
		t.Fatal(err)
	}
	rec := &tape{seed: seed, mapName: mapName, hashes: map[format.Tick][]byte{}}
	for {
		turn, settled, ok := r.Next()
		for _, s := range settled {
			rec.hashes[s.Tick] = s.Hash
			rec.last = s.Hash
		}
		if !ok {
			rec.outcome = r.Outcome()
			return rec
		}
		rec.turns = append(rec.turns, turn)
	}
}

// with gives a tape on which turn i is another one.
func (rec *tape) with(i int, turn Turn) *tape {
	changed := *rec
	changed.turns = slices.Clone(rec.turns)
	changed.turns[i] = turn
	return &changed
}

// record adds the tape's steps to a recording and gives the number of steps
// up to and with each turn.
func (rec *tape) record(t testing.TB, system *player.ReplaySystem) []int {
	t.Helper()
	var ends []int
	for _, turn := range rec.turns {
		turn.Steps(func(code uint16, params ...format.Value) {
			if err := system.Record(code, params...); err != nil {
				t.Fatal(err)
			}
		})
		ends = append(ends, system.Array().Len())
	}
	return ends
}

// ticks records the tape in memory and cuts the recording into ticks.
func (rec *tape) ticks(t testing.TB) []format.TickRecord {
	t.Helper()
	system := player.NewSystem(player.SystemOptions{})
	ends := rec.record(t, system)
	a := system.Array()
	commands, params, index := a.CommandArea(), a.ParamArea(), append(a.Index(), uint32(len(a.ParamArea())))
	var ticks []format.TickRecord
	from := 0
	for i, to := range ends {
		ticks = append(ticks, format.TickRecord{
			Tick: format.Tick(i), Width: format.Width8, Steps: to - from,
			Commands: commands[2*from : 2*to], Params: params[index[from]:index[to]],
			Hash: rec.hashes[format.Tick(i)],
		})
		from = to
	}
	return ticks
}

// playback is what the player made of a tape.
type playback struct {
	compared, ignored int
	// differ is the first settled tick whose hash differs, -1 for none.
	differ int
	part   string
	err    error
	game   *Game
}

// replay plays a tape through the sandbox and compares every hash on it.
func (rec *tape) replay(t testing.TB) playback {
	t.Helper()
	sim := Factory().Simulation().(*player.Turns)
	defer sim.Close()
	out := playback{differ: -1, game: sim.Game().(*Game)}
	if err := sim.Reset(player.Start{Meta: Metadata("", rec.seed, rec.mapName), Book: CodeBook()}); err != nil {
		t.Fatal(err)
	}
	emit := func(o player.Outcome) error {
		out.ignored += o.Ignored
		return out.compare(int(o.Tick), o.Hash, rec.hashes[o.Tick])
	}
	for _, tick := range rec.ticks(t) {
		if out.err = sim.Advance(&tick, tick.Hash != nil, emit); out.err != nil {
			return out
		}
	}
	out.err = sim.Flush(true, emit)
	return out
}

// errDiffers ends a playback at the first difference.
var errDiffers = errors.New("the hash differs")

func (out *playback) compare(tick int, got, want []byte) error {
	if want == nil {
		return nil
	}
	out.compared++
	if bytes.Equal(got, want) {
		return nil
	}
	out.differ, out.part = tick, HashParts()[firstPart(got, want)].Name
	return errDiffers
}

func TestReplayEqualsPlay(t *testing.T) {
	outcomes := map[string]int{}
	codes := map[uint16]int{}
	ignored := 0
	for seed := range uint64(40) {
		mapName := fmt.Sprintf("tower-%d", 2+seed%11)
		rec := play(t, seed, mapName)
		out := rec.replay(t)
		if out.err != nil || out.differ >= 0 {
			t.Fatalf("seed %d on %s: tick %d differs in %q, error %v", seed, mapName, out.differ, out.part, out.err)
		}
		if out.compared != len(rec.hashes) || out.compared < 40 {
			t.Errorf("seed %d: %d of %d hashes compared", seed, out.compared, len(rec.hashes))
		}
		if out.game.Outcome() != rec.outcome {
			t.Errorf("seed %d: played %s, replayed %s", seed, rec.outcome, out.game.Outcome())
		}
		ignored += out.ignored
		outcomes[rec.outcome]++
		for _, turn := range rec.turns {
			turn.Steps(func(code uint16, _ ...format.Value) { codes[code]++ })
		}
	}
	if len(outcomes) != 3 || outcomes["climbing"] > 0 || ignored == 0 {
		t.Errorf("the games ended %v with %d ignored steps: want some of each", outcomes, ignored)
	}
	for _, c := range CodeBook().Codes {
		if codes[c.Code] == 0 {
			t.Errorf("no game had a step %q", c.Name)
		}
	}
}

// firstHash gives the first tick from i on that has a hash.
func (rec *tape) firstHash(i int) int {
	for rec.hashes[format.Tick(i)] == nil {
		i++
	}
	return i
}

// checkFound replays a tape with turn i changed: the first hash from there on
// must differ. Where the changed turn prolongs the run before it, that run's
// end is settled no more, and its hash is the first to differ.
func (rec *tape) checkFound(t *testing.T, i int, turn Turn) {
	t.Helper()
	want := rec.firstHash(i)
	if _, moved := isMove(turn.Code); moved && i > 0 && rec.turns[i-1].Code == turn.Code {
		want = rec.firstHash(i - 1)
	}
	out := rec.with(i, turn).replay(t)
	if out.err != errDiffers || out.differ != want || out.part != "hero" {
		t.Errorf("seed %d: turn %d was changed, tick %d is the first to differ (in %q, error %v), want %d", rec.seed, i, out.differ, out.part, out.err, want)
	}
}

func TestChangedMoveIsFound(t *testing.T) {
	for seed := range uint64(4) {
		rec := play(t, seed, "tower-4")
		mind := random(seed)
		for range 12 {
			i := mind.below(len(rec.turns))
			if d, moved := isMove(rec.turns[i].Code); moved {
				rec.checkFound(t, i, move(d^1))
			}
		}
	}
}

func TestChangedChoiceIsFound(t *testing.T) {
	found := 0
	for seed := range uint64(8) {
		rec := play(t, seed, "tower-5")
		for i, turn := range rec.turns {
			if turn.Code != CodeOpen || len(turn.Passives) < 2 {
				continue
			}
			was, _ := turn.Passives[0].Params[0].Int64()
			turn.Passives = slices.Clone(turn.Passives)
			turn.Passives[0] = answer(CodeChoose, (was+1)%3)
			rec.checkFound(t, i, turn)
			found++
			break
		}
	}
	if found < 3 {
		t.Errorf("only %d games had a choice to change", found)
	}
}

func TestReplacedTurnIsFound(t *testing.T) {
	rec := play(t, 3, "tower-4")
	for i := 5; i < len(rec.turns); i += 50 {
		if rec.turns[i].Code != CodeUse {
			rec.checkFound(t, i, Turn{Code: CodeUse, Params: ints(int64(bomb))})
		}
	}
}

// A replay can be left anywhere with a keyframe, also in the middle of a run
// whose moves still wait, and another player goes on from there.
func TestReplayGoesOnFromKeyframes(t *testing.T) {
	rec := play(t, 8, "tower-3")
	ticks := rec.ticks(t)
	waiting := 0
	first := Factory().Simulation().(*player.Turns)
	if err := first.Reset(player.Start{Meta: Metadata("", rec.seed, rec.mapName)}); err != nil {
		t.Fatal(err)
	}
	drop := func(player.Outcome) error { return nil }
	for i := range ticks {
		if err := first.Advance(&ticks[i], false, drop); err != nil {
			t.Fatal(err)
		}
		if i%5 != 0 {
			continue
		}
		// The latest tick is not executed before the one behind it is known.
		keyframe := first.Game().(*Game).Save(nil)
		waiting += len(first.Game().(*Game).state.queue)
		if got := rec.goOn(t, keyframe, ticks[i:]); !bytes.Equal(got, rec.last) {
			t.Fatalf("from tick %d on the game ended with hash %x, want %x", i, got, rec.last)
		}
	}
	if waiting == 0 {
		t.Error("no keyframe was taken in the middle of a run")
	}
}

// goOn plays the rest of a tape from a keyframe and gives the last hash.
func (rec *tape) goOn(t *testing.T, keyframe []byte, rest []format.TickRecord) []byte {
	t.Helper()
	sim := Factory().Simulation()
	start := player.Start{Meta: Metadata("", rec.seed, rec.mapName), State: keyframe, NextTick: rest[0].Tick}
	if err := sim.Reset(start); err != nil {
		t.Fatal(err)
	}
	var last []byte
	emit := func(o player.Outcome) error {
		last = bytes.Clone(o.Hash)
		return nil
	}
	for i := range rest {
		if err := sim.Advance(&rest[i], true, emit); err != nil {
			t.Fatal(err)
		}
	}
	if err := sim.Flush(true, emit); err != nil {
		t.Fatal(err)
	}
	return last
}

func TestGameIsFoundByName(t *testing.T) {
	games := player.Games{Factory()}
	linked, err := games.Lookup(Metadata("", 1, "tower-3"))
	if err != nil {
		t.Fatal(err)
	}
	if name, build := linked.Identity(); name != Name || build != Build {
		t.Errorf("found %s %s", name, build)
	}
	other := Metadata("", 1, "tower-3")
	other.Build = "tower-0"
	var mismatch *player.BuildMismatchError
	if _, err := games.Lookup(other); !errors.As(err, &mismatch) {
		t.Errorf("another build gave error %v", err)
	}
}

// warned makes a game that collects its warnings.
func warned() (*Game, *[]format.WarningCode) {
	var codes []format.WarningCode
	g := NewWith(player.SystemOptions{Warn: func(w format.Warning) { codes = append(codes, w.Code) }})
	return g, &codes
}

// stage records turns over a drawn scene and plays them.
func stage(t *testing.T, drawing string, turns ...Turn) (*Game, []format.WarningCode, error) {
	t.Helper()
	g, codes := warned()
	(&tape{turns: turns}).record(t, g.System())
	sandbox, err := g.System().CreateSandbox(0, player.ResetFunc(func([]byte) error {
		g.state = *scene(t, drawing)
		g.state.hero.gold = 100
		return nil
	}), nil)
	if err != nil {
		t.Fatal(err)
	}
	err = sandbox.Play()
	return g, *codes, err
}

func TestSandboxAnswersQuestions(t *testing.T) {
	g, codes, err := stage(t, "@.$", move(right), move(right), open(1, 1, 2, 3), move(left))
	if err != nil || len(codes) != 0 {
		t.Fatalf("error %v, warnings %v", err, codes)
	}
	g.state.expect(t, at(1, 1), map[string]int64{"attack": 16, "defence": 12, "gold": 100 - 20 - 28 - 36, "turns": 4, "bumps": 1})
}

func TestUnusedPassiveIsSkipped(t *testing.T) {
	for name, turn := range map[string]Turn{
		"a chest asks nothing":     open(1),
		"an answer behind leaving": {Code: CodeUse, Params: ints(int64(ration)), Passives: choose(3)},
		"an answer to a move":      {Code: CodeRight, Passives: choose(3)},
	} {
		g, codes, err := stage(t, "@c", turn, move(left))
		if err != nil || len(codes) != 1 || codes[0] != format.WarnPassiveSkipped {
			t.Errorf("%s: error %v, warnings %v", name, err, codes)
		}
		g.state.expect(t, at(1, 1), map[string]int64{"turns": 2})
	}
}

func TestMissingPassiveStopsPlayback(t *testing.T) {
	tests := []struct {
		name  string
		turns []Turn
	}{
		{"at the end", []Turn{open()}},
		{"before the next turn", []Turn{open(), move(left)}},
		{"in the middle of trading", []Turn{open(1), move(left)}},
	}
	for _, test := range tests {
		g, codes, err := stage(t, "@$", test.turns...)
		var failure *player.StepFailure
		if !errors.As(err, &failure) || failure.Code != CodeOpen || !errors.Is(err, errAnswer) {
			t.Errorf("%s: error %v", test.name, err)
		}
		if len(codes) != 1 || codes[0] != format.WarnNoPassive {
			t.Errorf("%s: warnings %v", test.name, codes)
		}
		if g.state.hero.turns != 1 {
			t.Errorf("%s: %d turns were taken", test.name, g.state.hero.turns)
		}
	}
}

func TestRefusedPassiveStopsPlayback(t *testing.T) {
	tests := []struct {
		name   string
		answer Answer
		want   string
	}{
		{"out of range", answer(CodeChoose, 9), errChoice.Error()},
		{"another kind", answer(CodeDestination, 0), errAnswer.Error()},
		{"no parameter", Answer{Code: CodeChoose}, player.ErrParams.Error()},
		{"a string", Answer{CodeChoose, []format.Value{format.String("3")}}, player.ErrParams.Error()},
		{"2^63", Answer{CodeChoose, []format.Value{format.Uint(1 << 63)}}, errParams.Error()},
	}
	for _, test := range tests {
		g, _, err := stage(t, "@$", Turn{Code: CodeOpen, Passives: []Answer{test.answer}}, move(left))
		if err == nil || !errors.Is(err, format.WarnStepFailed) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error %v, want one with %q", test.name, err, test.want)
		}
		if g.state.hero.turns != 1 || g.state.hero.gold != 100 {
			t.Errorf("%s: playback went on", test.name)
		}
	}
}

func TestUnaffordableChoiceIsNoted(t *testing.T) {
	g, codes, err := stage(t, "@$", open(0, 1, 2, 0, 3), move(left))
	if err != nil || len(codes) != 0 {
		t.Fatalf("error %v, warnings %v", err, codes)
	}
	if n := g.System().Sandbox().Ignored(); n != 1 {
		t.Errorf("%d steps were ignored, want 1", n)
	}
}

func TestGameNeedsReset(t *testing.T) {
	g := New()
	(&tape{turns: []Turn{move(up)}}).record(t, g.System())
	sandbox, err := g.System().CreateSandbox(0, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := sandbox.Play(); !errors.Is(err, ErrNotReset) {
		t.Errorf("error %v", err)
	}
}
