package tower

import (
	"bytes"
	"encoding/binary"
	"errors"
	"reflect"
	"testing"

	"reprise/player"
)

// mid gives states from the middle of games, some with moves that wait.
func mid(t testing.TB) []state {
	t.Helper()
	var list []state
	for seed := range uint64(6) {
		r, err := NewRun(seed, "tower-6")
		if err != nil {
			t.Fatal(err)
		}
		for range 150 * seed {
			r.Next()
		}
		s := r.state
		for range seed {
			s.plan(left)
		}
		list = append(list, s)
	}
	return list
}

func TestSaveAndLoad(t *testing.T) {
	for i, s := range mid(t) {
		saved := s.save([]byte("before"))[len("before"):]
		back, err := load(saved)
		if err != nil {
			t.Fatalf("state %d: %v", i, err)
		}
		if !bytes.Equal(back.save(nil), saved) || !reflect.DeepEqual(back.dump(), s.dump()) || !bytes.Equal(back.hash(nil), s.hash(nil)) {
			t.Errorf("state %d changed by saving and loading", i)
		}
	}
}

// A game that goes on from a keyframe must end as the one that made it,
// wherever the keyframe was taken: also in the middle of a run.
func TestGameGoesOnFromKeyframes(t *testing.T) {
	rec := play(t, 5, "tower-3")
	live := newState(rec.seed, 3)
	for i, turn := range rec.turns {
		if i%7 == 0 {
			back, err := load(live.save(nil))
			if err != nil {
				t.Fatalf("turn %d: %v", i, err)
			}
			if got := back.finish(rec.turns[i:]); !bytes.Equal(got, rec.last) {
				t.Fatalf("from turn %d on the game ended with hash %x, want %x", i, got, rec.last)
			}
		}
		live.finish([]Turn{turn})
	}
}

// finish plays turns as a replay does, walking whole runs.
func (s *state) finish(turns []Turn) []byte {
	for _, turn := range turns {
		_, _ = s.act(turn.Code, turn.Params, &script{answers: turn.Passives})
	}
	s.walk()
	return s.hash(nil)
}

// reseal makes the sum of a changed state right, so that what is behind it
// is tested.
func reseal(b []byte) []byte {
	if len(b) < sumBytes {
		return b
	}
	body := b[:len(b)-sumBytes]
	return binary.BigEndian.AppendUint64(bytes.Clone(body), sumOf(body))
}

func TestLoadRefuses(t *testing.T) {
	const (
		outcomeAt = len(saveMagic) + 1 + 16
		statsAt   = outcomeAt + 1
		floorsAt  = headBytes
	)
	stat := func(i int, n int64) func([]byte) []byte {
		return func(b []byte) []byte {
			binary.BigEndian.PutUint64(b[statsAt+8*i:], uint64(n))
			return reseal(b)
		}
	}
	set := func(i int, v byte) func([]byte) []byte {
		return func(b []byte) []byte {
			b[i] = v
			return reseal(b)
		}
	}
	tests := []struct {
		name    string
		corrupt func([]byte) []byte
		want    error
	}{
		{"empty", func([]byte) []byte { return nil }, ErrState},
		{"another mark", set(0, 'X'), ErrState},
		{"another version", set(len(saveMagic), 2), ErrStateVersion},
		{"a wrong sum", func(b []byte) []byte { b[len(b)-1] ^= 1; return b }, ErrState},
		{"an unknown outcome", set(outcomeAt, outcomes), ErrState},
		{"fallen, but alive", set(outcomeAt, byte(fallen)), ErrState},
		{"a floor above the tower", stat(0, 6), ErrState},
		{"above the highest floor", stat(0, 5), ErrState},
		{"a cell outside", stat(1, cells), ErrState},
		{"inside a wall", stat(1, 0), ErrState},
		{"facing nowhere", stat(2, directions), ErrState},
		{"dead, but climbing", stat(3, 0), ErrState},
		{"negative gold", stat(6, -1), ErrState},
		{"too much attack", stat(4, ceiling+1), ErrState},
		{"one floor", set(floorsAt-1, 1), ErrState},
		{"a floor too many", set(floorsAt-1, 7), ErrState},
		{"a floor too few", set(floorsAt-1, 5), ErrState},
		{"an entry outside", set(floorsAt, cells), ErrState},
		{"an unknown tile", set(floorsAt+2+cells/2, 200), ErrState},
		{"a hole in the outer wall", set(floorsAt+2+5, 0), ErrState},
		{"stairs where none may be", set(floorsAt+2+int(at(6, 6)), byte(tileUp)), ErrState},
		{"a byte too many", func(b []byte) []byte { return reseal(append(b, 0)) }, ErrState},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := newState(1, 6)
			if _, err := load(test.corrupt(s.save(nil))); !errors.Is(err, test.want) {
				t.Errorf("error %v, want %v", err, test.want)
			}
		})
	}
}

func TestLoadFindsEveryDamage(t *testing.T) {
	s := mid(t)[3]
	saved := s.save(nil)
	for i := range saved {
		if _, err := load(saved[:i]); err == nil {
			t.Fatalf("cut to %d bytes it was loaded", i)
		}
		damaged := bytes.Clone(saved)
		damaged[i] ^= 1 << (i % 8)
		if _, err := load(damaged); err == nil {
			t.Fatalf("with a damaged byte %d it was loaded", i)
		}
	}
}

func TestLoadFailureLeavesTheGame(t *testing.T) {
	g := New()
	if err := g.Reset(player.Start{Meta: Metadata("", 4, "tower-4")}); err != nil {
		t.Fatal(err)
	}
	before := g.Save(nil)
	if err := g.Load(before[:100]); err == nil {
		t.Fatal("half a state was loaded")
	}
	if !bytes.Equal(g.Save(nil), before) {
		t.Error("the failed load changed the game")
	}
}

// Whatever loads has one form, and can be played on by any steps.
func FuzzLoad(f *testing.F) {
	for _, s := range mid(f) {
		f.Add(s.save(nil), []byte{1, 2, 3, 4, 5, 6, 7})
	}
	f.Fuzz(func(t *testing.T, saved, steps []byte) {
		saved = reseal(saved)
		s, err := load(saved)
		if err != nil {
			if !errors.Is(err, ErrState) && !errors.Is(err, ErrStateVersion) {
				t.Fatalf("error %v", err)
			}
			return
		}
		if again := s.save(nil); !bytes.Equal(again, saved) {
			t.Fatal("what was loaded saves as something else")
		}
		s.finish(wild(steps))
		if _, err := load(s.save(nil)); err != nil {
			t.Fatalf("after %d steps the state does not load: %v", len(steps), err)
		}
	})
}

// FuzzSteps plays any steps from the start: nothing may panic, and the state
// stays one that loads.
func FuzzSteps(f *testing.F) {
	f.Add(uint64(1), []byte{1, 1, 1, 4, 4, 6, 16, 3, 5, 0, 5, 3, 17, 1})
	f.Fuzz(func(t *testing.T, seed uint64, steps []byte) {
		s := newState(seed, minFloors+int(seed%5))
		s.finish(wild(steps))
		if _, err := load(s.save(nil)); err != nil {
			t.Fatal(err)
		}
	})
}

// wild reads bytes as turns, each as a code and, for some, a number.
func wild(steps []byte) []Turn {
	var turns []Turn
	for i := 0; i+1 < len(steps); i += 2 {
		code, n := uint16(steps[i]), int64(int8(steps[i+1]))
		switch {
		case code == CodeUse:
			turns = append(turns, Turn{Code: code, Params: ints(n)})
		case (code == CodeChoose || code == CodeDestination) && len(turns) > 0:
			last := &turns[len(turns)-1]
			last.Passives = append(last.Passives, answer(code, n))
		default:
			turns = append(turns, Turn{Code: code})
		}
	}
	return turns
}
