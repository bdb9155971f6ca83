package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"reprise/format"
	"reprise/player"
	"reprise/player/wasm"
)

// checkModule refuses a file that cannot be a module.
func checkModule(where, file string) error {
	info, err := os.Stat(file)
	switch {
	case file == "":
		return usagef("%s: %s names no file", where, wasmPrefix)
	case err != nil:
		return usagef("%s: %s: %w", where, printable(file), cause(err))
	case info.IsDir():
		return usagef("%s: %s is a folder", where, printable(file))
	}
	return nil
}

// moduleCache holds the modules that were compiled, for all workers. They live
// as long as the command runs.
type moduleCache struct {
	mu      sync.Mutex
	modules map[string]*wasm.Module
}

// get compiles the module of a file, once.
func (c *moduleCache) get(ctx context.Context, file string, o wasm.Options) (*wasm.Module, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m := c.modules[file]; m != nil {
		return m, nil
	}
	code, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", printable(file), cause(err))
	}
	m, err := wasm.Compile(ctx, code, o)
	if errors.Is(err, wasm.ErrModule) {
		return nil, usagef("%s: %w", printable(file), err)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", printable(file), err)
	}
	if c.modules == nil {
		c.modules = map[string]*wasm.Module{}
	}
	c.modules[file] = m
	return m, nil
}

// lockedWriter lets the instances of several workers write to one output.
type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

// instance gives the instance of a module's SIM, which is made once.
func (s *simulations) instance(spec string, meta *format.Metadata) (player.Simulation, error) {
	m, err := s.o.modules.get(s.ctx, strings.TrimPrefix(spec, wasmPrefix), wasm.Options{
		Memory: s.o.memory << 20, TickTimeout: s.o.timeout, AnyGame: s.o.anyBuild, Output: &lockedWriter{w: s.output},
	})
	if err != nil {
		return nil, err
	}
	if s.instances[spec] == nil {
		s.instances[spec] = m.New()
	}
	return s.instances[spec], offered(m.Offers(), meta)
}
