package format

import "slices"

// LabelRebasedFrom names the replay whose hashes were replaced. It is stored
// in files and must not change.
const LabelRebasedFrom = "rebased-from"

// RebaseOptions say what Rebase replaces. The functions are called in the
// order of the ticks; what they give is used before the next call.
type RebaseOptions struct {
	// Build is the new build of the game.
	Build string
	// Hash gives the new hash of a tick that has one.
	Hash func(t *TickRecord) ([]byte, error)
	// Keyframe gives the new state before a tick in place of the recorded
	// one; nil leaves it out.
	Keyframe func(k *Keyframe) ([]byte, error)
}

// Rebase writes a replay anew for another build of its game: all that came
// into the game is kept, and what the game made of it, hashes and keyframes, is
// replaced. The reports of peers, which are about the old build, are left out;
// so is the session id, for it is not that session. Its label LabelRebasedFrom
// names the replay. out must be empty; after an error it is of no use.
func Rebase(f *File, out ReplayFile, o RebaseOptions) error {
	meta := *f.sum.Meta
	meta.Session, meta.Build = "", o.Build
	meta.Labels = append(slices.Clip(meta.Labels), Label{LabelRebasedFrom, identity(f.sum)})
	salt, err := f.salt()
	if err != nil {
		return err
	}
	w, err := newContentWriter(out, &meta, f.book, salt)
	if err != nil {
		return err
	}
	r := &rebaser{contentWriter: w, f: f, o: &o}
	if err := newTranscript(f, meta.FirstTick, f.sum.NextTick, r).run(); err != nil {
		return err
	}
	return w.finish(endingOf(f, "new hashes"))
}

// rebaser writes a transcript with other hashes and keyframes.
type rebaser struct {
	*contentWriter
	f *File
	o *RebaseOptions
}

func (r *rebaser) tick(t *TickRecord) error {
	if t.Hash == nil {
		return r.Add(t)
	}
	hash, err := r.o.Hash(t)
	if err != nil {
		return err
	}
	changed := *t
	changed.Hash = hash
	return r.Add(&changed)
}

func (r *rebaser) keyframe(i int) error {
	k, err := r.f.Keyframe(i)
	if err != nil {
		return err
	}
	state, err := r.o.Keyframe(k)
	if err != nil || state == nil {
		return err
	}
	return r.Keyframe(Keyframe{NextTick: k.NextTick, State: state})
}

func (r *rebaser) gap(g Gap) error            { return r.Gap(g) }
func (r *rebaser) player(e PlayerEvent) error { return r.addPlayers([]PlayerEvent{e}) }
func (r *rebaser) mark(m Mark) error          { return r.Mark(m) }
func (r *rebaser) report(Report) error        { return nil }
