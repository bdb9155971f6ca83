package app

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

// simTable maps games, builds and data to simulations: a TOML file of entries
//
//	[[sim]]
//	game = "my-game"
//	build = "1.4.2"               # left out: every build that has no entry
//	data = "5f1c"                 # left out: every data that has no entry
//	sim = "exec:builds/1.4.2/sim"
type simTable struct {
	Entries []simEntry `toml:"sim"`
}

type simEntry struct {
	Game  string `toml:"game"`
	Build string `toml:"build"`
	Data  string `toml:"data"`
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
		return fmt.Sprintf("line %d: unknown key %q: use game, build, data and sim", line, strings.Join(unknown.Errors[0].Key(), "."))
	case errors.As(err, &bad):
		line, _ := bad.Position()
		return fmt.Sprintf("line %d: %s", line, strings.TrimPrefix(bad.Error(), "toml: "))
	}
	return err.Error()
}

// find gives the SIM for a replay, by the rule for linked games.
func (t *simTable) find(meta *format.Metadata) (string, error) {
	var games player.Games
	for _, e := range t.Entries {
		games = append(games, tableGame{e})
	}
	found, err := games.Lookup(meta)
	if err != nil {
		return "", nameless(meta, err)
	}
	return found.(tableGame).Sim, nil
}

// tableGame is an entry to be looked up.
type tableGame struct{ simEntry }

func (g tableGame) Identity() (name, build string) { return g.Game, g.Build }
func (g tableGame) DataIdentity() string           { return g.Data }

// Simulation is nil: an entry only names one.
func (g tableGame) Simulation() player.Simulation { return nil }
