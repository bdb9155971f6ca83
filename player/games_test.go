package player

import (
	"errors"
	"reflect"
	"testing"

	"reprise/format"
)

// TestGamesAreFoundByData: what was recorded with other data is refused; what
// either side does not tell is not compared.
func TestGamesAreFoundByData(t *testing.T) {
	linked := func(build, data string) Linked {
		return Factory{Name: "mixer", Build: build, Data: data, New: func() Game { return &mixer{} }}
	}
	old, fresh, unsaid, every := linked("1", "d1"), linked("1", "d2"), linked("1", ""), linked("", "")
	everyBuild := TurnFactory{Name: "mixer", Data: "d9", New: func() TurnGame { return newWalker() }}
	for _, c := range []struct {
		games       Games
		build, data string
		found       Linked // nil: refused
	}{
		{Games{old, fresh}, "1", "d1", old},
		{Games{old, fresh}, "1", "d2", fresh},
		{Games{old, fresh}, "1", "d3", nil},
		{Games{old, fresh}, "1", "", old},
		{Games{old, unsaid}, "1", "", unsaid},
		{Games{unsaid, fresh}, "1", "d2", fresh},
		{Games{unsaid, fresh}, "1", "d3", unsaid},
		{Games{every, old}, "1", "d1", old},
		{Games{everyBuild, unsaid}, "1", "d9", unsaid},
		{Games{everyBuild, every}, "2", "d9", everyBuild},
		{Games{everyBuild}, "2", "d1", nil},
	} {
		game, err := c.games.Lookup(&format.Metadata{Game: "mixer", Build: c.build, Data: c.data})
		switch {
		case c.found != nil && (err != nil || !sameGame(game, c.found)):
			t.Errorf("build %q, data %q: %+v, %v", c.build, c.data, game, err)
		case c.found == nil && err == nil:
			t.Errorf("build %q, data %q: found %+v", c.build, c.data, game)
		}
	}
	_, err := Games{old, fresh}.Lookup(&format.Metadata{Game: "mixer", Build: "1", Data: "d3"})
	var mismatch *DataMismatchError
	if want := (&DataMismatchError{Game: "mixer", Build: "1", Recorded: "d3", Present: []string{"d1", "d2"}}); !errors.As(err, &mismatch) || !reflect.DeepEqual(mismatch, want) {
		t.Errorf("other data: %v", err)
	}
	var build *BuildMismatchError
	if _, err := (Games{old}).Lookup(&format.Metadata{Game: "mixer", Build: "2", Data: "d3"}); !errors.As(err, &build) {
		t.Errorf("another build and other data: %v", err)
	}
}

func sameGame(a, b Linked) bool {
	nameA, buildA := a.Identity()
	nameB, buildB := b.Identity()
	return nameA == nameB && buildA == buildB && DataOf(a) == DataOf(b)
}
