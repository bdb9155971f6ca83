package wasm

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/sys"

	"reprise/player/process"
)

// instance is one life of a module, from its start or from a snapshot on.
type instance struct {
	module  api.Module
	world   world
	ctx     context.Context
	watch   *watch
	stop    api.MutableGlobal
	globals []api.MutableGlobal
	message api.Function
	stack   [1]uint64
	// buffer is where messages go, and room is its size.
	buffer, room uint32
	// starved is the memory that was refused; 0 where none was.
	starved uint64
}

// fault is a call of a module that did not end well.
type fault struct {
	// what says what the module did, err more of it.
	what string
	err  error
}

func (f *fault) Error() string {
	if f.err == nil {
		return f.what
	}
	return f.what + ": " + f.err.Error()
}

func (f *fault) Unwrap() error { return f.err }

// instantiate makes an instance whose memory is as the file says; nothing of
// the module has run.
func (m *Module) instantiate(log *outputLog, w *watch) (*instance, error) {
	in := &instance{watch: w, world: world{log: log}}
	ctx := context.WithValue(context.WithoutCancel(m.ctx), worldKey{}, &in.world)
	in.ctx = ctx
	ctx = experimental.WithMemoryAllocator(ctx, in.allocate(m.o.Memory))
	module, err := m.runtime.InstantiateModule(ctx, m.compiled, wazero.NewModuleConfig().WithName("").WithStartFunctions())
	if err != nil {
		return nil, &fault{"could not be instantiated", err}
	}
	in.module = module
	in.stop = mutable(module, stopExport)
	for _, name := range m.code.names {
		in.globals = append(in.globals, mutable(module, name))
	}
	in.message = module.ExportedFunction(messageExport)
	if err := in.checkTypes(); err != nil {
		in.close()
		return nil, err
	}
	return in, nil
}

// mutable finds a global that the host itself exported.
func mutable(m api.Module, name string) api.MutableGlobal {
	return m.ExportedGlobal(name).(api.MutableGlobal)
}

func (in *instance) checkTypes() error {
	for name, params := range map[string][]api.ValueType{bufferExport: {i32}, messageExport: {i32}, startExport: nil, initializeExport: nil} {
		f := in.module.ExportedFunction(name)
		if f == nil {
			continue
		}
		results := []api.ValueType{i32}
		if params == nil {
			results = nil
		}
		d := f.Definition()
		if string(d.ParamTypes()) != string(params) || string(d.ResultTypes()) != string(results) {
			return fmt.Errorf("%w: the function %q has another type than INTERFACE.md says", ErrModule, name)
		}
	}
	return nil
}

// begin runs what a module runs before anything else.
func (in *instance) begin() error {
	for _, name := range [...]string{startExport, initializeExport} {
		if f := in.module.ExportedFunction(name); f != nil {
			if err := in.call(f, startFactor, nil); err != nil {
				return err
			}
		}
	}
	return nil
}

// call calls a function of the module. The error is a fault.
func (in *instance) call(f api.Function, factor int64, stack []uint64) error {
	in.watch.enter(&in.stop, factor)
	err := f.CallWithStack(in.ctx, stack)
	switch {
	case !in.watch.leave():
		return &fault{what: "did not answer in time"}
	case in.starved > 0:
		return &fault{what: fmt.Sprintf("needs more memory than it may have: it asked for %s", mebibytes(in.starved))}
	case err == nil:
		return nil
	}
	return callFault(err)
}

// callFault tells what ended a call.
func callFault(err error) *fault {
	var exit *sys.ExitError
	if errors.As(err, &exit) {
		return &fault{what: fmt.Sprintf("ended with status %d", exit.ExitCode())}
	}
	text, _, _ := strings.Cut(err.Error(), "\n")
	return &fault{"trapped", errors.New(strings.TrimPrefix(text, "wasm error: "))}
}

// send gives the module a message and returns its answer, which is valid until
// the next call.
func (in *instance) send(message []byte, factor int64) ([]byte, error) {
	if err := in.reserve(len(message)); err != nil {
		return nil, err
	}
	memory := in.module.Memory()
	if !memory.Write(in.buffer, message) {
		return nil, &fault{what: fmt.Sprintf("gave a buffer of %d bytes at %#x, outside of its memory", in.room, in.buffer)}
	}
	in.stack[0] = uint64(len(message))
	if err := in.call(in.message, factor, in.stack[:]); err != nil {
		return nil, err
	}
	return in.answer(uint32(in.stack[0]))
}

// answer reads the message at an address.
func (in *instance) answer(at uint32) ([]byte, error) {
	memory := in.module.Memory()
	head, ok := memory.Read(at, process.HeadBytes)
	if !ok {
		return nil, &fault{what: fmt.Sprintf("gave an answer at %#x, outside of its memory", at)}
	}
	length, err := process.MessageLength(head)
	if err != nil {
		return nil, &fault{"answered badly", err}
	}
	answer, ok := memory.Read(at, uint32(length))
	if !ok {
		return nil, &fault{what: fmt.Sprintf("gave an answer of %d bytes at %#x, outside of its memory", length, at)}
	}
	return answer, nil
}

// leastRoom is the size of the first buffer that is asked for.
const leastRoom = 4 << 10

// reserve asks the module for a larger buffer where the present one is too
// small for a message of n bytes.
func (in *instance) reserve(n int) error {
	if uint64(n) <= uint64(in.room) {
		return nil
	}
	room := uint64(leastRoom)
	for room < uint64(n) {
		room *= 2
	}
	in.stack[0] = room
	if err := in.call(in.module.ExportedFunction(bufferExport), startFactor, in.stack[:]); err != nil {
		return err
	}
	in.buffer, in.room = uint32(in.stack[0]), uint32(room)
	if in.buffer == 0 {
		in.room = 0
		return &fault{what: fmt.Sprintf("has no buffer of %d bytes", room)}
	}
	return nil
}

func (in *instance) close() {
	// Closing frees memory alone.
	_ = in.module.Close(context.WithoutCancel(in.ctx))
}
