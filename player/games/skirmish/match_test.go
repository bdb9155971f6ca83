package skirmish

import (
	"errors"
	"testing"
	"testing/quick"

	"reprise/format"
	"reprise/player"
)

// TestMatchesArePlausible plays whole matches and looks at what a recording
// of them would hold.
func TestMatchesArePlausible(t *testing.T) {
	used := map[uint16]int{}
	endings := map[standing]int{}
	ignored, commands, playerSeconds := 0, 0, 0.0
	for seed, mapName := range []string{"plains-64", "plains-100", "canyon-100", "woods-100", "plains-128"} {
		players := []int{2, 2, 3, 4, 2}[seed]
		m, err := NewMatch(uint64(70+seed), players, mapName)
		if err != nil {
			t.Fatal(err)
		}
		most, lost := 0, 0
		for {
			_, c, done := m.Next()
			if done {
				break
			}
			commands += len(c)
			most = max(most, len(c))
			for _, c := range c {
				used[c.Op]++
				ignored += countIgnored(t, m, c)
			}
			units := len(m.game.units)
			if err := m.Simulate(); err != nil {
				t.Fatal(err)
			}
			lost += max(0, units-len(m.game.units))
		}
		minutes := float64(m.game.tick) / (60 * TicksPerSecond)
		if winner, over := m.Game().Winner(); !over || winner == 0 || minutes < 2 || minutes > 30 {
			t.Errorf("%s: winner %d, over %v after %.1f minutes", mapName, winner, over, minutes)
		}
		if lost < 20 {
			t.Errorf("%s: only %d units were lost", mapName, lost)
		}
		if most < 5 {
			t.Errorf("%s: no more than %d commands in one tick", mapName, most)
		}
		for _, s := range m.game.sides {
			endings[s.standing]++
		}
		playerSeconds += minutes * 60 * float64(players)
	}
	for op := OpMove; op <= OpSurrender; op++ {
		if used[op] == 0 {
			t.Errorf("nobody used %s", opName(op))
		}
	}
	if endings[defeated] == 0 || endings[surrendered] == 0 {
		t.Errorf("the losers were %v", endings)
	}
	if rate := float64(commands) / playerSeconds; rate < 1 || rate > 3 {
		t.Errorf("%.2f commands a second and player", rate)
	}
	if ignored == 0 || ignored*10 > commands {
		t.Errorf("%d of %d commands were ignored", ignored, commands)
	}
}

// countIgnored is 1 if the match's present state would ignore a command.
// Only commands that name something dead are looked at, which needs no copy
// of the state.
func countIgnored(t *testing.T, m *Match, c Command) int {
	t.Helper()
	seat, err := m.game.seat(c.Player)
	if err != nil {
		return 1
	}
	if c.Op == OpSurrender {
		return 0
	}
	if _, err := m.game.ownUnit(seat, c.Unit); errors.Is(err, ErrDead) {
		return 1
	}
	return 0
}

func TestMatchProtocol(t *testing.T) {
	m, err := NewMatch(1, 2, "plains-64")
	if err != nil {
		t.Fatal(err)
	}
	for range 100 {
		tick, commands, _ := m.Next()
		again, same, done := m.Next()
		if again != tick || len(same) != len(commands) || done {
			t.Fatalf("Next twice: tick %d, then %d", tick, again)
		}
		if err := m.Simulate(); err != nil {
			t.Fatal(err)
		}
		if m.Game().Tick() != tick+1 {
			t.Fatalf("after tick %d comes %d", tick, m.Game().Tick())
		}
	}
	m.game.sides[1].standing = surrendered
	for n := 0; ; n++ {
		if _, _, done := m.Next(); done {
			if n != afterglow+1 {
				t.Errorf("the match goes on for %d ticks after its decision, want %d", n-1, afterglow)
			}
			break
		}
		if err := m.Simulate(); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.Simulate(); err == nil {
		t.Error("a match that ended is simulated")
	}
	for _, players := range []int{-1, 0, 1, 9} {
		if _, err := NewMatch(1, players, "plains-64"); err == nil {
			t.Errorf("a match of %d players", players)
		}
	}
}

func TestMetadataStartsTheGame(t *testing.T) {
	m, err := NewMatch(5, 3, "woods-64")
	if err != nil {
		t.Fatal(err)
	}
	meta := m.Metadata()
	sum := 0
	for _, p := range meta.HashParts {
		sum += p.Bytes
	}
	if meta.Game != "skirmish" || meta.Build != Build || meta.Map != "woods-64" || meta.Seed != 5 || meta.TickRate.Float() != 20 ||
		meta.HashBytes != sum || meta.Width != format.Width16 {
		t.Errorf("metadata %+v", meta)
	}
	f := Factory()
	g := f.New()
	if f.Name != "skirmish" || f.Build != Build {
		t.Errorf("factory %+v", f)
	}
	if err := g.Reset(player.Start{Meta: meta, Players: m.Players()}); err != nil {
		t.Fatal(err)
	}
	if got := g.Hash(nil); len(got) != meta.HashBytes || string(got) != string(m.Game().Hash(nil)) {
		t.Errorf("the hash is %x", got)
	}
}

func TestPlayersOfAStart(t *testing.T) {
	with := func(players []format.Player, labels ...format.Label) player.Start {
		start := startOf(1, 2, "plains-64")
		start.Players, start.Meta.Labels = players, labels
		return start
	}
	label := func(v string) format.Label { return format.Label{Key: "players", Value: v} }
	people := []format.Player{{ID: 7}, {ID: 3}, {ID: 5, Observer: true}}
	tests := []struct {
		name  string
		start player.Start
		want  []uint64 // nil: refused
	}{
		{"numbers of any kind", with(people), []uint64{3, 7}},
		{"as the label says", with(people, label("2")), []uint64{3, 7}},
		{"the label alone", with(nil, label("4")), []uint64{1, 2, 3, 4}},
		{"number 0", with([]format.Player{{ID: 0}, {ID: 1}}), []uint64{0, 1}},
		{"nobody", with(nil), nil},
		{"one", with(people[:1]), nil},
		{"nine", with(NewPlayers(9)), nil},
		{"the label differs", with(people, label("3")), nil},
		{"the label is no number", with(people, label("two")), nil},
		{"the label is too small", with(nil, label("1")), nil},
		{"one twice", with([]format.Player{{ID: 1}, {ID: 1}}), nil},
		{"above 63 bits", with([]format.Player{{ID: 1}, {ID: 1 << 63}}), nil},
		{"no metadata", player.Start{Players: people}, nil},
	}
	for _, test := range tests {
		g := new(Game)
		err := g.Reset(test.start)
		if (err == nil) != (test.want != nil) {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		if err == nil && !equalIDs(g.playerIDs(), test.want) {
			t.Errorf("%s: players %v, want %v", test.name, g.playerIDs(), test.want)
		}
	}
}

func equalIDs(a, b []uint64) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// TestBotsOnlyLook: a bot's thoughts do not change the game.
func TestBotsOnlyLook(t *testing.T) {
	g := battle(t)
	before := g.Save(nil)
	check := func(seed uint64) bool {
		for _, id := range g.playerIDs() {
			NewBot(seed, id).Commands(g, nil)
		}
		return string(g.Save(nil)) == string(before)
	}
	if err := quick.Check(check, &quick.Config{MaxCount: 30}); err != nil {
		t.Error(err)
	}
}
