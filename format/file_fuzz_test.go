package format

import (
	"bytes"
	"errors"
	"slices"
	"testing"
)

// FuzzParseBatch holds that a batch that is taken reads whole, every step of
// it, and rebuilds the same bytes.
func FuzzParseBatch(f *testing.F) {
	p := goodParts()
	f.Add(p.body(), byte(0))
	p.flags, p.rest = 2<<1|2<<3, slices.Concat([]byte{0b1000_0001, 0}, []byte("h0h7"), []byte{0b0000_0100, 1}, leb(1000, 5))
	f.Add(p.body(), byte(2))
	f.Add(bodies(f)["ticks"], byte(4))
	f.Fuzz(func(t *testing.T, body []byte, hashBytes byte) {
		width := int(hashBytes) % (MaxHashBytes + 1)
		batch, err := ParseBatch(body, width)
		if err != nil {
			if !errors.Is(err, ErrCorrupt) {
				t.Fatalf("%v is no damage", err)
			}
			return
		}
		again := NewBatchBuilder(batch.Width, width, batch.First)
		var rec TickRecord
		var steps StepReader
		ticks := 0
		for r := batch.Reader(); r.Next(&rec); ticks++ {
			n := 0
			steps.Reset(&rec)
			for s := (Step{}); steps.Next(&s); {
				n++
			}
			if n != rec.Steps {
				t.Fatalf("tick %d has %d steps, %d are read", rec.Tick, rec.Steps, n)
			}
			if err := again.Add(&rec); err != nil {
				t.Fatal(err)
			}
		}
		if ticks != batch.Ticks {
			t.Fatalf("%d ticks are read, there are %d", ticks, batch.Ticks)
		}
		if got := again.AppendBody(nil); !bytes.Equal(got, body) {
			t.Fatalf("rebuilt as %x, want %x", got, body)
		}
	})
}

// FuzzRepair cuts a good file into its chunks, does to them what the input
// says, and repairs the outcome: it passes every check, repairs to itself,
// and holds no tick that was not recorded.
func FuzzRepair(f *testing.F) {
	s := smallSession()
	_, good := s.file(f, 1)
	for i := range s.ticks {
		for n := range s.ticks[i].steps {
			s.ticks[i].steps[n].Index = n
		}
	}
	var chunks [][]byte
	for _, p := range places(f, good, s.meta.HashBytes) {
		chunks = append(chunks, good[p.start:p.end])
	}
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19})
	f.Add([]byte{0, 1, 5, 200, 30, 4, 6, 7})
	f.Fuzz(func(t *testing.T, script []byte) {
		b := AppendHeader(nil)
		for i, x := range script {
			chunk := chunks[int(x)%len(chunks)]
			switch at := len(b); {
			case x < 200:
				b = append(b, chunk...)
			case x < 220 && i+1 < len(script):
				b = append(b, chunk[:int(script[i+1])%len(chunk)]...)
			case x < 240 && i+1 < len(script):
				b = append(b, chunk...)
				b[at+int(script[i+1])%len(chunk)] ^= x
			default:
				b = append(b, x, 0, 0)
			}
		}
		var out Buffer
		report, err := Repair(bytes.NewReader(b), int64(len(b)), &out)
		if err != nil {
			if !IsDamage(err) {
				t.Fatalf("%v is no damage", err)
			}
			return
		}
		checkRepaired(t, "repaired", out.Bytes(), report.Ticks)
		ticks, err := readTicks(openBytes(t, out.Bytes()).Reader())
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range ticks {
			i := slices.IndexFunc(s.ticks, func(w modelTick) bool { return w.tick == m.tick })
			if i < 0 {
				t.Fatalf("tick %d was never recorded", m.tick)
			}
			want := s.ticks[i]
			if m.hash == nil {
				want.hash = nil
			}
			if d := differs([]modelTick{m}, []modelTick{want}); d != "" {
				t.Fatal(d)
			}
		}
	})
}
