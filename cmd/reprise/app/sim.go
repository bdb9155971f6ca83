package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"reprise/format"
	"reprise/player"
	"reprise/player/process"
	"reprise/player/wasm"
)

const simHelp = `

SIM is a game that this program links; exec:COMMAND, a child process reached
over a local socket named in its environment (player/process/PROTOCOL.md); or
wasm:FILE, a WebAssembly module (player/wasm/INTERFACE.md), whose build is also
"sha256:" and the SHA-256 of the file. Left out, the recorded name picks the
linked game.`

const (
	// execPrefix stands before the command line of a child process.
	execPrefix = "exec:"
	// wasmPrefix stands before the path of a WebAssembly module.
	wasmPrefix = "wasm:"
)

// simOptions are the flags that choose a simulation.
type simOptions struct {
	spec     string
	table    *simTable // picks the SIM, if there is one
	fresh    bool
	anyBuild bool
	timeout  time.Duration
	memory   uint64 // MiB
	modules  *moduleCache
}

func (o *simOptions) flags(f *pflag.FlagSet) {
	o.modules = new(moduleCache)
	f.StringVar(&o.spec, "sim", "", "the simulation: "+strings.Join(append(linked.Names(), "exec:COMMAND"), ", ")+" or wasm:FILE (default: the recorded game)")
	f.BoolVar(&o.anyBuild, "any-build", false, "play replays of other builds and other game data, too: what a change did to them shows as desync")
	f.BoolVar(&o.fresh, "fresh", false, "exec: start a new child for every replay")
	f.DurationVar(&o.timeout, "sim-timeout", 10*time.Second, "exec and wasm: how long it may take over a tick before it counts as hung")
	f.Uint64Var(&o.memory, "sim-memory", 1024, "wasm: how much memory the module may have, in MiB, up to 4096")
}

// check refuses what cannot name a simulation.
func (o *simOptions) check() error {
	if o.timeout <= 0 {
		return usagef("--sim-timeout %v: use a time above 0", o.timeout)
	}
	if o.memory < 1 || o.memory > 4096 {
		return usagef("--sim-memory %d: use a number of MiB from 1 to 4096", o.memory)
	}
	return checkSim("--sim", o.spec)
}

// checkSim checks one SIM; where names the flag or file that has it.
func checkSim(where, spec string) error {
	command, exec := strings.CutPrefix(spec, execPrefix)
	file, module := strings.CutPrefix(spec, wasmPrefix)
	names := linked.Names()
	switch {
	case module:
		return checkModule(where, file)
	case exec:
		if _, err := process.Split(command); err != nil {
			return usagef("%s: %w", where, err)
		}
	case spec != "" && !slices.Contains(names, spec):
		return usagef("%s %s: use %s, exec:COMMAND or wasm:FILE", where, printable(spec), strings.Join(names, ", "))
	}
	return nil
}

// simulations gives a simulation for one replay after the other.
type simulations struct {
	ctx    context.Context
	o      *simOptions
	output io.Writer
	// children are the processes by their SIM: each serves every replay
	// that it fits. The same goes for instances of modules.
	children  map[string]*process.Simulation
	instances map[string]*wasm.Simulation
}

func (o *simOptions) open(cmd *cobra.Command) *simulations {
	return &simulations{ctx: cmd.Context(), o: o, output: cmd.ErrOrStderr(),
		children: map[string]*process.Simulation{}, instances: map[string]*wasm.Simulation{}}
}

// specFor gives the SIM for a replay; empty means the linked game of the
// recorded name.
func (o *simOptions) specFor(meta *format.Metadata) (string, error) {
	if o.table != nil {
		return o.table.find(meta)
	}
	return o.spec, nil
}

// forReplay gives the simulation that fits, and what to do when it is not
// needed any more; the error names what was recorded and what there is.
func (s *simulations) forReplay(meta *format.Metadata) (player.Simulation, func(), error) {
	spec, err := s.o.specFor(meta)
	if err != nil {
		return nil, nil, err
	}
	switch {
	case strings.HasPrefix(spec, execPrefix):
		child, err := s.child(spec, meta)
		return child, func() {}, err
	case strings.HasPrefix(spec, wasmPrefix):
		instance, err := s.instance(spec, meta)
		return instance, func() {}, err
	}
	sim, err := s.linked(spec, meta)
	if err != nil {
		return nil, nil, err
	}
	return sim, func() { sim.Close() }, nil
}

// linked finds the linked game, of the given name if there is one.
func (s *simulations) linked(name string, meta *format.Metadata) (player.Simulation, error) {
	games := slices.Clone(linked)
	if name != "" {
		games = gamesOf(name)
	}
	game, err := games.Lookup(meta)
	if (isError[*player.BuildMismatchError](err) || isError[*player.DataMismatchError](err)) && s.o.anyBuild {
		return gamesOf(meta.Game)[0].Simulation(), nil
	}
	if err != nil {
		return nil, nameless(meta, err)
	}
	return game.Simulation(), nil
}

// gamesOf gives the linked games of one name.
func gamesOf(name string) player.Games {
	return slices.DeleteFunc(slices.Clone(linked), func(g player.Linked) bool {
		have, _ := g.Identity()
		return have != name
	})
}

// nameless explains the error for a replay that names no game.
func nameless(meta *format.Metadata, err error) error {
	if meta.Game != "" {
		return err
	}
	return fmt.Errorf("the replay does not name its game: %w", err)
}

// child gives the child process of a SIM, which it starts once.
func (s *simulations) child(spec string, meta *format.Metadata) (player.Simulation, error) {
	child := s.children[spec]
	if child == nil {
		var err error
		options := process.Options{TickTimeout: s.o.timeout, Fresh: s.o.fresh, AnyGame: s.o.anyBuild, Output: s.output}
		if child, err = process.New(s.ctx, strings.TrimPrefix(spec, execPrefix), options); err != nil {
			return nil, err
		}
		s.children[spec] = child
	}
	return child, offered(child.Offers(), meta)
}

// offered refuses a replay of a game that a simulation does not offer:
// --any-build is for other builds only.
func offered(offers []process.Offer, meta *format.Metadata) error {
	missing := &player.GameMissingError{Game: meta.Game, Build: meta.Build}
	for _, o := range offers {
		if o.Name == meta.Game || meta.Game == "" {
			return nil
		}
		missing.Present = append(missing.Present, o.Name)
	}
	return missing
}

func (s *simulations) close() error {
	var errs []error
	for _, child := range s.children {
		errs = append(errs, child.Close())
	}
	for _, instance := range s.instances {
		errs = append(errs, instance.Close())
	}
	return errors.Join(errs...)
}
