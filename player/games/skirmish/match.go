package skirmish

import (
	"fmt"

	"reprise/format"
	"reprise/player"
)

// Ticks that a match goes on after it was decided, and after which it ends
// undecided.
const (
	afterglow = 2 * TicksPerSecond
	mostTicks = 30 * 60 * TicksPerSecond
)

// Match is a whole match among bots, given tick by tick, so that it can be
// recorded like one among people:
//
//	for {
//		tick, commands, done := m.Next()
//		if done {
//			break
//		}
//		// record the commands of tick, then its end
//		if err := m.Simulate(); err != nil {
//			return err
//		}
//		hash = m.Game().Hash(hash[:0]) // the state after tick
//	}
type Match struct {
	meta     *format.Metadata
	players  []format.Player
	game     *Game
	bots     []*Bot
	commands []Command
	params   []format.Value
	// asked is true between Next and Simulate.
	asked bool
	// decided is the tick at which the match was found to be over.
	decided uint64
}

// NewMatch sets a match up. It refuses an unknown map and a number of
// players that is not from 2 to 8.
func NewMatch(seed uint64, players int, mapName string) (*Match, error) {
	if players < minPlayers || players > maxPlayers {
		return nil, fmt.Errorf("skirmish: %d players; a match has %d to %d", players, minPlayers, maxPlayers)
	}
	m := &Match{meta: NewMetadata(seed, mapName, players), players: NewPlayers(players), game: new(Game)}
	if err := m.game.Reset(player.Start{Meta: m.meta, Book: CodeBook(), Players: m.players}); err != nil {
		return nil, err
	}
	for _, p := range m.players {
		m.bots = append(m.bots, NewBot(seed, p.ID))
	}
	return m, nil
}

// Metadata and Players are what a recording of the match should carry.
func (m *Match) Metadata() *format.Metadata { return m.meta }
func (m *Match) Players() []format.Player   { return m.players }

// Game is the simulation; only Simulate may advance it.
func (m *Match) Game() *Game { return m.game }

// Next gives the commands of the next tick; the slice is valid until
// Simulate. Without a Simulate in between it gives the same again.
func (m *Match) Next() (tick format.Tick, commands []Command, done bool) {
	if m.ended() {
		return m.game.Tick(), nil, true
	}
	if !m.asked {
		m.asked = true
		m.commands = m.commands[:0]
		for _, b := range m.bots {
			m.commands = b.Commands(m.game, m.commands)
		}
	}
	return m.game.Tick(), m.commands, false
}

func (m *Match) ended() bool {
	if m.game.tick >= mostTicks {
		return true
	}
	return m.game.over && m.game.tick >= m.decided+afterglow
}

// Simulate carries the commands out and simulates the tick.
func (m *Match) Simulate() error {
	tick, commands, done := m.Next()
	if done {
		return fmt.Errorf("skirmish: the match ended before tick %d", tick)
	}
	m.asked = false
	for _, c := range commands {
		m.params = c.AppendParams(m.params[:0])
		if result, err := m.game.Step(tick, format.Step{Code: c.Op, Params: m.params}); result == player.Failed {
			return err
		}
	}
	if err := m.game.EndTick(tick); err != nil {
		return err
	}
	if m.game.over && m.decided == 0 {
		m.decided = m.game.tick
	}
	return nil
}
