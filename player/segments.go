package player

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"reprise/format"
)

// SegmentOptions says how VerifySegments works.
type SegmentOptions struct {
	// Jobs is how many simulations run at once.
	Jobs int
	// Simulation makes one of them; release is called when it is not needed
	// any more. It is called from several goroutines.
	Simulation func() (sim Simulation, release func(), err error)
	// KeepGoing runs what is behind a desync, too.
	KeepGoing bool
	// OnOutcome is told every answer; it is called from several goroutines
	// and may be nil.
	OnOutcome func(Outcome)
}

// segment is a run of ticks from a known state to the next recorded one.
type segment struct {
	first, end format.Tick
	frame      int // the keyframe to start from; -1 for the game's own start
	// next is the keyframe before end, which the state played to must
	// equal; -1 where there is none.
	next int
}

// Segments is the number of parts that VerifySegments can run at once: one for
// the start and one for each recorded keyframe.
func Segments(file *format.File) int {
	segments, _ := segmentsOf(file)
	return len(segments)
}

// VerifySegments runs a replay in parts, each from a recorded keyframe to the
// next one, several at once. Every recorded hash is compared, and every
// keyframe with the state that the game itself comes to there, where it can
// save it: so loading a keyframe is proven to restore all that matters. What
// is found is what Run finds, and besides a KeyframeError; behind a desync,
// parts that start from a recorded keyframe may agree again. Where neither a
// state nor a hash proves that a part ends as the next one begins, and where a
// game does not start from a keyframe that one run passes by, the replay is run
// in one part after all. A game that looks ahead needs Run.
func VerifySegments(ctx context.Context, file *format.File, o SegmentOptions) (Report, error) {
	segments, gaps := segmentsOf(file)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	w := &segmentRun{file: file, o: o, segments: segments, results: make([]segmentResult, len(segments)), stop: len(segments), cancels: make([]context.CancelFunc, len(segments))}
	if len(segments) == 0 {
		return w.whole(ctx)
	}
	var workers sync.WaitGroup
	for range min(o.Jobs, len(segments)) {
		workers.Go(func() {
			if err := w.work(ctx); err != nil {
				cancel(err)
			}
		})
	}
	workers.Wait()
	if err := context.Cause(ctx); err != nil {
		return w.report(gaps), err
	}
	report, err := w.verdict(gaps)
	var bad *KeyframeError
	if errors.As(err, &bad) || w.unsure() {
		report, whole := w.whole(ctx)
		if bad == nil {
			return report, whole
		}
		return report, errors.Join(bad, whole)
	}
	return report, err
}

// unsure reports whether the parts may differ from one run: one refused its
// keyframe, began at one that may be bad, or hides what went wrong between the
// last hash of the part before it and its keyframe.
func (w *segmentRun) unsure() bool {
	for i, s := range w.segments[:w.stop] {
		r := &w.results[i]
		if s.frame >= 0 && s.first > w.file.Summary().Meta.FirstTick && errors.Is(r.err, ErrStart) {
			return true
		}
		if i+1 == w.stop || s.next < 0 || r.proven {
			continue
		}
		if hashed := r.report.hasGood && r.report.good+1 == s.end; !hashed || w.results[i+1].err != nil {
			return true
		}
	}
	return false
}

// whole runs the replay in one part.
func (w *segmentRun) whole(ctx context.Context) (Report, error) {
	sim, release, err := w.o.Simulation()
	if err != nil {
		return Report{}, err
	}
	defer release()
	return Run(ctx, sim, NewFileSource(w.file), EngineOptions{Start: StartOf(w.file), KeepGoing: w.o.KeepGoing, OnOutcome: w.o.OnOutcome})
}

// segmentsOf cuts a replay at its keyframes and gaps. Nothing is played behind
// a gap that no keyframe follows.
func segmentsOf(file *format.File) ([]segment, []*GapError) {
	s := file.Summary()
	frames := framesByTick(s)
	starts := []segment{{first: s.Meta.FirstTick, frame: frameAt(frames, s, s.Meta.FirstTick)}}
	var gaps []*GapError
	end := s.NextTick
	for _, g := range s.Gaps {
		missing := stretchAt(s, g.First)
		if missing.first > end {
			break
		}
		gap := &GapError{Gap: g, Declared: true, Restarted: frameAt(frames, s, missing.behind) >= 0 && missing.behind < s.NextTick}
		gaps = append(gaps, gap)
		if !gap.Restarted {
			end = missing.first
		}
	}
	for _, i := range frames {
		if t := s.Keyframes[i].NextTick; t > s.Meta.FirstTick && t < end {
			starts = append(starts, segment{first: t, frame: i})
		}
	}
	var segments []segment
	for i, seg := range starts {
		seg.end, seg.next = end, -1
		if i+1 < len(starts) {
			seg.end, seg.next = starts[i+1].first, starts[i+1].frame
		}
		here := stretchAt(s, seg.first)
		if here.behind < seg.end {
			seg.end, seg.next = here.behind, -1
		}
		if !here.missing {
			segments = append(segments, seg)
		}
	}
	return segments, gaps
}

// framesByTick gives the indexes of the keyframes in tick order, one a tick.
func framesByTick(s *format.Summary) []int {
	var frames []int
	for i := range s.Keyframes {
		frames = append(frames, i)
	}
	slices.SortStableFunc(frames, func(a, b int) int {
		return cmp.Compare(s.Keyframes[a].NextTick, s.Keyframes[b].NextTick)
	})
	return slices.CompactFunc(frames, func(a, b int) bool { return s.Keyframes[a].NextTick == s.Keyframes[b].NextTick })
}

func frameAt(frames []int, s *format.Summary, t format.Tick) int {
	for _, i := range frames {
		if s.Keyframes[i].NextTick == t {
			return i
		}
	}
	return -1
}

type segmentResult struct {
	done   bool
	report Report
	err    error
	proven bool // the keyframe behind the segment is right
}

// segmentRun hands segments to workers.
type segmentRun struct {
	file     *format.File
	o        SegmentOptions
	segments []segment

	mu      sync.Mutex
	given   int
	stop    int // segments from here on need not be run
	results []segmentResult
	cancels []context.CancelFunc
}

// take gives the next segment; false when there is none.
func (w *segmentRun) take(ctx context.Context) (context.Context, int, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.given >= w.stop {
		return nil, 0, false
	}
	i := w.given
	w.given++
	ctx, w.cancels[i] = context.WithCancel(ctx)
	return ctx, i, true
}

// settle keeps a result. A failed segment makes those behind it needless.
func (w *segmentRun) settle(i int, r segmentResult) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cancels[i]()
	w.results[i] = r
	if i >= w.stop || !w.ends(&r) {
		return
	}
	w.stop = i + 1
	for _, cancel := range w.cancels[i+1 : w.given] {
		cancel()
	}
}

func (w *segmentRun) work(ctx context.Context) error {
	sim, release, err := w.o.Simulation()
	if err != nil {
		return err
	}
	defer release()
	if LooksAhead(sim) {
		return fmt.Errorf("%w: it looks ahead, so its replay cannot be cut", ErrUnable)
	}
	for {
		ctx, i, ok := w.take(ctx)
		if !ok {
			return nil
		}
		w.settle(i, w.run(ctx, sim, w.segments[i]))
	}
}

// run runs one segment.
func (w *segmentRun) run(ctx context.Context, sim Simulation, s segment) (r segmentResult) {
	r.done = true
	start := StartOf(w.file)
	start.NextTick = s.first
	if s.frame >= 0 {
		k, err := w.file.Keyframe(s.frame)
		if err != nil {
			r.err = err
			return r
		}
		start.State = k.State
	}
	if r.err = sim.Reset(start); r.err != nil {
		return r
	}
	source := NewFileSource(w.file)
	source.Seek(s.first)
	last := s.end - 1
	start.State = nil
	r.report, r.err = Run(ctx, sim, source, EngineOptions{Start: start, Underway: true, KeepGoing: w.o.KeepGoing, Last: &last, OnOutcome: w.o.OnOutcome})
	r.report.Keyframe = s.frame >= 0
	if errors.Is(r.err, ErrNothingCompared) && r.report.Complete {
		r.err = nil // the other segments may have hashes
	}
	if r.err == nil && s.next >= 0 {
		r.proven, r.err = w.compareNext(sim, s)
	}
	return r
}

// compareNext compares the state at the segment's end with the keyframe there,
// where the game can save it.
func (w *segmentRun) compareNext(sim Simulation, s segment) (compared bool, err error) {
	keeper, ok := sim.(Keeper)
	if !ok {
		return false, nil
	}
	state, err := keeper.Save(nil)
	if errors.Is(err, ErrUnable) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	k, err := w.file.Keyframe(s.next)
	if err != nil {
		return false, err
	}
	if at := firstDifference(state, k.State); at >= 0 {
		err := fmt.Errorf("%w (%d bytes, recorded %d, first difference at byte %d)", ErrOtherState, len(state), len(k.State), at)
		return true, &KeyframeError{NextTick: s.end, Err: err}
	}
	return true, nil
}

// ErrOtherState is returned where a recorded keyframe holds another state than
// the one that the game comes to.
var ErrOtherState = errors.New("the game comes to another state than the recorded one")

// firstDifference is the place of the first byte that differs; -1 where a and
// b are equal.
func firstDifference(a, b []byte) int {
	if bytes.Equal(a, b) {
		return -1
	}
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// report joins the results up to the first one that ended the run.
func (w *segmentRun) report(gaps []*GapError) Report {
	var sum Report
	sum.Complete = true
	for i := range w.stop {
		r := &w.results[i]
		if i == 0 {
			sum.Keyframe = r.report.Keyframe
		}
		sum.Complete = sum.Complete && r.done && r.report.Complete
		for _, d := range r.report.Desyncs {
			if !d.HasLastGood {
				d.LastGood, d.HasLastGood = sum.good, sum.hasGood
			}
		}
		sum.Add(&r.report)
	}
	behind := w.segments[0].first // the first tick that was not come to
	if sum.TicksRun > 0 {
		behind = sum.LastTick + 1
	}
	if w.ended() {
		behind = max(behind, w.segments[w.stop-1].first)
	} else {
		behind++ // a gap that begins there ended the run
	}
	for _, g := range gaps {
		if stretchAt(w.file.Summary(), g.Gap.First).first < behind {
			sum.Gaps = append(sum.Gaps, g)
		}
	}
	return sum
}

// ends reports whether a part with this result is the last one to be run.
func (w *segmentRun) ends(r *segmentResult) bool {
	return r.err != nil && !(w.o.KeepGoing && r.report.Complete)
}

// ended reports whether a part ended the run before the replay's end.
func (w *segmentRun) ended() bool {
	return w.stop > 0 && w.ends(&w.results[w.stop-1])
}

// failure is a bad keyframe, or else what ended the run early.
func (w *segmentRun) failure() error {
	var bad *KeyframeError
	for i := range w.stop {
		if err := w.results[i].err; errors.As(err, &bad) {
			return err
		}
	}
	if w.ended() {
		return w.results[w.stop-1].err
	}
	return nil
}

// verdict joins the whole report with what one run would say of it.
func (w *segmentRun) verdict(gaps []*GapError) (Report, error) {
	sum, err := w.report(gaps), w.failure()
	switch desync := sum.Desync; {
	case desync != nil && err == nil:
		err = desync
	case desync != nil && !errors.Is(err, desync):
		err = errors.Join(desync, err)
	}
	open := sum.openGap()
	sum.Complete = sum.Complete && open == nil
	switch {
	case open != nil && err != nil:
		err = errors.Join(err, open)
	case open != nil:
		err = open
	case err == nil && len(sum.Gaps) > 0:
		err = sum.Gaps[0]
	}
	if gap := (*GapError)(nil); sum.HashesCompared == 0 && (err == nil || errors.As(err, &gap)) {
		err = errors.Join(ErrNothingCompared, err)
	}
	return sum, err
}
