package player

import (
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"testing"

	"reprise/format"
)

// fileOf writes a replay of ticks 5 to 24, each with its number as hash, in
// chunks of four. Ticks of a gap are missing; keyframes hold their tick.
func fileOf(t *testing.T, gaps []format.Gap, keyframes []format.Tick, players []format.PlayerEvent) []byte {
	t.Helper()
	out := new(format.Buffer)
	w, err := format.NewWriter(out, &format.Metadata{Game: "none", FirstTick: 5, HashBytes: 1, Width: format.Width8}, nil)
	try := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	try(err)
	if len(players) > 0 {
		try(w.Players(make([]byte, format.SaltBytes), players))
	}
	late := []format.Tick{}
	for tick := format.Tick(5); tick < 25; tick++ {
		if slices.Contains(keyframes, tick) {
			try(w.Keyframe(format.Keyframe{NextTick: tick, State: []byte(fmt.Sprint("state ", tick))}))
		}
		if i := slices.IndexFunc(gaps, func(g format.Gap) bool { return g.First == tick }); i >= 0 {
			try(w.Gap(gaps[i]))
			tick = gaps[i].Last
			continue
		}
		try(w.Step(1, format.Int(int64(tick))))
		try(w.EndTick())
		if tick%8 == 0 {
			late = append(late, tick)
		} else {
			try(w.Hash(tick, []byte{byte(tick)}))
		}
		if tick%4 == 0 {
			try(w.Flush())
		}
	}
	for _, tick := range late {
		try(w.Hash(tick, []byte{byte(tick)}))
	}
	try(w.Finish(format.EndSealed, ""))
	return out.Bytes()
}

func openBytes(t *testing.T, b []byte) *format.File {
	t.Helper()
	var src format.Buffer
	src.Write(b)
	f, err := format.NewFile(&src, int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// itemsOf reads a source up to its end, and checks that the end is final.
func itemsOf(t *testing.T, s *FileSource) (items []string, err error) {
	t.Helper()
	for {
		item, err := s.Next()
		if err != nil {
			if again, second := s.Next(); again != (Item{}) || !errors.Is(second, err) {
				t.Errorf("after %v came %v, %v", err, again, second)
			}
			return items, err
		}
		items = append(items, describeItem(t, item))
	}
}

func describeItem(t *testing.T, item Item) string {
	t.Helper()
	switch {
	case item.Tick != nil && item.Gap == nil && item.Keyframe == nil:
		if len(item.Tick.Hash) != 1 || item.Tick.Hash[0] != byte(item.Tick.Tick) || item.Tick.Steps != 1 {
			t.Errorf("tick %d has the hash %x and %d steps", item.Tick.Tick, item.Tick.Hash, item.Tick.Steps)
		}
		return fmt.Sprint(item.Tick.Tick)
	case item.Gap != nil && item.Tick == nil && item.Keyframe == nil:
		return fmt.Sprintf("gap %d-%d %s", item.Gap.First, item.Gap.Last, item.Gap.Reason)
	case item.Keyframe != nil && item.Tick == nil && item.Gap == nil:
		return string(item.Keyframe.State)
	}
	t.Errorf("an item of several kinds, or none: %+v", item)
	return ""
}

// numbers lists the ticks from first to last as describeItem does.
func numbers(first, last int) (list []string) {
	for n := first; n <= last; n++ {
		list = append(list, fmt.Sprint(n))
	}
	return list
}

func TestFileSourceGivesEveryTickAndGap(t *testing.T) {
	gap := func(first, last format.Tick) format.Gap {
		return format.Gap{First: first, Last: last, Reason: "lost"}
	}
	for name, c := range map[string]struct {
		gaps []format.Gap
		want [][]string
	}{
		"none":        {nil, [][]string{numbers(5, 24)}},
		"at start":    {[]format.Gap{gap(5, 7)}, [][]string{{"gap 5-7 lost"}, numbers(8, 24)}},
		"of one tick": {[]format.Gap{gap(10, 10)}, [][]string{numbers(5, 9), {"gap 10-10 lost"}, numbers(11, 24)}},
		"at end":      {[]format.Gap{gap(20, 24)}, [][]string{numbers(5, 19), {"gap 20-24 lost"}}},
		"neighbours":  {[]format.Gap{gap(9, 10), gap(11, 12)}, [][]string{numbers(5, 8), {"gap 9-10 lost", "gap 11-12 lost"}, numbers(13, 24)}},
		"two":         {[]format.Gap{gap(9, 10), gap(21, 21)}, [][]string{numbers(5, 8), {"gap 9-10 lost"}, numbers(11, 20), {"gap 21-21 lost"}, numbers(22, 24)}},
		"everything":  {[]format.Gap{gap(5, 24)}, [][]string{{"gap 5-24 lost"}}},
	} {
		items, err := itemsOf(t, NewFileSource(openBytes(t, fileOf(t, c.gaps, nil, nil))))
		if err != io.EOF || !slices.Equal(items, slices.Concat(c.want...)) {
			t.Errorf("%s: %v %q", name, err, items)
		}
	}
}

func TestFileSourceFindsKeyframes(t *testing.T) {
	s := NewFileSource(openBytes(t, fileOf(t, []format.Gap{{First: 10, Last: 11}}, []format.Tick{5, 12, 20}, nil)))
	for _, next := range []format.Tick{20, 12, 5} {
		if state, err := s.FindKeyframe(next); err != nil || string(state) != fmt.Sprint("state ", next) {
			t.Errorf("before tick %d: %q %v", next, state, err)
		}
	}
	for _, next := range []format.Tick{4, 6, 10, 25} {
		if state, err := s.FindKeyframe(next); err != nil || state != nil {
			t.Errorf("before tick %d: %q %v", next, state, err)
		}
	}
	// Only the one before the first tick is given by itself.
	items, err := itemsOf(t, s)
	if want := slices.Concat([]string{"state 5"}, numbers(5, 9), []string{"gap 10-11 "}, numbers(12, 24)); err != io.EOF || !slices.Equal(items, want) {
		t.Errorf("%v %q", err, items)
	}
}

// A file that is cut anywhere gives its whole chunks and then ends; one that
// is damaged gives what stands before the damage and then fails for good.
func TestFileSourceOfACutFile(t *testing.T) {
	whole := fileOf(t, nil, nil, nil)
	lengths := map[int]bool{}
	for n := range whole {
		var src format.Buffer
		src.Write(whole[:n])
		f, err := format.NewFile(&src, int64(n))
		if err != nil {
			continue
		}
		items := 0
		for s := NewFileSource(f); ; items++ {
			item, err := s.Next()
			if err == io.EOF {
				break
			}
			if err != nil || item.Tick == nil || item.Tick.Tick != format.Tick(5+items) {
				t.Fatalf("cut at %d, item %d: %+v %v", n, items, item, err)
			}
		}
		if uint64(items) != f.Summary().Ticks {
			t.Errorf("cut at %d: %d ticks, the summary says %d", n, items, f.Summary().Ticks)
		}
		lengths[items] = true
	}
	if want := map[int]bool{0: true, 4: true, 8: true, 12: true, 16: true, 20: true}; !reflect.DeepEqual(lengths, want) {
		t.Errorf("lengths %v, want %v", lengths, want)
	}
}

func TestFileSourceOfADamagedFile(t *testing.T) {
	whole := fileOf(t, nil, nil, nil)
	failed := 0
	for at := range whole {
		b := slices.Clone(whole)
		b[at] ^= 1
		var src format.Buffer
		src.Write(b)
		f, err := format.NewFile(&src, int64(len(b)))
		if err != nil {
			continue // found at the opening
		}
		items, err := itemsOf(t, NewFileSource(f))
		switch {
		case err == io.EOF:
		case !format.IsDamage(err):
			t.Fatalf("byte %d: %v", at, err)
		case !slices.Equal(items, numbers(5, 4+len(items))):
			t.Fatalf("byte %d: %q before %v", at, items, err)
		default:
			failed++
		}
	}
	if failed == 0 {
		t.Error("no damage was met while reading")
	}
}

func TestStartOf(t *testing.T) {
	join := func(tick format.Tick, id uint64, name string) format.PlayerEvent {
		return format.PlayerEvent{Tick: tick, ID: id, Name: name, Team: "team " + name}
	}
	leave := func(tick format.Tick, id uint64) format.PlayerEvent {
		return format.PlayerEvent{Tick: tick, ID: id, Leave: true}
	}
	for name, c := range map[string]struct {
		events []format.PlayerEvent
		want   []string
	}{
		"nobody":                {nil, nil},
		"before and at start":   {[]format.PlayerEvent{join(0, 1, "a"), join(5, 2, "b")}, []string{"1 a team a", "2 b team b"}},
		"later":                 {[]format.PlayerEvent{join(5, 1, "a"), join(6, 2, "b")}, []string{"1 a team a"}},
		"gone before the start": {[]format.PlayerEvent{join(0, 1, "a"), leave(5, 1), join(0, 2, "b")}, []string{"2 b team b"}},
		"left later":            {[]format.PlayerEvent{join(5, 1, "a"), leave(9, 1)}, []string{"1 a team a"}},
		"back under a new name": {[]format.PlayerEvent{join(5, 1, "a"), leave(9, 1), join(12, 1, "z")}, []string{"1 a team a"}},
		"back before the start": {[]format.PlayerEvent{join(0, 1, "a"), leave(1, 1), join(2, 1, "z")}, []string{"1 z team z"}},
	} {
		f := openBytes(t, fileOf(t, nil, nil, c.events))
		start := StartOf(f)
		if start.Meta != f.Summary().Meta || start.NextTick != 5 || start.State != nil {
			t.Errorf("%s: %+v", name, start)
		}
		var got []string
		for _, p := range start.Players {
			got = append(got, fmt.Sprintf("%d %s %s", p.ID, p.Name, p.Team))
			if last := p.Stays[len(p.Stays)-1]; !last.Open {
				t.Errorf("%s: player %d has left", name, p.ID)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
