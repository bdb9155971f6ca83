package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"reprise/format"
	"reprise/player"
)

// simTable maps games and builds to simulations: a TOML file of entries
//
//	[[sim]]
//	game = "my-game"
//	build = "1.4.2"               # left out: every build that has no entry
//	sim = "exec:builds/1.4.2/sim"
type simTable struct {
	Entries []simEntry `toml:"sim"`
}

type simEntry struct {
	Game  string `toml:"game"`
	Build string `toml:"build"`
	Sim   string `toml:"sim"`
}

// loadSimTable reads a table and checks every entry.
func loadSimTable(path string) (*simTable, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, usagef("--sims %s: %w", printable(path), cause(err))
	}
	table := &simTable{}
	d := toml.NewDecoder(bytes.NewReader(b)).DisallowUnknownFields()
	if err := d.Decode(table); err != nil {
		return nil, usagef("--sims %s: %s", printable(path), tomlError(err))
	}
	if len(table.Entries) == 0 {
		return nil, usagef("--sims %s has no entry [[sim]]", printable(path))
	}
	for i, e := range table.Entries {
		where := fmt.Sprintf("--sims %s: entry %d: sim", printable(path), i+1)
		if e.Game == "" || e.Sim == "" {
			return nil, usagef("%s: give game and sim", where)
		}
		if err := checkSim(where, e.Sim); err != nil {
			return nil, err
		}
	}
	return table, nil
}

// tomlError names the line of an error.
func tomlError(err error) string {
	var bad *toml.DecodeError
	var unknown *toml.StrictMissingError
	switch {
	case errors.As(err, &unknown):
		line, _ := unknown.Errors[0].Position()
		return fmt.Sprintf("line %d: unknown key %q: use game, build and sim", line, strings.Join(unknown.Errors[0].Key(), "."))
	case errors.As(err, &bad):
		line, _ := bad.Position()
		return fmt.Sprintf("line %d: %s", line, strings.TrimPrefix(bad.Error(), "toml: "))
	}
	return err.Error()
}

// find gives the SIM for a replay: that of its build or, for want of one,
// that of every build.
func (t *simTable) find(meta *format.Metadata) (string, error) {
	every, builds, games := "", []string(nil), []string(nil)
	for _, e := range t.Entries {
		switch {
		case e.Game != meta.Game:
			games = append(games, e.Game)
		case e.Build == meta.Build:
			return e.Sim, nil
		case e.Build == "":
			every = e.Sim
		default:
			builds = append(builds, e.Build)
		}
	}
	switch {
	case every != "":
		return every, nil
	case builds != nil:
		return "", &player.BuildMismatchError{Game: meta.Game, Recorded: meta.Build, Present: builds}
	}
	return "", nameless(meta, &player.GameMissingError{Game: meta.Game, Build: meta.Build, Present: games})
}
