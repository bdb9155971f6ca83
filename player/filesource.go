package player

import (
	"slices"

	"reprise/format"
)

// FileSource is the Source of an opened replay. It gives the keyframe before
// the first tick, every tick and every declared gap, and finds the other
// keyframes when they are asked for. It holds one chunk in memory.
type FileSource struct {
	file   *format.File
	reader *format.Reader
	opened bool
	due    format.Tick
	gaps   []format.Gap // those not yet given

	tick format.TickRecord
	held bool // tick waits behind a gap
	err  error
}

// NewFileSource starts before the first tick of file.
func NewFileSource(file *format.File) *FileSource {
	s := file.Summary()
	return &FileSource{file: file, reader: file.Reader(), due: s.Meta.FirstTick, gaps: s.Gaps}
}

// Seek moves the source so that the next tick is t, or the first one behind it
// that is recorded. The keyframe before it is then not given.
func (s *FileSource) Seek(t format.Tick) {
	s.reader.Seek(t)
	s.opened, s.held, s.err = true, false, nil
	s.due, s.gaps = t, s.file.Summary().Gaps
	for len(s.gaps) > 0 && s.gaps[0].Last < t {
		s.gaps = s.gaps[1:]
	}
}

// Next gives the next item; see Source. A torn file ends where it is torn.
func (s *FileSource) Next() (Item, error) {
	if !s.opened {
		s.opened = true
		k, err := s.find(s.due)
		if err != nil || k != nil {
			return Item{Keyframe: k}, err
		}
	}
	if !s.held {
		s.err = s.reader.Next(&s.tick)
		s.held = true
	}
	if len(s.gaps) > 0 && s.gaps[0].First == s.due && (s.err != nil || s.tick.Tick > s.due) {
		gap := s.gaps[0]
		s.gaps = s.gaps[1:]
		s.due = gap.Last + 1
		return Item{Gap: &gap}, nil
	}
	if s.err != nil {
		return Item{}, s.err
	}
	s.held = false
	s.due = s.tick.Tick + 1
	return Item{Tick: &s.tick}, nil
}

// FindKeyframe reads the state before tick next; see KeyframeFinder.
func (s *FileSource) FindKeyframe(next format.Tick) ([]byte, error) {
	k, err := s.find(next)
	if k == nil {
		return nil, err
	}
	return k.State, nil
}

func (s *FileSource) find(next format.Tick) (*format.Keyframe, error) {
	i := slices.IndexFunc(s.file.Summary().Keyframes, func(k format.KeyframeInfo) bool { return k.NextTick == next })
	if i < 0 {
		return nil, nil
	}
	return s.file.Keyframe(i)
}

// StartOf describes the start of a replay: all that a game may be built from,
// without a keyframe.
func StartOf(file *format.File) Start {
	s := file.Summary()
	return Start{Meta: s.Meta, Book: file.Book(), NextTick: s.Meta.FirstTick, Players: playersAtStart(s)}
}

// playersAtStart gives those who are there before the first tick, as they
// joined then: what a player does later must not reach the game's first
// state.
func playersAtStart(s *format.Summary) []format.Player {
	var early format.Summary
	for _, e := range s.Players {
		if e.Tick <= s.Meta.FirstTick {
			early.Players = append(early.Players, e)
		}
	}
	return slices.DeleteFunc(early.Roster(), func(p format.Player) bool {
		return len(p.Stays) == 0 || !p.Stays[len(p.Stays)-1].Open
	})
}
