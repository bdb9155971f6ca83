package app

import (
	"strings"

	"reprise/format"
	"reprise/transport"
)

// jsonMachine compares the machine that recorded a replay with this one, where
// a desync was found: what is computed in another way there is no bug of the
// game's.
type jsonMachine struct {
	// Compared counts the facts that are known of both.
	Compared int        `json:"facts_compared"`
	Differs  []jsonFact `json:"differs"`
}

type jsonFact struct {
	Fact     string   `json:"fact"`
	Recorded jsonText `json:"recorded"`
	Here     jsonText `json:"here"`
}

func compareMachine(meta *format.Metadata) *jsonMachine {
	differences, compared := format.CompareMachines(meta.Env, transport.Machine())
	m := &jsonMachine{Compared: compared, Differs: []jsonFact{}}
	for _, d := range differences {
		m.Differs = append(m.Differs, jsonFact{d.Key, jsonText(d.Recorded), jsonText(d.Present)})
	}
	return m
}

// differs says what differs; empty where nothing does.
func (m *jsonMachine) differs() string {
	if m == nil || len(m.Differs) == 0 {
		return ""
	}
	var parts []string
	floats := false
	for _, f := range m.Differs {
		parts = append(parts, f.Fact+" "+printable(string(f.Recorded))+", here "+printable(string(f.Here)))
		floats = floats || f.Fact == format.EnvFloat || f.Fact == format.EnvFused
	}
	text := "recorded on another kind of machine (" + strings.Join(parts, "; ") + ")"
	if floats {
		text += ", where floats are computed in another way: a game that uses them cannot be in lockstep"
	}
	return text
}

// alike says that nothing differs, or that nothing is known; empty where
// something does differ.
func (m *jsonMachine) alike() string {
	switch {
	case m == nil || len(m.Differs) > 0:
		return ""
	case m.Compared == 0:
		return "nothing is recorded of the machine"
	}
	return "recorded on the same kind of machine"
}

// text is one or the other.
func (m *jsonMachine) text() string { return m.differs() + m.alike() }
