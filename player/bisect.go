package player

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"reprise/format"
)

// Bisection is the first place where a simulation leaves the recording, or
// where two simulations part.
type Bisection struct {
	// First and Tick bound the place: the first difference was made in one
	// of the ticks from First to Tick, and shows in the hash after Tick. They
	// are equal where every tick could be compared.
	First, Tick format.Tick
	// Want and Got are the hashes after Tick: the recorded one or that of
	// the first simulation, and that of the other; nil where the states
	// differ and have no hashes. Part names the first part of them that
	// differs, of those that the metadata declares.
	Want, Got []byte
	Part      string
	// State is the state before First, up to which both sides are equal; nil
	// where the game cannot save it.
	State []byte
	// FieldsAt is the tick after which Fields were compared; only with
	// HasFields. It is behind Tick where the recording holds a state only
	// there, in a keyframe.
	FieldsAt  format.Tick
	HasFields bool
	// WantFields and GotFields are both whole states by their fields, and
	// Fields those that differ.
	WantFields, GotFields []Field
	Fields                []FieldDifference
}

// FieldDifference is a field that two states do not agree on. A field that one
// of them does not have is empty there, and Missing says so.
type FieldDifference struct {
	Name, Want, Got string
	Missing         bool
}

// CompareFields lists the fields that differ, in the order of want and then
// those that only got has.
func CompareFields(want, got []Field) (differences []FieldDifference) {
	values := make(map[string]string, len(got))
	for _, f := range got {
		values[f.Name] = f.Value
	}
	for _, f := range want {
		value, ok := values[f.Name]
		delete(values, f.Name)
		if !ok || value != f.Value {
			differences = append(differences, FieldDifference{Name: f.Name, Want: f.Value, Got: value, Missing: !ok})
		}
	}
	for _, f := range got {
		if value, ok := values[f.Name]; ok {
			differences = append(differences, FieldDifference{Name: f.Name, Got: value, Missing: true})
		}
	}
	return differences
}

// stride is how many ticks a bisection plays between two looks at what was
// found.
const stride = 64

// Bisect finds where sim leaves the recording: nil where it does not. The
// recorded hashes bound the place, and so do the recorded keyframes, where the
// game can save its state to be compared. Where the recording holds a keyframe
// behind the place, second, if not nil, is started from it, to say which fields
// differ there. The error is one of Playback's, or ErrNothingCompared.
func Bisect(ctx context.Context, file *format.File, sim, second Simulation, o PlaybackOptions) (*Bisection, error) {
	p := NewPlayback(file, sim, o)
	b, err := p.firstDifference(ctx)
	if err != nil || b == nil {
		return nil, err
	}
	if err := b.keep(ctx, p); err != nil {
		return nil, err
	}
	return b, b.compareWithFrame(ctx, p, second)
}

// firstDifference plays up to the first hash or keyframe that differs; nil
// where none does.
func (p *Playback) firstDifference(ctx context.Context) (*Bisection, error) {
	b := &Bisection{First: p.next}
	compared := 0
	for end := p.file.Summary().NextTick; p.next < end; {
		if err := p.Play(ctx, p.stop(end)); err != nil {
			return nil, err
		}
		if d := p.report.Desync; d != nil {
			b.Tick, b.Want, b.Got, b.Part = d.Tick, d.Want, d.Got, d.Part
			b.First = max(b.First, p.goodBefore(d)+1)
			return b, nil
		}
		same, ok, err := p.matchesFrame()
		if err != nil {
			return nil, err
		}
		switch {
		case ok && !same:
			if p.report.hasGood {
				b.First = max(b.First, p.report.good+1)
			}
			b.Tick = p.next - 1
			b.First = min(b.First, b.Tick) // no hash covers what differs
			return b, nil
		case ok:
			b.First = p.next
			compared++
		}
	}
	if p.report.HashesCompared+compared == 0 {
		return nil, ErrNothingCompared
	}
	return nil, nil
}

// stop is where a bisection looks next: a stride on, or at a keyframe.
func (p *Playback) stop(end format.Tick) format.Tick {
	to := min(end, p.next+stride)
	for _, f := range p.recorded {
		if p.next < f.next && f.next < to {
			to = f.next
		}
	}
	return to
}

// goodBefore is the last tick before a desync whose hash was equal, or the one
// before the first.
func (p *Playback) goodBefore(d *DesyncError) format.Tick {
	switch {
	case d.HasLastGood:
		return d.LastGood
	case p.report.hasGood && p.report.good < d.Tick:
		return p.report.good
	}
	return p.start.Meta.FirstTick - 1
}

// matchesFrame compares the present state with the keyframe recorded here; ok
// is false where there is none, or the game cannot save.
func (p *Playback) matchesFrame() (same, ok bool, err error) {
	for i := range p.recorded {
		f := &p.recorded[i]
		if f.next != p.next || p.keeper == nil {
			continue
		}
		state, err := p.keeper.Save(nil)
		if errors.Is(err, ErrUnable) {
			return false, false, nil
		}
		if err != nil {
			return false, false, err
		}
		k, err := p.file.Keyframe(f.index)
		if err != nil {
			return false, false, err
		}
		return bytes.Equal(state, k.State), true, nil
	}
	return false, false, nil
}

// keep saves the state before First, and lists the fields after Tick.
func (b *Bisection) keep(ctx context.Context, p *Playback) error {
	if err := p.Seek(ctx, b.First); err != nil {
		return err
	}
	state, err := p.Save(nil)
	if err != nil && !errors.Is(err, ErrUnable) {
		return err
	}
	if err == nil {
		b.State = state
	}
	return p.Play(ctx, b.Tick+1)
}

// compareWithFrame compares with the first recorded keyframe behind First that
// no gap parts from it.
func (b *Bisection) compareWithFrame(ctx context.Context, p *Playback, second Simulation) error {
	inspector, ok := second.(Inspector)
	if !ok {
		return nil
	}
	for i := range p.recorded {
		f := &p.recorded[i]
		if f.next <= b.First || f.bad {
			continue
		}
		if first, err := p.island(f.next); err != nil || first > b.First {
			return nil
		}
		k, err := p.file.Keyframe(f.index)
		if err != nil {
			return err
		}
		start := p.start
		start.NextTick, start.State = f.next, k.State
		if err := second.Reset(start); err != nil {
			return err
		}
		if err := p.Seek(ctx, b.First); err != nil {
			return err
		}
		if err := p.Play(ctx, f.next); err != nil {
			return err
		}
		if b.Want == nil {
			b.hashes(second, p)
		}
		return b.dump(f.next-1, inspector, p)
	}
	return nil
}

// hashes takes the hashes of two states that a keyframe told apart, from games
// that give them.
func (b *Bisection) hashes(want Simulation, p *Playback) {
	wantHasher, ok := want.(Hasher)
	gotHasher, both := p.sim.(Hasher)
	if !ok || !both {
		return
	}
	w, errW := wantHasher.StateHash(nil)
	g, errG := gotHasher.StateHash(nil)
	if errW == nil && errG == nil && !bytes.Equal(w, g) {
		c := comparer{parts: p.start.Meta.HashParts}
		b.Want, b.Got, b.Part = w, g, c.differing(w, g)
	}
}

// dump lists the fields of both states; a game that cannot gives none.
func (b *Bisection) dump(at format.Tick, want Inspector, got Inspector) error {
	wantFields, err := want.Dump()
	var gotFields []Field
	if err == nil {
		gotFields, err = got.Dump()
	}
	if errors.Is(err, ErrUnable) {
		return nil
	}
	if err != nil {
		return err
	}
	b.FieldsAt, b.HasFields, b.WantFields, b.GotFields = at, true, wantFields, gotFields
	b.Fields = CompareFields(wantFields, gotFields)
	return nil
}

// BisectSims finds where two simulations part on the inputs of one replay: nil
// where they do not. The hashes after every tick are compared, whatever the
// recording holds; in a replay that declares no hashes, the saved states. The
// error is one of Playback's, or ErrUnable where there is neither.
func BisectSims(ctx context.Context, file *format.File, a, b Simulation, o PlaybackOptions) (*Bisection, error) {
	var left, right hashLog
	oa, ob := o, o
	if file.Summary().Meta.HashBytes == 0 {
		return bisectStates(ctx, NewPlayback(file, a, oa), NewPlayback(file, b, ob))
	}
	oa.Trace, ob.Trace = left.add, right.add
	pa, pb := NewPlayback(file, a, oa), NewPlayback(file, b, ob)
	first := pa.next
	for end := file.Summary().NextTick; pa.next < end; {
		to := min(end, pa.next+stride)
		left, right = left[:0], right[:0]
		errA, errB := pa.Play(ctx, to), pb.Play(ctx, to)
		if at := left.parts(right); at >= 0 {
			return partedAt(ctx, pa, pb, left[at], right[at], max(first, left.before(at, first)))
		}
		if err := errors.Join(named("the first simulation", errA), named("the second simulation", errB)); err != nil {
			return nil, err
		}
		if len(left) > 0 {
			first = left[len(left)-1].tick + 1
		}
	}
	return nil, nil
}

func named(who string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", who, err)
}

// bisectStates compares the states of two simulations after every tick.
func bisectStates(ctx context.Context, a, b *Playback) (*Bisection, error) {
	for end := a.file.Summary().NextTick; a.next < end; {
		first := a.next
		if err := errors.Join(a.Play(ctx, first+1), b.Play(ctx, first+1)); err != nil {
			return nil, err
		}
		want, errA := a.Save(nil)
		got, errB := b.Save(nil)
		switch err := errors.Join(errA, errB); {
		case err != nil:
			return nil, err
		case !bytes.Equal(want, got):
			return partedAt(ctx, a, b, loggedHash{tick: first}, loggedHash{tick: first}, first)
		}
	}
	return nil, nil
}

// hashLog is the hashes of a few ticks.
type hashLog []loggedHash

type loggedHash struct {
	tick format.Tick
	hash []byte
}

func (l *hashLog) add(tick format.Tick, hash []byte) error {
	*l = append(*l, loggedHash{tick, bytes.Clone(hash)})
	return nil
}

// parts gives the index of the first hash that differs; -1 where none does.
func (l hashLog) parts(other hashLog) int {
	for i := range min(len(l), len(other)) {
		if l[i].tick != other[i].tick || !bytes.Equal(l[i].hash, other[i].hash) {
			return i
		}
	}
	return -1
}

// before is the tick behind the last equal hash.
func (l hashLog) before(at int, first format.Tick) format.Tick {
	if at == 0 {
		return first
	}
	return l[at-1].tick + 1
}

// partedAt describes the place where a and b part.
func partedAt(ctx context.Context, a, b *Playback, want, got loggedHash, first format.Tick) (*Bisection, error) {
	meta := a.start.Meta
	c := comparer{parts: meta.HashParts}
	d := &Bisection{First: first, Tick: want.tick, Want: want.hash, Got: got.hash, Part: c.differing(want.hash, got.hash)}
	if err := d.keep(ctx, a); err != nil {
		return nil, err
	}
	if err := errors.Join(b.Seek(ctx, d.First), b.Play(ctx, d.Tick+1)); err != nil {
		return nil, err
	}
	return d, d.dump(d.Tick, a, b)
}

// LabelBundleOf is the label of a bundle: which replay it was taken from.
const LabelBundleOf = "bundle_of"

// WriteBundle writes a replay of the ticks from First to Tick alone: it starts
// from State, and verifying it shows the same difference. It is ErrUnable where
// the game cannot save its state. out must be empty.
func (b *Bisection) WriteBundle(out format.ReplayFile, file *format.File) error {
	s := file.Summary()
	if b.State == nil && b.First > s.Meta.FirstTick {
		return fmt.Errorf("%w: it has no Save, so nothing can start at tick %d", ErrUnable, b.First)
	}
	meta := *s.Meta
	meta.Session, meta.FirstTick = "", b.First
	meta.Labels = append(meta.Labels[:len(meta.Labels):len(meta.Labels)],
		format.Label{Key: LabelBundleOf, Value: fmt.Sprintf("session %q, ticks %d to %d", s.Meta.Session, b.First, b.Tick)})
	w, err := format.NewWriter(out, &meta, file.Book())
	if err != nil {
		return err
	}
	if err := b.writeStart(w, file); err != nil {
		return err
	}
	r := file.Reader()
	r.Seek(b.First)
	var tick format.TickRecord
	for w.NextTick() <= b.Tick {
		if err := r.Next(&tick); err != nil {
			return err
		}
		if tick.Tick == b.Tick && b.Want != nil {
			tick.Hash = b.Want
		}
		if err := w.Add(&tick); err != nil {
			return err
		}
	}
	return w.Finish(format.EndSealed, "")
}

// writeStart writes what the game starts from.
func (b *Bisection) writeStart(w *format.Writer, file *format.File) error {
	var events []format.PlayerEvent
	for _, e := range file.Summary().Players {
		if e.Tick <= file.Summary().Meta.FirstTick {
			e.Tick = b.First
			events = append(events, e)
		}
	}
	if len(events) > 0 {
		salt := make([]byte, format.SaltBytes)
		rand.Read(salt) // it never fails
		if err := w.Players(salt, events); err != nil {
			return err
		}
	}
	if b.State == nil {
		return nil
	}
	return w.Keyframe(format.Keyframe{NextTick: b.First, State: b.State})
}
