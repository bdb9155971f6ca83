package format

import "testing"

// benchSteps makes an array of steps with three small integers each.
func benchSteps(n int) *ReplayArray {
	a := NewArray(Options{Width: Width16, StepCapacity: n, ParamCapacity: 9 * n, MaxSteps: n, MaxParamBytes: 9 * n})
	for i := range n {
		a.Add(uint16(i&0xff), Int(int64(i&0x7f)), Int(int64(i&0x3fff)+200), Int(int64(i&7)))
	}
	return a
}

func BenchmarkAdd(b *testing.B) {
	const room = 1 << 14
	a := NewArray(Options{Width: Width16, StepCapacity: room, ParamCapacity: 32 * room})
	i := 0
	b.ReportAllocs()
	for b.Loop() {
		if a.Len() == room {
			a.Clear()
		}
		a.Add(uint16(i&0xff), Int(int64(i&0x7f)), Int(int64(i&0x3fff)+200), Int(int64(i&7)))
		i++
	}
}

// mixedInts are integers of every width in an order that no branch predictor
// learns.
func mixedInts(n int) []int64 {
	x := uint64(88172645463325252)
	list := make([]int64, n)
	for i := range list {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		list[i] = int64(x) >> (8 * (x & 7))
	}
	return list
}

func BenchmarkAddMixedWidths(b *testing.B) {
	const room = 1 << 14
	a := NewArray(Options{Width: Width16, StepCapacity: room, ParamCapacity: 32 * room})
	list := mixedInts(1 << 12)
	i := 0
	b.ReportAllocs()
	for b.Loop() {
		if a.Len() == room {
			a.Clear()
		}
		k := i & (len(list) - 4)
		a.Add(uint16(i), Int(list[k]), Int(list[k+1]), Int(list[k+2]))
		i += 3
	}
}

func BenchmarkAddString(b *testing.B) {
	const room = 1 << 14
	a := NewArray(Options{Width: Width16, StepCapacity: room, ParamCapacity: 64 * room})
	b.ReportAllocs()
	for b.Loop() {
		if a.Len() == room {
			a.Clear()
		}
		a.Add(7, Int(3), String("attack at dawn"))
	}
}

func BenchmarkRead(b *testing.B) {
	benchmarkRead(b, benchSteps(8000))
}

func BenchmarkReadMixedWidths(b *testing.B) {
	a := NewArray(Options{Width: Width16})
	list := mixedInts(24000)
	for i := 0; i < len(list); i += 3 {
		a.Add(uint16(i), Int(list[i]), Int(list[i+1]), Int(list[i+2]))
	}
	benchmarkRead(b, a)
}

func benchmarkRead(b *testing.B, a *ReplayArray) {
	s := a.Stream(0)
	var sum int64
	b.ReportAllocs()
	for b.Loop() {
		step, ok := s.Read()
		if !ok {
			s.index, s.at = 0, 0
			continue
		}
		x, _ := step.Params[1].Int64()
		sum += x
	}
	if sum == 0 {
		b.Fatal("nothing was read")
	}
}

func BenchmarkReadInto(b *testing.B) {
	s := benchSteps(8000).Stream(0)
	var step Step
	var sum int64
	b.ReportAllocs()
	for b.Loop() {
		if !s.ReadInto(&step) {
			s.index, s.at = 0, 0
			continue
		}
		x, _ := step.Params[1].Int64()
		sum += x
	}
	if sum == 0 {
		b.Fatal("nothing was read")
	}
}

func BenchmarkLoadStateMillion(b *testing.B) {
	s := benchSteps(1_000_000).SaveState()
	a := NewArray(Options{})
	b.ReportAllocs()
	for b.Loop() {
		if err := a.LoadState(s); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N), "ms/load")
}

func BenchmarkAppendState(b *testing.B) {
	s := benchSteps(100).SaveState()
	a := NewArray(Options{Width: Width16, StepCapacity: 1 << 16, ParamCapacity: 1 << 20})
	b.ReportAllocs()
	for b.Loop() {
		if a.Len() > 60_000 {
			a.Clear()
		}
		if err := a.AppendState(s); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkParamsLength(b *testing.B) {
	area := benchSteps(1000).ParamArea()
	b.SetBytes(int64(len(area)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ParamsLength(area, 3000); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkParseParam(b *testing.B) {
	area := benchSteps(1000).ParamArea()
	b.ReportAllocs()
	at := 0
	for b.Loop() {
		_, n, err := ParseParam(area[at:])
		if err != nil {
			b.Fatal(err)
		}
		if at += n; at == len(area) {
			at = 0
		}
	}
}
