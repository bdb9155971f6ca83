package player

import (
	"fmt"
	"strings"

	"reprise/format"
)

// A collection finds changes that nobody recorded. Between BeginCollection
// and EndCollection, which stand around the handling of one input, every
// method that changes the game's state and is meant for players is called
// through Marked. Where some was and no step was recorded meanwhile, a replay
// would miss the change: warning 161 names the calls.
type collection struct {
	open bool
	// before is the recording's length at the begin.
	before int
	calls  []MarkedCall
	// depth counts the marked calls being made, base those around the begin.
	depth, base int
	// ignored is set by a call that makes the collection meaningless.
	ignored bool
	// details are those of the last warnings; number is that of the newest.
	details []UnrecordedDetail
	number  int
}

// keptDetails bounds the details that can still be asked for.
const keptDetails = 64

// MarkedCall is one call through Marked, inside Depth others.
type MarkedCall struct {
	Name  string
	Depth int
}

// UnrecordedDetail is what warning 161 found: all marked calls in order.
type UnrecordedDetail struct {
	Number int
	Calls  []MarkedCall
}

// String prints the calls, each under the one it came from.
func (d UnrecordedDetail) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "unrecorded change %d:\n", d.Number)
	for _, c := range d.Calls {
		fmt.Fprintf(&b, "%s%s\n", strings.Repeat("  ", c.Depth+1), c.Name)
	}
	return b.String()
}

// outer is the first call, inner the first one at the greatest depth.
func (d UnrecordedDetail) outer() string { return d.Calls[0].Name }

func (d UnrecordedDetail) inner() string {
	deepest := d.Calls[0]
	for _, c := range d.Calls {
		if c.Depth > deepest.Depth {
			deepest = c
		}
	}
	return deepest.Name
}

// BeginCollection begins to collect marked calls; warning 159 where a
// collection is open already, which then goes on.
func (s *ReplaySystem) BeginCollection() {
	s.mu.Lock()
	open := s.safety.open
	if !open {
		s.safety.open, s.safety.before = true, s.array.Len()
		s.safety.calls, s.safety.ignored = nil, false
		s.safety.base = s.safety.depth
	}
	s.mu.Unlock()
	if open {
		s.warnPlain(format.WarnCollectionOpen, "")
	}
}

// EndCollection ends the collection: warning 160 where none is open, 161
// where something changed and no step was recorded.
func (s *ReplaySystem) EndCollection() {
	s.mu.Lock()
	c := &s.safety
	open := c.open
	c.open = false
	unrecorded := open && !c.ignored && len(c.calls) > 0 && s.array.Len() <= c.before
	var detail UnrecordedDetail
	if unrecorded {
		detail = c.keep()
	}
	s.mu.Unlock()
	switch {
	case !open:
		s.warnPlain(format.WarnCollectionClosed, "")
	case unrecorded:
		s.warnPlain(format.WarnUnrecorded, fmt.Sprintf("%s, inside it %s (detail %d)", detail.outer(), detail.inner(), detail.Number))
	}
}

// keep stores the calls under the next number.
func (c *collection) keep() UnrecordedDetail {
	c.number++
	detail := UnrecordedDetail{Number: c.number, Calls: c.calls}
	c.calls = nil
	c.details = append(c.details, detail)
	if len(c.details) > keptDetails {
		c.details = c.details[1:]
	}
	return detail
}

// Unrecorded gives the detail of a warning 161 by its number; warning 162 and
// false where none has it. The last 64 are kept.
func (s *ReplaySystem) Unrecorded(number int) (UnrecordedDetail, bool) {
	s.mu.Lock()
	for _, d := range s.safety.details {
		if d.Number == number {
			s.mu.Unlock()
			return d, true
		}
	}
	s.mu.Unlock()
	s.warnPlain(format.WarnUnknownDetail, fmt.Sprintf("number %d", number))
	return UnrecordedDetail{}, false
}

// Marked calls f, a change that a player makes, and notes it as name in the
// open collection. Without one, and while recording is disabled (what a
// script does is not recorded), it only calls f.
func (s *ReplaySystem) Marked(name string, f func()) {
	s.enter(name)
	defer s.exit()
	f()
}

// MarkedIgnored calls f like Marked, and makes the open collection warn of
// nothing: f changes state in ways that are recorded elsewhere.
func (s *ReplaySystem) MarkedIgnored(name string, f func()) {
	s.mu.Lock()
	s.safety.ignored = s.safety.open || s.safety.ignored
	s.mu.Unlock()
	s.Marked(name, f)
}

// MarkedResult is Marked for a function with a result.
func MarkedResult[T any](s *ReplaySystem, name string, f func() T) (result T) {
	s.Marked(name, func() { result = f() })
	return result
}

func (s *ReplaySystem) enter(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := &s.safety
	if c.open && s.array.Enabled() {
		c.calls = append(c.calls, MarkedCall{Name: name, Depth: max(0, c.depth-c.base)})
	}
	c.depth++
}

func (s *ReplaySystem) exit() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.safety.depth--
}

func (s *ReplaySystem) warnPlain(code format.WarningCode, detail string) {
	s.options.Warn(format.Warning{Code: code, Step: format.NoStep, Detail: detail})
}
