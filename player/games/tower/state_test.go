package tower

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"reprise/format"
	"reprise/player"
)

// Every number of the hero, every cell and the generator must show in the
// saved state, in the dump and in their own part of the hash: what is
// missing there can go astray unseen.
func TestNothingIsLeftOut(t *testing.T) {
	s := newState(1, 3)
	type change struct {
		name string
		part int
		do   func()
	}
	changes := []change{
		{"random", 2, func() { s.random++ }},
		{"outcome", 0, func() { s.outcome = surrendered }},
		{"queue", 0, func() { s.plan(up) }},
		{"top floor", 1, func() { s.floors[2].grid[at(5, 5)] = tileRedGem }},
		{"lowest floor", 1, func() { s.floors[0].grid[at(1, 1)] = tileSword }},
	}
	for _, f := range s.hero.stats() {
		changes = append(changes, change{f.name, 0, func() { *f.value++ }})
	}
	for _, c := range changes {
		saved, dump, hash := s.save(nil), s.dump(), s.hash(nil)
		c.do()
		if bytes.Equal(saved, s.save(nil)) {
			t.Errorf("%s is not saved", c.name)
		}
		if reflect.DeepEqual(dump, s.dump()) {
			t.Errorf("%s is not dumped", c.name)
		}
		if part := firstPart(hash, s.hash(nil)); part != c.part {
			t.Errorf("%s changed part %d of the hash first, want %d", c.name, part, c.part)
		}
	}
}

// firstPart gives the index of the first part that differs, -1 for none.
func firstPart(a, b []byte) int {
	for i, p := range HashParts() {
		if !bytes.Equal(a[:p.Bytes], b[:p.Bytes]) {
			return i
		}
		a, b = a[p.Bytes:], b[p.Bytes:]
	}
	return -1
}

// The stats must cover the whole struct; a field that is added and not
// listed would be lost.
func TestStatsCoverTheHero(t *testing.T) {
	var h hero
	for i, f := range h.stats() {
		*f.value = int64(i + 1)
	}
	if size := reflect.TypeOf(h).Size(); int(size) != 8*statCount {
		t.Errorf("a hero has %d bytes, the stats cover %d", size, 8*statCount)
	}
	seen := map[int64]bool{}
	for _, f := range h.stats() {
		seen[*f.value] = true
	}
	if len(seen) != statCount || seen[0] {
		t.Errorf("%d of %d stats have a field of their own", len(seen), statCount)
	}
}

func TestDumpNamesAreUnique(t *testing.T) {
	for _, s := range mid(t) {
		seen := map[string]bool{}
		for _, f := range s.dump() {
			if f.Name == "" || f.Value == "" || seen[f.Name] {
				t.Fatalf("field %q with value %q is unnamed, empty or twice there", f.Name, f.Value)
			}
			seen[f.Name] = true
		}
	}
}

func TestMetadataAndCodeBook(t *testing.T) {
	m := Metadata("s1", 7, "tower-10")
	width := 0
	for _, p := range m.HashParts {
		width += p.Bytes
	}
	if s := newState(1, 2); width != m.HashBytes || width != len(s.hash(nil)) {
		t.Errorf("parts of %d bytes, %d declared, %d made", width, m.HashBytes, len(s.hash(nil)))
	}
	if m.Game != Name || m.Build != Build || m.Seed != 7 || m.Width != format.Width8 || m.TickRate.Float() != 0 {
		t.Errorf("metadata %+v", m)
	}
	seen := map[uint16]bool{}
	for _, c := range CodeBook().Codes {
		if seen[c.Code] || c.Code == 0 || c.Code > 255 || c.Name == "" {
			t.Errorf("code %d (%s) is twice there, unnamed or too wide", c.Code, c.Name)
		}
		seen[c.Code] = true
	}
}

func TestReset(t *testing.T) {
	keyframe := func(seed uint64, floors int) []byte {
		s := newState(seed, floors)
		return s.save(nil)
	}
	tests := []struct {
		name  string
		start player.Start
		want  error
	}{
		{"a new game", player.Start{Meta: Metadata("", 1, "tower-3")}, nil},
		{"no hashes", player.Start{Meta: &format.Metadata{Map: "tower-3"}}, nil},
		{"undeclared parts", player.Start{Meta: &format.Metadata{Map: "tower-3", HashBytes: hashBytes}}, nil},
		{"a keyframe", player.Start{Meta: Metadata("", 1, "tower-3"), State: keyframe(1, 3)}, nil},
		{"no metadata", player.Start{}, ErrMap},
		{"another map", player.Start{Meta: Metadata("", 1, "plain-3")}, ErrMap},
		{"narrow hashes", player.Start{Meta: &format.Metadata{Map: "tower-3", HashBytes: 8}}, ErrHashParts},
		{"other parts", player.Start{Meta: &format.Metadata{Map: "tower-3", HashBytes: hashBytes, HashParts: []format.HashPart{{Name: "all", Bytes: hashBytes}}}}, ErrHashParts},
		{"a damaged keyframe", player.Start{Meta: Metadata("", 1, "tower-3"), State: keyframe(1, 3)[1:]}, ErrState},
		{"an empty keyframe", player.Start{Meta: Metadata("", 1, "tower-3"), State: []byte{}}, ErrState},
		{"a keyframe of another seed", player.Start{Meta: Metadata("", 1, "tower-3"), State: keyframe(2, 3)}, ErrOtherTower},
		{"a keyframe of another height", player.Start{Meta: Metadata("", 1, "tower-3"), State: keyframe(1, 4)}, ErrOtherTower},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if err := New().Reset(test.start); !errors.Is(err, test.want) {
				t.Errorf("error %v, want %v", err, test.want)
			}
		})
	}
}

var update = flag.Bool("update", false, "write the golden files anew; only right where the rules are meant to change, with a new build name")

// golden is one game's end, pinned so that no change of the rules, of the
// generator or of Go goes unnoticed.
type golden struct {
	Seed    uint64 `json:"seed"`
	Map     string `json:"map"`
	Turns   int    `json:"turns"`
	Outcome string `json:"outcome"`
	Hash    string `json:"hash"`
}

func TestGoldenGames(t *testing.T) {
	path := filepath.Join("testdata", Build+".json")
	if *update {
		writeGolden(t, path)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var games []golden
	if err := json.Unmarshal(b, &games); err != nil {
		t.Fatal(err)
	}
	if len(games) == 0 {
		t.Fatal("the golden file holds no games")
	}
	for _, want := range games {
		if got := goldenOf(t, want.Seed, want.Map); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
}

func goldenOf(t *testing.T, seed uint64, mapName string) golden {
	rec := play(t, seed, mapName)
	return golden{seed, mapName, len(rec.turns), rec.outcome, hex.EncodeToString(rec.last)}
}

func writeGolden(t *testing.T, path string) {
	var games []golden
	for seed, mapName := range []string{"tower-2", "tower-3", "tower-5", "tower-10", "tower-10", "tower-20", "tower-60"} {
		games = append(games, goldenOf(t, uint64(seed)*1000003, mapName))
	}
	b, err := json.MarshalIndent(games, "", "\t")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, append(b, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
}
