package wasm

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental"

	"reprise/player"
	"reprise/player/process"
)

// Options says how modules are run. The zero Options are good.
type Options struct {
	// Memory bounds the memory of a module, in bytes; 0 means 1 GiB. A
	// module that asks for more fails: what it would do without must not
	// depend on who plays.
	Memory uint64
	// TickTimeout is how long a module may take over a tick; 0 means 10
	// seconds. It has six times as long to start a replay.
	TickTimeout time.Duration
	// AnyGame plays replays of other games and builds than the module's;
	// where they do differ, that shows as desync.
	AnyGame bool
	// Output takes what modules write to standard output and error, at most
	// 1 MiB of each replay; nil drops it. Simulations that run at the same
	// time write to it at the same time.
	Output io.Writer
}

const (
	defaultMemory = 1 << 30
	mostMemory    = 4<<30 - wasmPage // the engine counts bytes in 32 bits
	defaultTick   = 10 * time.Second
	// startFactor is how much longer than a tick a start may take.
	startFactor = 6
)

// Module is a compiled game. Any number of simulations of it may run at the
// same time.
type Module struct {
	ctx      context.Context
	o        Options
	build    string
	digest   [sha256.Size]byte
	code     *rewritten
	runtime  wazero.Runtime
	compiled wazero.CompiledModule
	offers   []process.Offer
	program  string
}

// BuildPrefix begins the build that a module has by its bytes alone: the
// SHA-256 of the file follows in hexadecimal.
const BuildPrefix = "sha256:"

// Compile compiles a module and asks it for its games. The module lives until
// Close. The error wraps ErrModule, or is a player.SimulationError where the
// module fails as it is asked. When ctx is done, calls of the module end.
func Compile(ctx context.Context, file []byte, o Options) (*Module, error) {
	if o.Memory == 0 {
		o.Memory = defaultMemory
	}
	o.Memory = min(o.Memory, mostMemory)
	if o.TickTimeout == 0 {
		o.TickTimeout = defaultTick
	}
	m := &Module{ctx: ctx, o: o, digest: sha256.Sum256(file)}
	m.build = BuildPrefix + hex.EncodeToString(m.digest[:])
	var err error
	if m.code, err = rewrite(file); err != nil {
		return nil, err
	}
	if err := m.checkMemory(); err != nil {
		return nil, err
	}
	m.runtime = wazero.NewRuntime(ctx)
	if err := m.prepare(); err != nil {
		_ = m.Close()
		return nil, err
	}
	return m, nil
}

func (m *Module) checkMemory() error {
	if need := uint64(m.code.least) * wasmPage; need > m.o.Memory {
		return fmt.Errorf("%w: it begins with %s of memory, the limit is %s", ErrModule, mebibytes(need), mebibytes(m.o.Memory))
	}
	return nil
}

func mebibytes(n uint64) string { return fmt.Sprintf("%d MiB", (n+1<<20-1)>>20) }

// prepare compiles and asks for the games.
func (m *Module) prepare() error {
	var err error
	if m.compiled, err = m.runtime.CompileModule(m.ctx, m.code.file); err != nil {
		return fmt.Errorf("%w: %w", ErrModule, err)
	}
	if err := provide(m.ctx, m.runtime, m.compiled.ImportedFunctions()); err != nil {
		return fmt.Errorf("%w: %w", ErrModule, err)
	}
	first := m.New()
	defer func() { _ = first.Close() }()
	if err := first.open(); err != nil {
		return err
	}
	m.offers, m.program = first.dialogue.Offers(), first.dialogue.Program()
	return nil
}

// Build is the build that the module has by its bytes: "sha256:…".
func (m *Module) Build() string { return m.build }

// Offers gives the games that the module offers. A replay fits a game of its
// name where the recorded build is the offered one, or Build.
func (m *Module) Offers() []process.Offer { return m.offers }

// Program is what the module says of itself: its engine and version.
func (m *Module) Program() string { return m.program }

// Snapshots is nil where the state of the module can be kept and restored; the
// error is or wraps player.ErrUnable and says why not.
func (m *Module) Snapshots() error {
	if m.code.unable == "" {
		return nil
	}
	return fmt.Errorf("%w: %s", player.ErrUnable, m.code.unable)
}

// New makes a simulation. It must be closed before the module is.
func (m *Module) New() *Simulation {
	s := &Simulation{module: m, broken: errNoReset, log: outputLog{out: m.o.Output}, watch: newWatch(m.ctx, m.o.TickTimeout)}
	s.dialogue.Build, s.dialogue.AnyGame = m.build, m.o.AnyGame
	return s
}

// Close frees the module.
func (m *Module) Close() error { return m.runtime.Close(context.WithoutCancel(m.ctx)) }

// wasmPage is the unit in which memory grows.
const wasmPage = 64 << 10

// allocate makes the memory of an instance, whose growth stops at a limit.
func (in *instance) allocate(limit uint64) experimental.MemoryAllocatorFunc {
	return func(_, most uint64) experimental.LinearMemory {
		return &linearMemory{in: in, most: min(most, limit)}
	}
}

// linearMemory is the memory of an instance.
type linearMemory struct {
	in   *instance
	b    []byte
	most uint64
}

// Reallocate grows the memory to size bytes; new ones are 0.
func (l *linearMemory) Reallocate(size uint64) []byte {
	if size > l.most {
		l.in.starved = size
		return nil
	}
	if size > uint64(cap(l.b)) {
		room := size
		if len(l.b) > 0 {
			room = min(size+size/4, l.most)
		}
		grown := make([]byte, size, room)
		copy(grown, l.b)
		l.b = grown
	}
	l.b = l.b[:size]
	return l.b
}

// Free lets the memory go.
func (l *linearMemory) Free() { l.b = nil }
