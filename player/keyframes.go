package player

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"slices"
	"strings"

	"reprise/format"
)

// KeyframeFileLimit is a good limit for a side file of keyframes, in bytes.
const KeyframeFileLimit = 256 << 20

// WriteKeyframes writes the keyframes that the playback made or was given to a
// side file, so that the next playback of this replay need not simulate what
// leads to them. Simulation identifies the game's code: a text that changes
// whenever that does, such as a hash of its program. Where not all of them
// fit into limit bytes, those that are written are spread over the replay. It
// gives their number. The error is ErrUnable where the game cannot save.
func (p *Playback) WriteKeyframes(w io.Writer, simulation string, limit int64) (int, error) {
	if p.keeper == nil {
		return 0, fmt.Errorf("%w: the game cannot save", ErrUnable)
	}
	if len(simulation) > mostSideText {
		return 0, fmt.Errorf("%w: a simulation's identity of %d bytes, the most is %d", format.ErrLimit, len(simulation), mostSideText)
	}
	h := sideHead{simulation: simulation, covered: p.file.Summary().NextTick}
	var err error
	if h.replay, err = p.identity(); err != nil {
		return 0, err
	}
	out := newSideWriter(w, h, limit)
	if out.room < 0 {
		return 0, fmt.Errorf("%w: no room for keyframes in %d bytes", format.ErrLimit, limit)
	}
	for _, give := range spread(p.savable()) {
		f, err := give()
		if err != nil {
			return out.count, err
		}
		if !out.add(f) {
			break
		}
	}
	return out.count, out.close()
}

// savable gives the keyframes worth saving in the order of their ticks. Those
// behind a desync are not: the recorded hashes would refuse them.
func (p *Playback) savable() []func() (*sideFrame, error) {
	type savable struct {
		next format.Tick
		give func() (*sideFrame, error)
	}
	var all []savable
	for i, k := range p.states.kept {
		all = append(all, savable{k.next, func() (*sideFrame, error) {
			p.buffer = p.states.state(i, p.buffer[:0])
			return p.packer.pack(k.next, p.buffer)
		}})
	}
	for i := range p.recorded {
		if f := &p.recorded[i]; f.side != nil && !f.bad && f.doubt == nil && !p.states.has(f.next) {
			all = append(all, savable{f.next, func() (*sideFrame, error) { return f.side, nil }})
		}
	}
	slices.SortFunc(all, func(a, b savable) int { return cmp.Compare(a.next, b.next) })
	var gives []func() (*sideFrame, error)
	for _, s := range all {
		if d := p.report.Desync; d == nil || s.next <= d.Tick {
			gives = append(gives, s.give)
		}
	}
	return gives
}

// spread orders a list so that each beginning of it is spread over the whole:
// the first, the middle, the quarters and so on.
func spread[T any](list []T) []T {
	order := make([]int, len(list))
	for i := range order {
		order[i] = i
	}
	level := func(i int) int { return bits.TrailingZeros(uint(i)) } // 0 has the most
	slices.SortStableFunc(order, func(a, b int) int { return level(b) - level(a) })
	out := make([]T, len(list))
	for i, at := range order {
		out[i] = list[at]
	}
	return out
}

// ReadKeyframes takes the keyframes of a side file, and gives their number. It
// is called before the first move. Each is compared with the recorded hashes
// before it is relied on, as a recorded keyframe is; see BadKeyframes. The error
// is ErrUnable where the game cannot load, that of r, or matches
// ErrKeyframeFile: then the playback is as good as before.
func (p *Playback) ReadKeyframes(r io.Reader, simulation string, limit int64) (int, error) {
	switch {
	case p.keeper == nil:
		return 0, fmt.Errorf("%w: the game cannot load", ErrUnable)
	case p.file.Summary().Hashes == 0:
		return 0, sideError("the replay has no hash that its keyframes could be compared with")
	}
	b, err := io.ReadAll(io.LimitReader(r, limit+1))
	switch {
	case err != nil:
		return 0, err
	case int64(len(b)) > limit:
		return 0, sideError("it has more than %d bytes", limit)
	}
	h, frames, err := parseSide(b)
	if err == nil {
		err = p.belongs(&h, simulation)
	}
	if err != nil {
		return 0, err
	}
	first := p.start.Meta.FirstTick
	for _, f := range frames {
		if f.next > first {
			p.recorded = append(p.recorded, recordedFrame{next: f.next, side: f})
		}
	}
	return len(frames), nil
}

// belongs refuses a side file of another simulation or replay.
func (p *Playback) belongs(h *sideHead, simulation string) error {
	s := p.file.Summary()
	switch {
	case h.simulation != simulation:
		return sideError("it was made by another simulation or build")
	case h.covered > s.NextTick:
		return sideError("it belongs to a longer replay, up to tick %d", h.covered)
	}
	replay := digestIdentity(s)
	if strings.HasPrefix(h.replay, contentPrefix) {
		var err error
		if replay, err = p.contentIdentity(h.covered); err != nil {
			return err
		}
	}
	if h.replay != replay {
		return sideError("it belongs to another replay")
	}
	return nil
}

// identity identifies the replay: by its content digest or, while it has none,
// by what it holds so far.
func (p *Playback) identity() (string, error) {
	if s := p.file.Summary(); s.Digest != nil {
		return digestIdentity(s), nil
	}
	return p.contentIdentity(p.file.Summary().NextTick)
}

func digestIdentity(s *format.Summary) string {
	if s.Digest == nil {
		return ""
	}
	return "digest " + s.Digest.String()
}

const contentPrefix = "content "

// contentIdentity identifies what leads to the states of a replay that may
// still grow: the metadata, the code book and the steps below tick covered.
func (p *Playback) contentIdentity(covered format.Tick) (string, error) {
	hash := sha256.New()
	hash.Write(format.AppendMeta(nil, p.file.Summary().Meta))
	if book := p.file.Book(); book != nil {
		hash.Write(format.AppendBook(nil, book))
	}
	r := p.file.Reader()
	var tick format.TickRecord
	var head []byte
	for {
		err := r.Next(&tick)
		if errors.Is(err, io.EOF) || errors.Is(err, format.ErrTorn) || err == nil && tick.Tick >= covered {
			return contentPrefix + hex.EncodeToString(hash.Sum(nil)), nil
		}
		if err != nil {
			return "", err
		}
		head = head[:0]
		for _, n := range []uint64{uint64(tick.Tick), uint64(tick.Width), uint64(tick.Steps), uint64(len(tick.Commands)), uint64(len(tick.Params))} {
			head = binary.LittleEndian.AppendUint64(head, n)
		}
		hash.Write(head)
		hash.Write(tick.Commands)
		hash.Write(tick.Params)
	}
}
