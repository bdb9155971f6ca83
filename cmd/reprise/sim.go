package main

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
	"reprise/player/games/skirmish"
	"reprise/player/games/tower"
	"reprise/player/process"
)

// linkedGames are the games in this program.
func linkedGames() player.Games { return player.Games{skirmish.Factory(), tower.Factory()} }

const simHelp = `

SIM is a linked game (skirmish, tower), or exec:COMMAND, a child process reached
over a local socket named in its environment (player/process/PROTOCOL.md). Left
out, the recorded name picks the linked game.`

// execPrefix stands before the command line of a child process.
const execPrefix = "exec:"

// simOptions are the flags that choose a simulation.
type simOptions struct {
	spec     string
	table    *simTable // picks the SIM, if there is one
	fresh    bool
	anyBuild bool
	timeout  time.Duration
}

func (o *simOptions) flags(f *pflag.FlagSet) {
	f.StringVar(&o.spec, "sim", "", "the simulation: skirmish, tower or exec:COMMAND (default: the recorded game)")
	f.BoolVar(&o.anyBuild, "any-build", false, "play replays of other builds, too: what a change did to them shows as desync")
	f.BoolVar(&o.fresh, "fresh", false, "exec: start a new child for every replay")
	f.DurationVar(&o.timeout, "sim-timeout", 10*time.Second, "exec: how long the child may take over a tick before it counts as hung")
}

// check refuses what cannot name a simulation.
func (o *simOptions) check() error {
	if o.timeout <= 0 {
		return usagef("--sim-timeout %v: use a time above 0", o.timeout)
	}
	return checkSim("--sim", o.spec)
}

// checkSim checks one SIM; where names the flag or file that has it.
func checkSim(where, spec string) error {
	command, exec := strings.CutPrefix(spec, execPrefix)
	names := linkedGames().Names()
	switch {
	case exec:
		if _, err := process.Split(command); err != nil {
			return usagef("%s: %w", where, err)
		}
	case spec != "" && !slices.Contains(names, spec):
		return usagef("%s %s: use %s, or exec:COMMAND", where, printable(spec), strings.Join(names, ", "))
	}
	return nil
}

// simulations gives a simulation for one replay after the other.
type simulations struct {
	ctx    context.Context
	o      *simOptions
	output io.Writer
	// children are the processes by their SIM: each serves every replay
	// that it fits.
	children map[string]*process.Simulation
}

func (o *simOptions) open(cmd *cobra.Command) *simulations {
	return &simulations{ctx: cmd.Context(), o: o, output: cmd.ErrOrStderr(), children: map[string]*process.Simulation{}}
}

// forReplay gives the simulation that fits, and what to do when it is not
// needed any more; the error names what was recorded and what there is.
func (s *simulations) forReplay(meta *format.Metadata) (player.Simulation, func(), error) {
	spec := s.o.spec
	if s.o.table != nil {
		var err error
		if spec, err = s.o.table.find(meta); err != nil {
			return nil, nil, err
		}
	}
	if strings.HasPrefix(spec, execPrefix) {
		child, err := s.child(spec, meta)
		return child, func() {}, err
	}
	sim, err := s.linked(spec, meta)
	if err != nil {
		return nil, nil, err
	}
	return sim, func() { sim.Close() }, nil
}

// linked finds the linked game, of the given name if there is one.
func (s *simulations) linked(name string, meta *format.Metadata) (player.Simulation, error) {
	games := linkedGames()
	if name != "" {
		games = gamesOf(name)
	}
	game, err := games.Lookup(meta)
	if isError[*player.BuildMismatchError](err) && s.o.anyBuild {
		return gamesOf(meta.Game)[0].Simulation(), nil
	}
	if err != nil {
		return nil, nameless(meta, err)
	}
	return game.Simulation(), nil
}

// gamesOf gives the linked games of one name.
func gamesOf(name string) player.Games {
	return slices.DeleteFunc(linkedGames(), func(g player.Linked) bool {
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
	return child, offers(child, meta)
}

// offers refuses a replay of a game that the child does not have: --any-build
// is for other builds only.
func offers(child *process.Simulation, meta *format.Metadata) error {
	missing := &player.GameMissingError{Game: meta.Game, Build: meta.Build}
	for _, o := range child.Offers() {
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
	return errors.Join(errs...)
}
