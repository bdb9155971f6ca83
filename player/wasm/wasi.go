package wasm

import (
	"context"
	"encoding/binary"
	"math"
	"math/bits"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/sys"

	"reprise/format"
)

// Error numbers of WASI.
const (
	wasiOK     = 0
	wasiBadFD  = 8
	wasiFault  = 21
	wasiInval  = 28
	wasiNoCall = 52
)

// world is all that a module sees of the world beside the messages. It follows
// from the seed and the ticks alone.
type world struct {
	// now is the time in nanoseconds. It is part of the state.
	now uint64
	// random is the state of the random source, set anew by every tick.
	random uint64
	seed   uint64
	rate   format.Rate
	log    *outputLog
}

const (
	// epoch is when tick 0 begins by the calendar: the year 2000.
	epoch = 946_684_800_000_000_000
	// glance is by how much the clock moves when it is looked at.
	glance = 1000
	second = 1_000_000_000
)

// begin starts the world of a replay before its first message.
func (w *world) begin(seed uint64, rate format.Rate) {
	w.seed, w.rate = seed, rate
	w.random = scramble(seed)
}

// tick moves the world on to a tick. The clock never goes back.
func (w *world) tick(t format.Tick) {
	w.now = max(w.now, tickTime(t, w.rate))
	w.random = scramble(w.seed ^ scramble(uint64(t)+1))
}

// tickTime is when a tick begins, in nanoseconds. A tick of a game without a
// clock takes a second.
func tickTime(t format.Tick, rate format.Rate) uint64 {
	num, den := uint64(rate.Num), uint64(rate.Den)
	if num == 0 || den == 0 {
		num, den = 1, 1
	}
	high, low := bits.Mul64(uint64(t), den*second)
	if high >= num {
		return math.MaxInt64
	}
	ns, _ := bits.Div64(high, low, num)
	return min(ns, math.MaxInt64)
}

// scramble is a bijection that spreads what is near.
func scramble(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

func (w *world) fill(b []byte) {
	var word [8]byte
	for len(b) > 0 {
		w.random += 0x9e3779b97f4a7c15
		binary.LittleEndian.PutUint64(word[:], scramble(w.random))
		b = b[copy(b, word[:]):]
	}
}

// wasiCall is a function of WASI; its arguments are on the stack, and so is
// its result.
type wasiCall struct {
	params []api.ValueType
	do     func(w *world, m api.Memory, args []uint64) uint32
}

const (
	i32 = api.ValueTypeI32
	i64 = api.ValueTypeI64
)

// wasiCalls are the functions that do something. All others answer that they
// are not there.
var wasiCalls = map[string]wasiCall{
	"args_sizes_get":    {[]api.ValueType{i32, i32}, wasiNothing},
	"args_get":          {[]api.ValueType{i32, i32}, func(*world, api.Memory, []uint64) uint32 { return wasiOK }},
	"environ_sizes_get": {[]api.ValueType{i32, i32}, wasiNothing},
	"environ_get":       {[]api.ValueType{i32, i32}, func(*world, api.Memory, []uint64) uint32 { return wasiOK }},
	"clock_res_get":     {[]api.ValueType{i32, i32}, wasiResolution},
	"clock_time_get":    {[]api.ValueType{i32, i64, i32}, wasiTime},
	"random_get":        {[]api.ValueType{i32, i32}, wasiRandom},
	"sched_yield":       {nil, func(*world, api.Memory, []uint64) uint32 { return wasiOK }},
	"poll_oneoff":       {[]api.ValueType{i32, i32, i32, i32}, wasiPoll},
	"fd_write":          {[]api.ValueType{i32, i32, i32, i32}, wasiWrite},
	"fd_fdstat_get":     {[]api.ValueType{i32, i32}, wasiStat},
	"fd_prestat_get":    {[]api.ValueType{i32, i32}, func(*world, api.Memory, []uint64) uint32 { return wasiBadFD }},
}

// wasiNothing: there are no arguments, and no environment.
func wasiNothing(_ *world, m api.Memory, args []uint64) uint32 {
	if !m.WriteUint32Le(uint32(args[0]), 0) || !m.WriteUint32Le(uint32(args[1]), 0) {
		return wasiFault
	}
	return wasiOK
}

const (
	clockReal      = 0
	clockMonotonic = 1
)

func wasiResolution(_ *world, m api.Memory, args []uint64) uint32 {
	if uint32(args[0]) > clockMonotonic {
		return wasiInval
	}
	if !m.WriteUint64Le(uint32(args[1]), glance) {
		return wasiFault
	}
	return wasiOK
}

func wasiTime(w *world, m api.Memory, args []uint64) uint32 {
	clock := uint32(args[0])
	if clock > clockMonotonic {
		return wasiInval
	}
	w.now += glance
	t := w.now
	if clock == clockReal {
		t += epoch
	}
	if !m.WriteUint64Le(uint32(args[2]), t) {
		return wasiFault
	}
	return wasiOK
}

func wasiRandom(w *world, m api.Memory, args []uint64) uint32 {
	b, ok := m.Read(uint32(args[0]), uint32(args[1]))
	if !ok {
		return wasiFault
	}
	w.fill(b)
	return wasiOK
}

// A subscription of poll_oneoff and its event.
const (
	subscriptionBytes = 48
	eventBytes        = 32
	subscribedClock   = 0
	absoluteTime      = 1
)

// wasiPoll answers who waits for a time: the clock moves on by as much, and
// nobody waits. There is nothing else to wait for.
func wasiPoll(w *world, m api.Memory, args []uint64) uint32 {
	in, out, n := uint32(args[0]), uint32(args[1]), uint32(args[2])
	if n == 0 || n > 1024 {
		return wasiInval
	}
	subscriptions, ok := m.Read(in, n*subscriptionBytes)
	events, fits := m.Read(out, n*eventBytes)
	if !ok || !fits {
		return wasiFault
	}
	first, wait := -1, uint64(math.MaxUint64)
	for i := range int(n) {
		if d, isClock := w.waits(subscriptions[i*subscriptionBytes:]); isClock && d < wait {
			first, wait = i, d
		}
	}
	if first < 0 {
		return wasiNoCall
	}
	w.now = min(w.now+wait, math.MaxInt64)
	clear(events[:eventBytes])
	copy(events[:8], subscriptions[first*subscriptionBytes:])
	if !m.WriteUint32Le(uint32(args[3]), 1) {
		return wasiFault
	}
	return wasiOK
}

// waits gives the time that a subscription waits for, from now on.
func (w *world) waits(s []byte) (wait uint64, isClock bool) {
	le := binary.LittleEndian
	clock, timeout := le.Uint32(s[16:]), min(le.Uint64(s[24:]), math.MaxInt64)
	if s[8] != subscribedClock || clock > clockMonotonic {
		return 0, false
	}
	if le.Uint16(s[40:])&absoluteTime == 0 {
		return timeout, true
	}
	if clock == clockReal {
		timeout -= min(timeout, epoch)
	}
	return timeout - min(timeout, w.now), true
}

// wasiWrite takes what is written to standard output and error.
func wasiWrite(w *world, m api.Memory, args []uint64) uint32 {
	if fd := uint32(args[0]); fd != 1 && fd != 2 {
		return wasiBadFD
	}
	at, written := uint32(args[1]), uint32(0)
	for range uint32(args[2]) {
		address, ok := m.ReadUint32Le(at)
		length, fits := m.ReadUint32Le(at + 4)
		if !ok || !fits {
			return wasiFault
		}
		b, ok := m.Read(address, length)
		if !ok {
			return wasiFault
		}
		w.log.write(b)
		written += length
		at += 8
	}
	if !m.WriteUint32Le(uint32(args[3]), written) {
		return wasiFault
	}
	return wasiOK
}

// wasiStat: the three standard streams are devices, and nothing else is open.
func wasiStat(_ *world, m api.Memory, args []uint64) uint32 {
	const (
		statBytes       = 24
		characterDevice = 2
		allRights       = math.MaxUint64
	)
	if uint32(args[0]) > 2 {
		return wasiBadFD
	}
	b, ok := m.Read(uint32(args[1]), statBytes)
	if !ok {
		return wasiFault
	}
	clear(b)
	b[0] = characterDevice
	binary.LittleEndian.PutUint64(b[8:], allRights)
	return wasiOK
}

// worldKey is where a call's context holds the world.
type worldKey struct{}

// provide makes the functions that a module imports.
func provide(ctx context.Context, r wazero.Runtime, imports []api.FunctionDefinition) error {
	host := r.NewHostModuleBuilder(wasiModule)
	made := map[string]bool{}
	for _, d := range imports {
		_, name, _ := d.Import()
		if made[name] {
			continue
		}
		made[name] = true
		host.NewFunctionBuilder().WithGoModuleFunction(wasiFunction(name, d), d.ParamTypes(), d.ResultTypes()).Export(name)
	}
	if len(made) == 0 {
		return nil
	}
	_, err := host.Instantiate(ctx)
	return err
}

// wasiFunction finds the function for an import.
func wasiFunction(name string, d api.FunctionDefinition) api.GoModuleFunc {
	call, known := wasiCalls[name]
	switch {
	case name == "proc_exit" && len(d.ParamTypes()) == 1:
		return func(_ context.Context, _ api.Module, stack []uint64) { panic(sys.NewExitError(uint32(stack[0]))) }
	case known && string(call.params) == string(d.ParamTypes()) && len(d.ResultTypes()) == 1:
		return func(ctx context.Context, m api.Module, stack []uint64) {
			stack[0] = uint64(call.do(ctx.Value(worldKey{}).(*world), m.Memory(), stack))
		}
	case len(d.ResultTypes()) == 1:
		return func(_ context.Context, _ api.Module, stack []uint64) { stack[0] = wasiNoCall }
	}
	return func(context.Context, api.Module, []uint64) {}
}
