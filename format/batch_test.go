package format

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// batchParts are the fields of a ticks chunk's body, to be put together
// without a BatchBuilder.
type batchParts struct {
	first    uint64
	ticks    uint64
	flags    byte
	steps    uint64
	params   uint64 // bytes of area
	commands []byte
	area     []byte
	timeline []uint64
	rest     []byte // bitmaps, hashes, times
}

func (p batchParts) body() []byte {
	b := leb(p.first, p.ticks)
	b = append(b, p.flags)
	b = append(b, leb(p.steps, p.params)...)
	b = slices.Concat(b, p.commands, p.area)
	b = append(b, leb(p.timeline...)...)
	return append(b, p.rest...)
}

// goodParts is a batch of nine ticks: two empty ones, two steps, five empty
// ones, one step.
func goodParts() batchParts {
	return batchParts{first: 500, ticks: 9, steps: 3, params: 5,
		commands: []byte{1, 7, 0, 8, 1, 9}, area: []byte{1, 100, 2, 1, 44},
		timeline: []uint64{2 * (2 - 1), 2*(2-1) + 1, 2 * (5 - 1), 1}}
}

func TestBatchIsReadAsItIsSpecified(t *testing.T) {
	p := goodParts()
	p.flags = 2<<1 | 2<<3
	p.rest = slices.Concat([]byte{0b1000_0001, 0}, []byte("h0h7"), []byte{0b0000_0100, 1}, leb(1000, 5))
	b, err := ParseBatch(p.body(), 2)
	if err != nil {
		t.Fatal(err)
	}
	if b.First != 500 || b.Ticks != 9 || b.Next() != 509 || b.Width != Width8 || b.Steps != 3 || b.Hashes != 2 || b.LastTime != 1005 || !b.HasTimes {
		t.Errorf("%+v", b)
	}
	if s := b.State(); !reflect.DeepEqual(s, State{Length: 3, CommandWidth: Width8, CommandArray: p.commands, ParamArray: p.area}) {
		t.Errorf("state %+v", s)
	}
	want := make([]modelTick, 9)
	for i := range want {
		want[i].tick = Tick(500 + i)
	}
	want[0].hash, want[7].hash = []byte("h0"), []byte("h7")
	want[2].time, want[2].timed, want[8].time, want[8].timed = 1000, true, 1005, true
	want[2].steps = []Step{{Code: 7, Params: []Value{Int(100)}}, {Code: 8, Index: 1}}
	want[8].steps = []Step{{Code: 9, Params: []Value{Int(300)}}}
	if d := differs(readBatch(&b), want); d != "" {
		t.Error(d)
	}
}

// readBatch gives the ticks of a batch.
func readBatch(b *Batch) []modelTick {
	var ticks []modelTick
	var rec TickRecord
	var steps StepReader
	for r := b.Reader(); r.Next(&rec); {
		t := modelTick{tick: rec.Tick, hash: rec.Hash, time: rec.Time, timed: rec.HasTime}
		steps.Reset(&rec)
		for s := (Step{}); steps.Next(&s); {
			s.Params = slices.Clone(s.Params)
			t.steps = append(t.steps, s)
		}
		ticks = append(ticks, t)
	}
	return ticks
}

func TestBatchesThatAreRefused(t *testing.T) {
	change := func(f func(*batchParts)) []byte {
		p := goodParts()
		f(&p)
		return p.body()
	}
	for name, c := range map[string]struct {
		body []byte
		says string
	}{
		"no ticks":                {change(func(p *batchParts) { p.ticks = 0 }), "0 ticks"},
		"too many ticks":          {change(func(p *batchParts) { p.ticks = MaxChunkTicks + 1 }), "number of ticks is 65537"},
		"a tick over the largest": {change(func(p *batchParts) { p.first = uint64(MaxTick) + 1 }), "first tick is"},
		"a reserved flag":         {change(func(p *batchParts) { p.flags = 0x20 }), "flags 0x20"},
		"the flag above":          {change(func(p *batchParts) { p.flags = 0x80 }), "flags 0x80"},
		"hashes in a fourth way":  {change(func(p *batchParts) { p.flags = 3 << 1 }), "presence 3 for hashes"},
		"times in a fourth way":   {change(func(p *batchParts) { p.flags = 3 << 3 }), "presence 3 for times"},
		"too many steps":          {change(func(p *batchParts) { p.steps = MaxRowBytes/2 + 1 }), "number of steps is"},
		"too many row bytes":      {change(func(p *batchParts) { p.params = MaxRowBytes - 5 }), "row bytes, the most is"},
		"a short command area":    {change(func(p *batchParts) { p.steps = 400 }), "the command area"},
		"a short parameter area":  {change(func(p *batchParts) { p.params = 400 }), "the parameter area"},
		"codes of another width":  {change(func(p *batchParts) { p.flags = 1 }), ""},
		"a parameter too few":     {change(func(p *batchParts) { p.commands[0] = 2; p.commands[4] = 1 }), "step 2"},
		"a parameter too many":    {change(func(p *batchParts) { p.commands[0] = 0 }), "bytes after the last parameter"},
		"a reserved parameter":    {change(func(p *batchParts) { p.area[0] = 12 }), "type 12"},
		"a cut parameter":         {change(func(p *batchParts) { p.area[2] = 3 }), "step 2"},

		"empty ticks twice":       {change(func(p *batchParts) { p.timeline = []uint64{0, 0, 3, 8, 1} }), "a run of 1 empty ticks at tick 1"},
		"empty ticks to spare":    {change(func(p *batchParts) { p.timeline[2] = 14 }), "a run of 8 empty ticks at tick 3 of 9"},
		"too many empty ticks":    {change(func(p *batchParts) { p.timeline[0] = 1<<64 - 2 }), "empty ticks at tick 0"},
		"steps to spare":          {change(func(p *batchParts) { p.timeline[1] = 1 }), "2 steps, the chunk has 3"},
		"too many steps in a run": {change(func(p *batchParts) { p.timeline[3] = 3 }), "2 steps in tick 8, 1 are left"},
		"endless steps":           {change(func(p *batchParts) { p.timeline[3] = 1<<64 - 1 }), "steps in tick 8"},
		"a timeline that ends":    {change(func(p *batchParts) { p.timeline = p.timeline[:3] }), "the timeline"},
		"a byte more":             {change(func(p *batchParts) { p.rest = []byte{0} }), "1 bytes after the last field"},

		"a bitmap of no hashes":     {change(func(p *batchParts) { p.flags = 2 << 1; p.rest = []byte{0, 0} }), "the bitmap of hashes has 0 of 9"},
		"a bitmap of all hashes":    {change(func(p *batchParts) { p.flags = 2 << 1; p.rest = append([]byte{255, 1}, make([]byte, 18)...) }), "has 9 of 9"},
		"a bitmap with more ticks":  {change(func(p *batchParts) { p.flags = 2 << 1; p.rest = []byte{0, 2, 1, 1} }), "the bitmap of hashes"},
		"a short bitmap":            {change(func(p *batchParts) { p.flags = 2 << 1; p.rest = []byte{1} }), "body ends inside a bitmap"},
		"hashes that end":           {change(func(p *batchParts) { p.flags = 1 << 1; p.rest = make([]byte, 17) }), "the hashes"},
		"a bitmap of no times":      {change(func(p *batchParts) { p.flags = 2 << 3; p.rest = []byte{0, 0} }), "the bitmap of times has 0 of 9"},
		"a bitmap of all times":     {change(func(p *batchParts) { p.flags = 2 << 3; p.rest = append([]byte{255, 1}, make([]byte, 9)...) }), "has 9 of 9"},
		"times that end":            {change(func(p *batchParts) { p.flags = 1 << 3; p.rest = make([]byte, 8) }), "a time"},
		"a time over the largest":   {change(func(p *batchParts) { p.flags = 2 << 3; p.rest = append([]byte{1, 0}, leb(1<<62)...) }), "time of 4611686018427387904"},
		"times that add up to more": {change(func(p *batchParts) { p.flags = 2 << 3; p.rest = append([]byte{3, 0}, leb(1<<62-1, 1)...) }), "time of 1 "},

		"a long number": {append([]byte{0xf4, 0x83, 0x00}, change(func(*batchParts) {})[2:]...), "the first tick is not a shortest uvarint"},
	} {
		_, err := ParseBatch(c.body, 2)
		if !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want damage with %q", name, err, c.says)
		}
	}
	p := goodParts()
	if _, err := ParseBatch(p.body(), 2); err != nil {
		t.Errorf("the batch that all are made from: %v", err)
	}
	p.flags, p.rest = 1<<1, make([]byte, 9)
	if _, err := ParseBatch(p.body(), 0); !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "a session that declares none") {
		t.Errorf("hashes of no bytes: %v", err)
	}
}

func TestDamageInABatchHasItsPlace(t *testing.T) {
	p := goodParts()
	at := bytes.Index(p.body(), p.area) + 2
	p.area[2] = 20
	_, err := ParseBatch(p.body(), 2)
	var c *CorruptError
	if !errors.As(err, &c) || c.Offset != int64(at) {
		t.Errorf("%v, want damage at byte %d of the body", err, at)
	}
}

// TestRandomBatches builds batches of every shape: what is read is what was
// recorded, and what is read rebuilds the same bytes.
func TestRandomBatches(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 21))
		s := &session{meta: Metadata{Width: []Width{Width8, Width16}[r.IntN(2)], HashBytes: []int{0, 1, 8, 32}[r.IntN(4)]}, late: map[Tick]bool{}}
		ticks := randomTicks(r, s, 1+r.IntN(40))
		b := buildBatch(t, r, s, ticks)
		body := b.AppendBody(nil)
		batch, err := ParseBatch(body, s.meta.HashBytes)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if d := differs(readBatch(&batch), ticks); d != "" {
			t.Fatalf("seed %d: %s", seed, d)
		}
		again := NewBatchBuilder(batch.Width, s.meta.HashBytes, batch.First)
		reader := batch.Reader()
		for rec := (TickRecord{}); reader.Next(&rec); {
			if err := again.Add(&rec); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
		}
		if got := again.AppendBody(nil); !bytes.Equal(got, body) {
			t.Fatalf("seed %d: rebuilt as\n%x, want\n%x", seed, got, body)
		}
	}
}

// randomTicks gives ticks in runs with and without steps, hashes and times.
func randomTicks(r *rand.Rand, s *session, n int) []modelTick {
	first := Tick(r.Uint64N(1 << 41))
	ticks := make([]modelTick, n)
	hashes, times := r.IntN(3), r.IntN(3) // none, all, some
	time := int64(0)
	for i := range ticks {
		t := randomTick(r, s, first+Tick(i), &time)
		if r.IntN(2) == 0 {
			t.steps = nil
		}
		t.hash, t.time, t.timed = nil, 0, false
		if s.meta.HashBytes > 0 && (hashes == 1 || hashes == 2 && r.IntN(2) == 0) {
			t.hash = bytes.Repeat([]byte{byte(i)}, s.meta.HashBytes)
		}
		if times == 1 || times == 2 && r.IntN(2) == 0 {
			time += r.Int64N(3) * r.Int64N(1<<40)
			t.time, t.timed = time, true
		}
		ticks[i] = t
	}
	return ticks
}

// buildBatch records ticks, their hashes in any order, and takes the body
// now and then in between, which must change nothing.
func buildBatch(t *testing.T, r *rand.Rand, s *session, ticks []modelTick) *BatchBuilder {
	t.Helper()
	b := NewBatchBuilder(s.meta.Width, s.meta.HashBytes, ticks[0].tick)
	for _, tick := range ticks {
		for _, step := range tick.steps {
			if err := b.Step(step.Code, step.Params...); err != nil {
				t.Fatal(err)
			}
		}
		if tick.timed {
			b.EndTickAt(tick.time)
		} else {
			b.EndTick()
		}
		if r.IntN(4) == 0 {
			b.AppendBody(nil)
		}
	}
	for _, i := range r.Perm(len(ticks)) {
		tick := ticks[i]
		if tick.hash == nil {
			continue
		}
		if !b.Hash(tick.tick, tick.hash) || b.Hash(tick.tick, tick.hash) {
			t.Fatalf("hash of tick %d: not taken, or taken twice", tick.tick)
		}
	}
	return b
}

func TestBuilderTakesHashesOfClosedTicksOnly(t *testing.T) {
	b := NewBatchBuilder(Width8, 2, 10)
	b.EndTick()
	for name, taken := range map[string]bool{
		"a tick before":   b.Hash(9, []byte{1, 2}),
		"the open tick":   b.Hash(11, []byte{1, 2}),
		"another width":   b.Hash(10, []byte{1}),
		"no hash":         b.Hash(10, nil),
		"without a width": func() bool { b := NewBatchBuilder(Width8, 0, 10); b.EndTick(); return b.Hash(10, nil) }(),
	} {
		if taken {
			t.Errorf("%s: taken", name)
		}
	}
	if !b.Hash(10, []byte{1, 2}) {
		t.Error("the closed tick's hash is not taken")
	}
}

func TestTickOfTheLargestSize(t *testing.T) {
	b := NewBatchBuilder(Width16, 0, 0)
	const frame = 3 + 5 // an entry of the command area, a parameter's type and length
	big := make([]byte, MaxRowBytes-2*frame-100)
	if err := b.Step(1, Bytes(big)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		size int
		want error
	}{{101, ErrTickSize}, {1 << 20, ErrTickSize}, {100, nil}, {0, ErrTickSize}} {
		steps := b.OpenSteps()
		err := b.Step(2, Bytes(make([]byte, c.size)))
		if !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
			t.Errorf("%d bytes more: %v, want %v", c.size, err, c.want)
		}
		if err != nil && b.OpenSteps() != steps {
			t.Errorf("%d bytes more: refused, but %d steps", c.size, b.OpenSteps())
		}
	}
	b.EndTick()
	batch, err := ParseBatch(b.AppendBody(nil), 0)
	if err != nil || batch.Steps != 2 || len(batch.Commands)+len(batch.Params) != MaxRowBytes || b.Rows() != MaxRowBytes {
		t.Errorf("%d steps, %d row bytes, %v", batch.Steps, len(batch.Commands)+len(batch.Params), err)
	}
	if err := b.Step(2); err != nil {
		t.Error(err)
	}
	if !b.Full() {
		t.Error("a chunk of the most bytes takes another tick")
	}
}

func TestStepsThatCannotBeStored(t *testing.T) {
	b := NewBatchBuilder(Width8, 0, 0)
	if err := b.Step(1, Int(1)); err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{
		"a wide code":        b.Step(256),
		"256 parameters":     b.Step(1, make([]Value, 256)...),
		"no value":           b.Step(1, Int(7), Value{}),
		"a bigint too large": b.Step(1, String("x"), BigInt(new(big.Int).Lsh(big.NewInt(1), 2040))),
	} {
		if !errors.Is(err, ErrStep) {
			t.Errorf("%s: %v", name, err)
		}
	}
	b.EndTick()
	batch, err := ParseBatch(b.AppendBody(nil), 0)
	if err != nil || !bytes.Equal(batch.Commands, []byte{1, 1}) || !bytes.Equal(batch.Params, []byte{1, 1}) {
		t.Errorf("a refused step left a trace: %x %x, %v", batch.Commands, batch.Params, err)
	}
}

func TestBuilderIsFullAtTheMostTicks(t *testing.T) {
	b := NewBatchBuilder(Width8, 0, 1)
	for range MaxChunkTicks {
		if b.Full() {
			t.Fatalf("full at %d ticks", b.Ticks())
		}
		b.EndTick()
	}
	if !b.Full() {
		t.Error("not full at the most ticks")
	}
	body := b.AppendBody(nil)
	batch, err := ParseBatch(body, 0)
	if err != nil || batch.Ticks != MaxChunkTicks || len(body) > 16 {
		t.Errorf("%d ticks in %d bytes, %v", batch.Ticks, len(body), err)
	}
	b.Cut()
	if b.Full() || b.NextTick() != MaxChunkTicks+1 {
		t.Errorf("after the cut: full %v, next tick %d", b.Full(), b.NextTick())
	}
}

// TestOpenTickMovesToTheNextChunk closes no tick that does not fit the
// chunk: the closed ones are taken first, the open one stays as it is.
func TestOpenTickMovesToTheNextChunk(t *testing.T) {
	b := NewBatchBuilder(Width16, 1, 5)
	half := Bytes(bytes.Repeat([]byte{0xab}, MaxRowBytes/2))
	if err := b.Step(1, half); err != nil {
		t.Fatal(err)
	}
	b.Hash(b.EndTickAt(9), []byte{1})
	for i := range 3 {
		if b.Full() {
			t.Fatalf("full with %d open steps", i)
		}
		if err := b.Step(2, Int(int64(i))); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Step(3, half); err != nil {
		t.Fatal(err)
	}
	if !b.Full() {
		t.Fatal("not full with two halves and a little")
	}
	first, err := ParseBatch(b.AppendBody(nil), 1)
	if err != nil || first.First != 5 || first.Ticks != 1 || first.Steps != 1 || first.Hashes != 1 || first.LastTime != 9 {
		t.Fatalf("the closed tick: %+v, %v", first, err)
	}
	b.Cut()
	if b.OpenSteps() != 4 || b.Ticks() != 0 || b.Rows() != 0 || b.NextTick() != 6 {
		t.Fatalf("after the cut: %d open steps, %d ticks, %d row bytes, next tick %d", b.OpenSteps(), b.Ticks(), b.Rows(), b.NextTick())
	}
	b.EndTick()
	second, err := ParseBatch(b.AppendBody(nil), 1)
	if err != nil {
		t.Fatal(err)
	}
	want := []modelTick{{tick: 6, steps: []Step{{Code: 2, Params: []Value{Int(0)}}, {Code: 2, Index: 1, Params: []Value{Int(1)}}, {Code: 2, Index: 2, Params: []Value{Int(2)}}, {Code: 3, Index: 3, Params: []Value{half}}}}}
	if d := differs(readBatch(&second), want); d != "" {
		t.Error(d)
	}
}

func TestBuilderSkipsOverAGap(t *testing.T) {
	b := NewBatchBuilder(Width8, 0, 5)
	if err := b.Step(1); err != nil {
		t.Fatal(err)
	}
	b.Skip(1 << 40)
	b.EndTick()
	batch, err := ParseBatch(b.AppendBody(nil), 0)
	if err != nil || batch.First != 1<<40 || batch.Steps != 1 {
		t.Errorf("%+v, %v", batch, err)
	}
}

func TestBuilderRefusesRecordsThatAreNotDue(t *testing.T) {
	b := NewBatchBuilder(Width8, 2, 5)
	rec := TickRecord{Tick: 5, Width: Width8, Steps: 1, Commands: []byte{0, 9}}
	for name, c := range map[string]struct {
		change func(*TickRecord)
		want   error
	}{
		"a later tick":          {func(r *TickRecord) { r.Tick = 6 }, ErrOrder},
		"an earlier tick":       {func(r *TickRecord) { r.Tick = 4 }, ErrOrder},
		"a hash of other width": {func(r *TickRecord) { r.Hash = []byte{1} }, ErrStep},
		"too many row bytes":    {func(r *TickRecord) { r.Params = make([]byte, MaxRowBytes) }, ErrTickSize},
		"a wide code":           {func(r *TickRecord) { r.Width, r.Commands = Width16, []byte{0, 1, 0} }, ErrStep},
	} {
		bad := rec
		c.change(&bad)
		if err := b.Add(&bad); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
		if b.Ticks() != 0 || b.OpenSteps() != 0 {
			t.Fatalf("%s: it left a trace", name)
		}
	}
	if err := b.Add(&rec); err != nil {
		t.Fatal(err)
	}
	if err := b.Step(1); err != nil {
		t.Fatal(err)
	}
	rec.Tick = 6
	if err := b.Add(&rec); !errors.Is(err, ErrOrder) {
		t.Errorf("a record into an open tick: %v", err)
	}
}

// TestBatchLengthsThatLie puts every awkward number in place of each number
// of a body: it is refused without taking memory.
func TestBatchLengthsThatLie(t *testing.T) {
	numbers := []uint64{0, 1, 1<<31 - 1, 1<<32 - 1, 1 << 63, 1<<64 - 1}
	fields := []func(*batchParts, uint64){
		func(p *batchParts, v uint64) { p.first = v },
		func(p *batchParts, v uint64) { p.ticks = v },
		func(p *batchParts, v uint64) { p.steps = v },
		func(p *batchParts, v uint64) { p.params = v },
		func(p *batchParts, v uint64) { p.timeline[0] = v },
		func(p *batchParts, v uint64) { p.timeline[1] = v },
		func(p *batchParts, v uint64) { p.timeline[3] = v },
		func(p *batchParts, v uint64) {
			p.area, p.params = binary.BigEndian.AppendUint32([]byte{typeString}, uint32(v)), 5
			p.commands = []byte{1, 7, 0, 8, 0, 9}
		},
		func(p *batchParts, v uint64) {
			p.area, p.params = binary.BigEndian.AppendUint32([]byte{typeInts, 8}, uint32(v)), 6
			p.commands = []byte{1, 7, 0, 8, 0, 9}
		},
	}
	for i, set := range fields {
		for _, v := range append(numbers, uint64(len(goodParts().body()))+1) {
			p := goodParts()
			set(&p, v)
			body := p.body()
			var batch Batch
			var err error
			if n := testing.AllocsPerRun(1, func() { batch, err = ParseBatch(body, 2) }); n > 20 {
				t.Errorf("field %d is %d: %v allocations", i, v, n)
			}
			if err == nil {
				if ticks := readBatch(&batch); len(ticks) != batch.Ticks {
					t.Errorf("field %d is %d: %d ticks of %d", i, v, len(ticks), batch.Ticks)
				}
			} else if !errors.Is(err, ErrCorrupt) || !strings.Contains(fmt.Sprint(err), "offset") {
				t.Errorf("field %d is %d: %v", i, v, err)
			}
		}
	}
}
