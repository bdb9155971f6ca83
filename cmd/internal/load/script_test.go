package load

import (
	"bytes"
	"testing"

	"reprise/format"
)

// Contents differ between sessions, ticks and players, and are the same each
// time.
func TestContents(t *testing.T) {
	seen := map[string]bool{}
	for number := range 3 {
		s := Script{Number: number, Players: 3, StepBytes: 60}
		w, again := writer{script: &s}, writer{script: &s}
		for tick := range format.Tick(300) {
			for player := range s.players() {
				_, params := w.step(tick, player)
				filler := bytes.Clone(params[2].ByteSlice())
				if len(filler) != s.StepBytes-MinStepBytes {
					t.Fatalf("a filler of %d bytes", len(filler))
				}
				if seen[string(filler)] {
					t.Fatalf("session %d, tick %d, player %d has the content of another", number, tick, player)
				}
				seen[string(filler)] = true
				if _, params = again.step(tick, player); !bytes.Equal(params[2].ByteSlice(), filler) {
					t.Fatalf("session %d, tick %d, player %d is not the same again", number, tick, player)
				}
			}
		}
	}
}

// The size of a step is what was asked for, within its bounds.
func TestStepBytes(t *testing.T) {
	for _, c := range []struct{ asked, want int }{{0, MinStepBytes}, {MinStepBytes, MinStepBytes}, {100, 100}, {MaxStepBytes, MaxStepBytes}, {5000, MaxStepBytes}} {
		s := Script{Number: 1000, StepBytes: c.asked}
		w := writer{script: &s}
		b := format.NewBatchBuilder(format.Width16, 0, 0)
		code, params := w.step(5000, 0)
		if err := b.Step(code, params...); err != nil {
			t.Fatal(err)
		}
		b.EndTick()
		if got := b.Rows(); got < c.want-4 || got > c.want+4 {
			t.Errorf("a step of %d bytes has %d in the file", c.asked, got)
		}
	}
}

// The generator shares the machine with what it drives: a step costs it no
// allocation.
func TestStepAllocatesNothing(t *testing.T) {
	s := Script{StepBytes: MaxStepBytes}
	w := writer{script: &s}
	b := format.NewBatchBuilder(format.Width16, 0, 0)
	tick := format.Tick(0)
	n := testing.AllocsPerRun(1000, func() {
		code, params := w.step(tick, 0)
		if b.Step(code, params...) != nil {
			t.Fatal("refused")
		}
		b.EndTick()
		tick++
	})
	if n > 0.5 {
		t.Errorf("%v allocations a step", n)
	}
}

func TestExactRate(t *testing.T) {
	for rate, want := range map[float64]string{0: "0", -1: "0", 20: "20", 22.4: "22.4", 0.01: "0.01", 29.97: "29.97"} {
		if got := exactRate(rate).String(); got != want {
			t.Errorf("a rate of %v is written as %s", rate, got)
		}
	}
}

func BenchmarkStep(b *testing.B) {
	s := Script{StepBytes: 40}
	w := writer{script: &s}
	for i := range b.N {
		w.step(format.Tick(i), 0)
	}
}
