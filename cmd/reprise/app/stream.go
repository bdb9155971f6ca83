package app

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"reprise/format"
	"reprise/player"
	"reprise/transport"
)

// streamer sends a file's content in the order of its ticks. What stands
// beside the ticks goes in the file's order, each before the first tick that
// is not earlier.
type streamer struct {
	match *transport.Recording
	f     *format.File
	speed float64
	shown *progress

	began   time.Time
	last    format.Tick
	gaps    []format.Gap
	players []format.PlayerEvent
	marks   []format.Mark
	reports []format.Report
	frames  []int // indexes of keyframes
}

// sentBefore is what a recording has before the streamer begins: players in
// its opening, or all that a spool holds.
type sentBefore struct {
	players, marks int
	reports        uint64
	keyframes      []format.KeyframeInfo
	// hashless are the recorded ticks whose hash was not.
	hashless []format.Tick
}

func (s *streamer) run(ctx context.Context, sent *sentBefore) error {
	from := s.match.NextTick()
	if err := s.prepare(from, sent); err != nil {
		return err
	}
	if err := s.lateHashes(sent.hashless); err != nil {
		return err
	}
	r := s.f.Reader()
	r.Seek(from)
	s.began = time.Now()
	var t format.TickRecord
	var steps format.StepReader
	for {
		err := r.Next(&t)
		if err == io.EOF {
			return s.before(s.last, true)
		}
		if err == nil {
			err = s.before(t.Tick, false)
		}
		if err == nil {
			err = s.wait(ctx, t.Tick, from)
		}
		if err == nil {
			err = s.tick(&t, &steps)
		}
		if err != nil {
			return err
		}
	}
}

// prepare gathers what stands beside the ticks and was not sent before.
func (s *streamer) prepare(from format.Tick, sent *sentBefore) error {
	sum := s.f.Summary()
	s.last = sum.NextTick
	for _, g := range sum.Gaps {
		if g.Last >= from {
			s.gaps = append(s.gaps, g)
		}
	}
	s.players = sum.Players[min(sent.players, len(sum.Players)):]
	s.marks = sum.Marks[min(sent.marks, len(sum.Marks)):]
	for i, k := range sum.Keyframes {
		have := func(h format.KeyframeInfo) bool { return h.NextTick == k.NextTick && h.Size == k.Size }
		if !slices.ContainsFunc(sent.keyframes, have) {
			s.frames = append(s.frames, i)
		}
	}
	n := uint64(0)
	return s.f.Reports(func(r format.Report) error {
		if n++; n > sent.reports {
			r.Hash = bytes.Clone(r.Hash)
			s.reports = append(s.reports, r)
		}
		return nil
	})
}

// lateHashes sends the hashes of ticks that were recorded without.
func (s *streamer) lateHashes(ticks []format.Tick) error {
	r := s.f.Reader()
	for _, tick := range ticks {
		r.Seek(tick)
		var t format.TickRecord
		if err := r.Next(&t); err != nil {
			return err
		}
		if err := s.match.Hash(t.Tick, t.Hash); err != nil {
			return err
		}
	}
	return nil
}

// before sends what stands before tick, all that is left at the end: gaps,
// joins and leaves, keyframes, marks and reports.
func (s *streamer) before(tick format.Tick, end bool) error {
	due := func(t format.Tick) bool { return end || t <= tick }
	for ; len(s.gaps) > 0 && due(s.gaps[0].First); s.gaps = s.gaps[1:] {
		if err := s.match.Gap(s.gaps[0].Last, s.gaps[0].Reason); err != nil {
			return err
		}
	}
	for ; len(s.players) > 0 && due(s.players[0].Tick); s.players = s.players[1:] {
		if err := s.match.Players(s.players[0]); err != nil {
			return err
		}
	}
	for ; len(s.frames) > 0 && due(s.f.Summary().Keyframes[s.frames[0]].NextTick); s.frames = s.frames[1:] {
		if err := s.keyframe(s.frames[0]); err != nil {
			return err
		}
	}
	for ; len(s.marks) > 0 && due(s.marks[0].Tick); s.marks = s.marks[1:] {
		if err := s.match.Mark(s.marks[0]); err != nil {
			return err
		}
	}
	n := 0
	for n < len(s.reports) && due(s.reports[n].At) {
		n++
	}
	if n == 0 {
		return nil
	}
	reports := s.reports[:n]
	s.reports = s.reports[n:]
	return s.match.Report(reports...)
}

func (s *streamer) keyframe(i int) error {
	k, err := s.f.Keyframe(i)
	if err != nil {
		return err
	}
	return s.match.Keyframe(k.NextTick, k.State)
}

// wait paces, by deadlines counted from the start; at full speed it only
// keeps to what the daemon makes durable.
func (s *streamer) wait(ctx context.Context, tick, from format.Tick) error {
	if tick%showEvery == 0 {
		s.shown.show("recording %s: tick %d of %d, durable before %d", s.match.ID(), tick, s.last, s.match.Durable())
	}
	if err := s.match.Room(ctx); err != nil {
		return err
	}
	rate := s.f.Summary().Meta.TickRate.Float()
	if s.speed == player.Max || rate == 0 {
		return nil
	}
	due := s.began.Add(time.Duration(float64(tick-from) / rate / s.speed * float64(time.Second)))
	timer := time.NewTimer(time.Until(due))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *streamer) tick(t *format.TickRecord, steps *format.StepReader) error {
	var step format.Step
	for steps.Reset(t); steps.Next(&step); {
		if err := s.match.Step(step.Code, step.Params...); err != nil {
			return err
		}
	}
	var err error
	if t.HasTime {
		err = s.match.EndTickAt(time.Duration(t.Time) * time.Microsecond)
	} else {
		err = s.match.EndTick()
	}
	if err == nil && t.Hash != nil {
		err = s.match.Hash(t.Tick, t.Hash)
	}
	return err
}

// readSpool finds out what an earlier run of this command recorded, and that
// it was of the same file.
func readSpool(path string, f *format.File) (*sentBefore, error) {
	spool, err := format.Open(path)
	if err != nil {
		return nil, err
	}
	defer spool.Close()
	s := spool.Summary()
	sent := &sentBefore{players: len(s.Players), marks: len(s.Marks), reports: s.Reports, keyframes: s.Keyframes}
	mine, its := f.Reader(), spool.Reader()
	var a, b format.TickRecord
	for {
		if err := its.Next(&b); err == io.EOF {
			return sent, nil
		} else if err != nil {
			return nil, err
		}
		if err := mine.Next(&a); err != nil && err != io.EOF {
			return nil, err
		} else if err == io.EOF || a.Tick != b.Tick || !sameSteps(&a, &b) || b.Hash != nil && !bytes.Equal(a.Hash, b.Hash) {
			return nil, fmt.Errorf("tick %d is another in this file: it holds another match", b.Tick)
		}
		if a.Hash != nil && b.Hash == nil {
			sent.hashless = append(sent.hashless, b.Tick)
		}
	}
}

// sameSteps compares the inputs of a tick.
func sameSteps(a, b *format.TickRecord) bool {
	var ra, rb format.StepReader
	ra.Reset(a)
	rb.Reset(b)
	var sa, sb format.Step
	for ra.Next(&sa) {
		if !rb.Next(&sb) || sa.Code != sb.Code || !slices.EqualFunc(sa.Params, sb.Params, format.Value.Equal) {
			return false
		}
	}
	return !rb.Next(&sb)
}
