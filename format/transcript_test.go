package format

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// noted keeps what a walk gives, by kind, and holds that its ticks and gaps follow
// on each other.
type noted struct {
	t         *testing.T
	session   session
	due       Tick
	failAfter int
}

var errWalk = errors.New("no more")

func (n *noted) step() error {
	if n.failAfter--; n.failAfter == 0 {
		return errWalk
	}
	return nil
}

func (n *noted) Tick(t *TickRecord) error {
	if t.Tick < n.due {
		n.t.Errorf("tick %d comes where %d is due", t.Tick, n.due)
	}
	n.due = t.Tick + 1
	n.session.ticks = append(n.session.ticks, modelTick{tick: t.Tick, hash: bytes.Clone(t.Hash)})
	return n.step()
}

func (n *noted) Gap(g Gap) error {
	if g.First != n.due {
		n.t.Errorf("gap %v comes where tick %d is due", g, n.due)
	}
	n.due = g.Last + 1
	n.session.gaps = append(n.session.gaps, g)
	return n.step()
}

func (n *noted) Keyframe(k *Keyframe) error {
	n.session.keyframes = append(n.session.keyframes, *k)
	return n.step()
}

func (n *noted) Player(e PlayerEvent) error {
	n.session.players = append(n.session.players, e)
	return n.step()
}

func (n *noted) Mark(m Mark) error {
	n.session.marks = append(n.session.marks, m)
	return n.step()
}

func (n *noted) Report(r Report) error {
	r.Hash = bytes.Clone(r.Hash)
	n.session.reports = append(n.session.reports, r)
	return n.step()
}

func TestWalkGivesEverything(t *testing.T) {
	for seed := range uint64(40) {
		s := randomSession(rand.New(rand.NewPCG(seed, 51)))
		f, _ := s.file(t, 100)
		n := &noted{t: t, due: s.meta.FirstTick}
		if err := f.Walk(n); err != nil {
			t.Fatal(err)
		}
		for _, l := range []struct{ name, got, want string }{
			{"marks", fmt.Sprint(n.session.marks), fmt.Sprint(s.marks)},
			{"gaps", fmt.Sprint(n.session.gaps), fmt.Sprint(s.gaps)},
			{"players", fmt.Sprint(n.session.players), fmt.Sprint(s.players)},
			{"reports", fmt.Sprint(n.session.reports), fmt.Sprint(s.reports)},
		} {
			if l.got != l.want {
				t.Errorf("seed %d: %s %s, want %s", seed, l.name, l.got, l.want)
			}
		}
		if len(n.session.ticks) != len(s.ticks) || len(n.session.keyframes) != len(s.keyframes) {
			t.Errorf("seed %d: %d ticks and %d keyframes, want %d and %d", seed, len(n.session.ticks), len(n.session.keyframes), len(s.ticks), len(s.keyframes))
		}
		if !slices.IsSortedFunc(n.session.keyframes, func(a, b Keyframe) int { return int(a.NextTick) - int(b.NextTick) }) {
			t.Errorf("seed %d: keyframes are not in the order of their ticks", seed)
		}
	}
}

// Each kind of content can end the walk.
func TestWalkEndsWithTheVisitorsError(t *testing.T) {
	f, _ := smallSession().file(t, 1)
	for n := 1; ; n++ {
		err := f.Walk(&noted{t: t, due: 100, failAfter: n})
		if err == nil && n > 8 {
			return
		}
		if err != errWalk {
			t.Fatalf("after %d: %v", n, err)
		}
	}
}

// Whatever a byte is changed to, what is made of a file is an error, or a file
// that passes every check.
func TestDamageIsNeverPassedOn(t *testing.T) {
	s := smallSession()
	good, b := s.file(t, 1)
	script := mustParse(t, "insert 100 move 1\nmark 101 x\njoin 102 5 Bob")
	passed := 0
	for i := 0; i < len(b); i += 3 {
		damaged := bytes.Clone(b)
		damaged[i] ^= 0x41
		f, err := NewFile(bytes.NewReader(damaged), int64(len(damaged)))
		if err != nil {
			continue
		}
		for _, make := range []func(*Buffer) error{
			func(out *Buffer) error { _, err := Clip(f, out, ClipOptions{From: 100, To: 105}); return err },
			func(out *Buffer) error { _, err := Edit(f, out, script, EditOptions{}); return err },
			func(out *Buffer) error { _, err := Merge([]*File{f, good}, out); return err },
		} {
			var out Buffer
			if make(&out) != nil {
				continue
			}
			passed++
			if _, err := openBytes(t, out.Bytes()).Check(); err != nil {
				t.Fatalf("byte %d: %v", i, err)
			}
		}
		// Only that it ends matters here.
		if err := Diff(f, good, DiffOptions{}, func(Difference) error { return nil }); err != nil && !IsDamage(err) {
			t.Fatalf("byte %d: %v", i, err)
		}
	}
	if passed == 0 {
		t.Error("nothing could be made of any of the files")
	}
}
