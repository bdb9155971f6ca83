package wasm

import (
	"bytes"
	"encoding/binary"
	"math"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero/api"

	"reprise/format"
)

// worldAndMemory gives a world and a memory of 128 KiB for its calls.
func worldAndMemory(t *testing.T) (*world, api.Memory) {
	t.Helper()
	s := simulate(t, compile(t, assemble(parts{}), Options{}))
	if err := firstTick(t, s); err != nil {
		t.Fatal(err)
	}
	return &world{log: new(outputLog)}, s.instance.module.Memory()
}

func call(t *testing.T, w *world, m api.Memory, name string, want uint32, args ...uint64) {
	t.Helper()
	if got := wasiCalls[name].do(w, m, append(args, 0)); got != want {
		t.Errorf("%s%v: error number %d, want %d", name, args, got, want)
	}
}

func TestTickTime(t *testing.T) {
	for _, c := range []struct {
		tick format.Tick
		rate format.Rate
		want uint64
	}{
		{0, format.Rate{Num: 20, Den: 1}, 0},
		{3, format.Rate{Num: 20, Den: 1}, 150_000_000},
		{1, format.Rate{Num: 112, Den: 5}, 44_642_857},
		{112_000_000_000, format.Rate{Num: 112, Den: 5}, 5_000_000_000 * second},
		{7, format.Rate{}, 7 * second},
		{math.MaxUint64, format.Rate{Num: 1, Den: math.MaxUint32}, math.MaxInt64},
		{math.MaxUint64, format.Rate{Num: 1, Den: 1}, math.MaxInt64},
	} {
		if got := tickTime(c.tick, c.rate); got != c.want {
			t.Errorf("tick %d at %s: %d, want %d", c.tick, c.rate, got, c.want)
		}
	}
}

func TestClock(t *testing.T) {
	w, m := worldAndMemory(t)
	w.begin(1, format.Rate{Num: 20, Den: 1})
	w.tick(10)
	read := func(clock uint64) uint64 {
		t.Helper()
		call(t, w, m, "clock_time_get", wasiOK, clock, 0, 8)
		v, _ := m.ReadUint64Le(8)
		return v
	}
	if got := read(clockMonotonic); got != second/2+glance {
		t.Errorf("in tick 10 it is %d", got)
	}
	if got := read(clockReal); got != epoch+second/2+2*glance {
		t.Errorf("by the calendar it is %d", got)
	}
	// Waiting moves the clock, and the next tick does not move it back.
	sleep := make([]byte, 2*subscriptionBytes)
	binary.LittleEndian.PutUint64(sleep, 77)
	binary.LittleEndian.PutUint32(sleep[16:], clockMonotonic)
	binary.LittleEndian.PutUint64(sleep[24:], 5*second)
	copy(sleep[subscriptionBytes:], sleep[:subscriptionBytes])
	binary.LittleEndian.PutUint64(sleep[subscriptionBytes:], 78)
	binary.LittleEndian.PutUint64(sleep[subscriptionBytes+24:], 3*second)
	m.Write(1000, sleep)
	call(t, w, m, "poll_oneoff", wasiOK, 1000, 2000, 2, 3000)
	if user, _ := m.ReadUint64Le(2000); user != 78 {
		t.Errorf("the event is that of %d", user)
	}
	w.tick(11)
	if got := read(clockMonotonic); got != second/2+3*second+3*glance {
		t.Errorf("after waiting it is %d", got)
	}
	// An absolute time that is past is not waited for.
	binary.LittleEndian.PutUint16(sleep[40:], absoluteTime)
	binary.LittleEndian.PutUint32(sleep[16:], clockReal)
	binary.LittleEndian.PutUint64(sleep[24:], epoch+5)
	m.Write(1000, sleep)
	before := w.now
	call(t, w, m, "poll_oneoff", wasiOK, 1000, 2000, 1, 3000)
	if w.now != before {
		t.Errorf("the clock moved by %d", w.now-before)
	}
	call(t, w, m, "poll_oneoff", wasiInval, 1000, 2000, 0, 3000)
	call(t, w, m, "poll_oneoff", wasiFault, 1000, 1<<17-8, 1, 3000)
	sleep[8] = 1 // a read
	m.Write(1000, sleep)
	call(t, w, m, "poll_oneoff", wasiNoCall, 1000, 2000, 1, 3000)
	call(t, w, m, "clock_time_get", wasiInval, 2, 0, 8)
	call(t, w, m, "clock_time_get", wasiFault, 0, 0, 1<<17-7)
	call(t, w, m, "clock_res_get", wasiOK, 0, 8)
	call(t, w, m, "clock_res_get", wasiInval, 3, 8)
}

func TestRandomFollowsFromSeedAndTick(t *testing.T) {
	w, m := worldAndMemory(t)
	draw := func(seed uint64, tick format.Tick) string {
		w.begin(seed, format.Rate{})
		w.tick(tick)
		call(t, w, m, "random_get", wasiOK, 100, 13)
		b, _ := m.Read(100, 13)
		return string(b)
	}
	seen := map[string]bool{}
	for seed := range uint64(8) {
		for tick := range format.Tick(8) {
			seen[draw(seed, tick)] = true
		}
	}
	if len(seen) != 64 {
		t.Errorf("%d different draws of 64", len(seen))
	}
	if first := draw(3, 4); draw(3, 4) != first {
		t.Error("the same seed and tick give two draws")
	}
	call(t, w, m, "random_get", wasiFault, 1<<17-4, 5)
}

func TestOutputIsBounded(t *testing.T) {
	w, m := worldAndMemory(t)
	var out bytes.Buffer
	w.log.out = &out
	w.log.begin()
	m.Write(200, bytes.Repeat([]byte("line\n"), 2000))
	binary.LittleEndian.PutUint32(fourBytes(m, 100), 200)
	binary.LittleEndian.PutUint32(fourBytes(m, 104), 10_000)
	for range 200 {
		call(t, w, m, "fd_write", wasiOK, 1, 100, 1, 96)
	}
	if n, _ := m.ReadUint32Le(96); n != 10_000 {
		t.Errorf("%d bytes are said to be written", n)
	}
	if out.Len() < mostLogged || out.Len() > mostLogged+200 || !strings.HasSuffix(out.String(), "the rest is dropped)\n") {
		t.Errorf("%d bytes were passed on", out.Len())
	}
	if lines := w.log.lines(); len(lines) != lastLines || lines[0] != "line" || len(w.log.last) > lastBytes {
		t.Errorf("%d last lines, %d bytes", len(lines), len(w.log.last))
	}
	call(t, w, m, "fd_write", wasiBadFD, 3, 100, 1, 96)
	call(t, w, m, "fd_write", wasiFault, 2, 1<<17-4, 1, 96)
	call(t, w, m, "fd_fdstat_get", wasiOK, 1, 500)
	call(t, w, m, "fd_fdstat_get", wasiBadFD, 3, 500)
	call(t, w, m, "fd_prestat_get", wasiBadFD, 3, 500)
	for _, name := range []string{"args_sizes_get", "environ_sizes_get"} {
		call(t, w, m, name, wasiOK, 600, 604)
		if n, _ := m.ReadUint64Le(600); n != 0 {
			t.Errorf("%s gives %#x", name, n)
		}
	}
}

// fourBytes gives four bytes of a memory to write to.
func fourBytes(m api.Memory, at uint32) []byte {
	b, _ := m.Read(at, 4)
	return b
}

// TestNoFiles: what is not there answers so, and does not end the module.
func TestNoFiles(t *testing.T) {
	p := parts{imports: []string{"path_open"}, globals: []string{str(valueI32, 1, constant(0), opEnd)},
		onTick: []byte(str(constant(1), opCall, 0, opGlobalSet, 0))}
	s := simulate(t, compile(t, assemble(p), Options{}))
	if err := firstTick(t, s); err != nil {
		t.Fatal(err)
	}
	if got := s.instance.globals[0].Get(); got != wasiNoCall {
		t.Errorf("path_open answers %d", got)
	}
}
