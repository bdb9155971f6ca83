package format

import (
	"bytes"
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

var errEnough = errors.New("enough")

func differences(t testing.TB, a, b *File, o DiffOptions) []Difference {
	t.Helper()
	var list []Difference
	if err := Diff(a, b, o, func(d Difference) error {
		list = append(list, d)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return list
}

// The same content in other containers: other chunks, late hashes, JSON lines,
// the other width, without a footer.
func TestDiffIsOfTheContent(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 31))
		s := randomSession(r)
		f, b := s.file(t, 100)
		other, _ := s.file(t, 7)
		lines := fromJSONL(t, toJSONL(t, f, JSONLWriteOptions{}), JSONLOptions{})
		live := openBytes(t, b[:endOf(t, b)])
		wide := *s
		wide.meta.Width = Width16
		w, _ := wide.file(t, 50)
		for name, g := range map[string]*File{"itself": f, "other chunks": other, "JSON lines": lines, "live": live, "16 bits": w} {
			for _, pair := range [][2]*File{{f, g}, {g, f}} {
				if list := differences(t, pair[0], pair[1], DiffOptions{}); len(list) > 0 {
					t.Fatalf("seed %d, %s: %v", seed, name, list[0])
				}
			}
		}
	}
}

func TestDiffNamesWhatDiffers(t *testing.T) {
	for _, c := range []struct {
		change func(*session)
		want   string
	}{
		{func(s *session) { s.meta.Session = "match-8" }, `metadata, session: "match-7", against "match-8"`},
		{func(s *session) { s.meta.Map = "m" }, `metadata, map: nothing, against "m"`},
		{func(s *session) { s.meta.Seed++ }, "metadata, seed: 42, against 43"},
		{func(s *session) { s.meta.TickRate = Rate{20, 1} }, "metadata, tick rate: 22.4, against 20"},
		{func(s *session) { s.meta.StartedAt = 0 }, "metadata, started at, microseconds since 1970: 1777000000000000, against nothing"},
		{func(s *session) { s.meta.Labels = append(s.meta.Labels, Label{"a", "b"}) }, `metadata, label 2: nothing, against "a" = "b"`},
		{func(s *session) { s.meta.HashParts[0].Name = "w" }, `metadata, parts of the state hash: "world" 3, "random" 1, against "w" 3, "random" 1`},
		{func(s *session) { s.book.Codes[0].Params[1].Personal = true }, `code book, code 1: "move"("player" int, "x"), against "move"("player" int, "x" personal)`},
		{func(s *session) { s.book.Codes = s.book.Codes[:1] }, `code book, code 2: "answer" passive(), against nothing`},
		{func(s *session) { s.players[0].Name = "Eve" }, `players, event 1: player 1 "Ada" of team "red" joins at tick 100, against player 1 "Eve" of team "red" joins at tick 100`},
		{func(s *session) { s.ticks[0].steps[0].Params[1] = Int(301) }, "tick 100, step 0 (move), parameter 1 (x): 300, against 301"},
		{func(s *session) { s.ticks[0].steps[0].Params[1] = BigInt(big.NewInt(300)) }, "tick 100, step 0 (move), parameter 1 (x): int 300, against bigint 300n"},
		{func(s *session) { s.ticks[0].steps[0].Params = append(s.ticks[0].steps[0].Params, Bool(true)) }, "tick 100, step 0 (move), parameter 2: nothing, against true"},
		{func(s *session) { s.ticks[0].steps[1].Code = 9 }, `tick 100, step 1: answer("yes"), against code 9("yes")`},
		{func(s *session) { s.ticks[2].steps = nil }, "tick 102, step 0: move(1, 1.5), against nothing"},
		{func(s *session) { s.ticks[1].hash[3] ^= 1 }, "tick 101, state hash: b0b1b2b3, against b0b1b2b2"},
		{func(s *session) { s.ticks[3].hash = nil }, "tick 105, state hash: c0c1c2c3, against nothing"},
		{func(s *session) { s.ticks[2].time++ }, "tick 102, time in microseconds: 90000, against 90001"},
		{func(s *session) { s.ticks[0].timed = false }, "tick 100, time in microseconds: 0, against nothing"},
		{func(s *session) { s.ticks = s.ticks[:3] }, "tick 105, the tick: 0 steps, against nothing"},
		{func(s *session) { s.gaps[0].Reason = "?" }, `ticks, gap 1: ticks 103 to 104, declared by the producer, "spool full", against ticks 103 to 104, declared by the producer, "?"`},
		{func(s *session) { s.keyframes[0].State = []byte("the slate!") }, "tick 100, keyframe before the tick, from byte 5 on: 74617465 of 9 bytes, against 6c61746521 of 10 bytes"},
		{func(s *session) { s.keyframes = nil }, "tick 100, keyframe before the tick: 9 bytes, against nothing"},
		{func(s *session) { s.marks[0].Text = "" }, `marks, mark 1: tick 101, "kill", player 1, "first", against tick 101, "kill", player 1, ""`},
		{func(s *session) { s.reports[0].Peer++ }, "reports, report 1: peer 9 at tick 102: 01020304 for tick 101, against peer 10 at tick 102: 01020304 for tick 101"},
		{func(s *session) { s.end.State = EndUnfinished }, "end, state: sealed, against unfinished"},
		{func(s *session) { s.end.Reason = "" }, `end, reason: "over", against nothing`},
	} {
		f, _ := smallSession().file(t, 1)
		other := smallSession()
		c.change(other)
		g, _ := other.file(t, 1)
		list := differences(t, f, g, DiffOptions{})
		if len(list) != 1 || list[0].String() != c.want {
			t.Errorf("%v, want %s", list, c.want)
			continue
		}
		back := differences(t, g, f, DiffOptions{})
		if len(back) != 1 || back[0].A != list[0].B || back[0].B != list[0].A {
			t.Errorf("the other way round: %v", back)
		}
		if list := differences(t, f, g, DiffOptions{Ignore: []string{list[0].Aspect}}); len(list) > 0 {
			t.Errorf("%s is ignored: %v", list[0].Aspect, list)
		}
		var others []string
		for _, aspect := range DiffAspects {
			if aspect != list[0].Aspect {
				others = append(others, aspect)
			}
		}
		if list := differences(t, f, g, DiffOptions{Ignore: others}); len(list) != 1 {
			t.Errorf("%v is ignored: %v", others, list)
		}
	}
}

func TestDiffStopsWhenTold(t *testing.T) {
	a, _ := smallSession().file(t, 1)
	s := smallSession()
	for i := range s.ticks {
		s.ticks[i].steps = append(s.ticks[i].steps, Step{Code: 77})
	}
	b, _ := s.file(t, 1)
	n := 0
	err := Diff(a, b, DiffOptions{}, func(d Difference) error {
		if n++; n == 2 {
			return errEnough
		}
		return nil
	})
	if err != errEnough || n != 2 {
		t.Errorf("%v after %d differences", err, n)
	}
	if list := differences(t, a, b, DiffOptions{}); len(list) != 4 {
		t.Errorf("%v", list)
	}
}

// A prefix differs from the whole where it ends, and by nothing else.
func TestDiffOfALivePrefix(t *testing.T) {
	s := smallSession()
	whole, b := s.file(t, 1)
	var cuts []string
	for n := range b {
		f, err := NewFile(bytes.NewReader(b[:n]), int64(n))
		if err != nil {
			continue
		}
		list := differences(t, f, whole, DiffOptions{})
		if f.Summary().Ticks < uint64(len(s.ticks)) {
			first := s.ticks[f.Summary().Ticks].tick
			if !slices.ContainsFunc(list, func(d Difference) bool {
				return d.Aspect == DiffTicks && d.Tick == first && d.A == "" && strings.Contains(d.B, " step")
			}) {
				t.Fatalf("cut at %d: %v does not name tick %d", n, list, first)
			}
		}
		if len(list) == 0 {
			cuts = append(cuts, fmt.Sprint(n))
		}
	}
	if len(cuts) == 0 {
		t.Error("no prefix holds all of the content, not even that without the footer")
	}
}
