package player

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"reprise/format"
)

// dumped is a mixer that names its fields, and goes wrong in one of them at
// the end of a tick.
type dumped struct {
	mixer
}

func (d *dumped) Dump() []Field {
	return []Field{{"world", fmt.Sprint(d.world)}, {"random", fmt.Sprint(d.random)}}
}

func dumpedGame(fault format.Tick) *dumped {
	d := &dumped{}
	d.endTick = func(at format.Tick) error {
		if at == fault {
			d.world ^= 4
		}
		return nil
	}
	return d
}

// TestBisectSimsFindsTheTickAndTheField plants one wrong bit, over all ticks
// and whatever hashes and keyframes were recorded.
func TestBisectSimsFindsTheTickAndTheField(t *testing.T) {
	for _, plan := range []matchPlan{
		{ticks: 200}, {ticks: 200, hashEvery: 7, frames: []format.Tick{100, 163, 164, 200}},
		{ticks: 200, hashEvery: 1, frames: []format.Tick{260}, gaps: []format.Gap{{First: 250, Last: 259, Reason: "x"}}},
		{ticks: 200, hashEvery: 1, frames: []format.Tick{260}, gaps: []format.Gap{{First: 250, Last: 254}, {First: 255, Last: 259}}},
	} {
		m := recordMatch(t, plan)
		for fault := m.first; fault < m.next; fault += 3 {
			b, err := BisectSims(context.Background(), m.file, NewLocal(dumpedGame(0)), NewLocal(dumpedGame(fault)), PlaybackOptions{})
			if slices.ContainsFunc(plan.gaps, func(g format.Gap) bool { return g.First <= fault && fault <= g.Last }) {
				if b != nil || err != nil {
					t.Fatalf("fault in a gap: %+v, %v", b, err)
				}
				continue
			}
			if err != nil || b == nil {
				t.Fatalf("fault at %d: %+v, %v", fault, b, err)
			}
			if b.First != fault || b.Tick != fault || b.Part != "world" || !bytes.Equal(b.State, m.states[fault]) {
				t.Fatalf("fault at %d: %+v", fault, b)
			}
			if !b.HasFields || b.FieldsAt != fault || len(b.Fields) != 1 || b.Fields[0].Name != "world" || b.Fields[0].Want == b.Fields[0].Got {
				t.Fatalf("fault at %d: fields %+v", fault, b.Fields)
			}
		}
		if b, err := BisectSims(context.Background(), m.file, NewLocal(dumpedGame(0)), NewLocal(dumpedGame(0)), PlaybackOptions{}); b != nil || err != nil {
			t.Errorf("equal games part: %+v, %v", b, err)
		}
	}
}

// TestBisectBoundsThePlaceByTheRecording: the hash before, the hash after, and
// the fields where a keyframe stands behind.
func TestBisectBoundsThePlaceByTheRecording(t *testing.T) {
	m := recordMatch(t, matchPlan{ticks: 200, hashEvery: 10, frames: []format.Tick{180, 240}})
	for fault := format.Tick(120); fault < 280; fault++ {
		b, err := Bisect(context.Background(), m.file, NewLocal(dumpedGame(fault)), NewLocal(dumpedGame(0)), PlaybackOptions{})
		if err != nil || b == nil {
			t.Fatalf("fault at %d: %+v, %v", fault, b, err)
		}
		tick := (fault + 9) / 10 * 10
		first := tick - 9
		if (tick == 180 || tick == 240) && fault < tick {
			tick-- // the keyframe's
		}
		if fault == 180 || fault == 240 {
			first = fault // equal to the keyframe just before
		}
		if b.Tick != tick || b.First != first || b.Part != "world" || !bytes.Equal(b.State, m.states[first]) {
			t.Fatalf("fault at %d: %+v", fault, b)
		}
		if wantFields := b.First < 240; b.HasFields != wantFields {
			t.Fatalf("fault at %d: fields %v", fault, b.HasFields)
		}
		if !b.HasFields {
			continue
		}
		at := format.Tick(239)
		if b.First < 180 {
			at = 179
		}
		if b.FieldsAt != at || len(b.Fields) == 0 && fault <= at {
			t.Fatalf("fault at %d: fields after %d: %+v", fault, b.FieldsAt, b.Fields)
		}
	}
	for _, m := range []*match{recordMatch(t, matchPlan{ticks: 100})} {
		if _, err := Bisect(context.Background(), m.file, NewLocal(&mixer{}), nil, PlaybackOptions{}); !errors.Is(err, ErrNothingCompared) {
			t.Errorf("without hashes: %v", err)
		}
	}
}

// TestBundleReproducesTheDifference verifies bundles alone: the game that
// recorded passes, the faulty one fails at the same tick.
func TestBundleReproducesTheDifference(t *testing.T) {
	m := recordMatch(t, matchPlan{ticks: 200, hashEvery: 10})
	for _, fault := range []format.Tick{100, 105, 155, 290} {
		b, err := Bisect(context.Background(), m.file, NewLocal(dumpedGame(fault)), nil, PlaybackOptions{})
		if err != nil {
			t.Fatal(err)
		}
		parted, err := BisectSims(context.Background(), m.file, NewLocal(dumpedGame(0)), NewLocal(dumpedGame(fault)), PlaybackOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range []*Bisection{b, parted} {
			var out format.Buffer
			if err := b.WriteBundle(&out, m.file); err != nil {
				t.Fatal(err)
			}
			file := openBytes(t, out.Bytes())
			if file.Summary().Ticks != uint64(b.Tick-b.First+1) {
				t.Errorf("the bundle has %d ticks", file.Summary().Ticks)
			}
			_, err := Run(context.Background(), NewLocal(dumpedGame(fault)), NewFileSource(file), EngineOptions{Start: StartOf(file)})
			wantDesync(t, err, b.Tick)
			if _, err := Run(context.Background(), NewLocal(dumpedGame(0)), NewFileSource(file), EngineOptions{Start: StartOf(file)}); err != nil {
				t.Errorf("the right game on the bundle: %v", err)
			}
		}
	}
}

func TestCompareFieldsListsWhatOnlyOneHas(t *testing.T) {
	got := CompareFields([]Field{{"a", "1"}, {"b", "2"}, {"c", "3"}}, []Field{{"c", "4"}, {"a", "1"}, {"d", "5"}})
	want := []FieldDifference{{"b", "2", "", true}, {"c", "3", "4", false}, {"d", "", "5", true}}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v, want %v", got, want)
	}
}
