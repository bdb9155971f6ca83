package format

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// Aspects of a replay that Diff compares, in this order.
const (
	DiffMeta      = "metadata"
	DiffBook      = "code book"
	DiffPlayers   = "players"
	DiffTicks     = "ticks"
	DiffHashes    = "hashes"
	DiffTimes     = "times"
	DiffKeyframes = "keyframes"
	DiffMarks     = "marks"
	DiffReports   = "reports"
	DiffEnd       = "end"
)

// DiffAspects lists what Diff compares. The ticks, their hashes and their
// times are compared together, tick by tick; gaps count with the ticks.
var DiffAspects = []string{DiffMeta, DiffBook, DiffPlayers, DiffTicks, DiffHashes, DiffTimes, DiffKeyframes, DiffMarks, DiffReports, DiffEnd}

// Difference is one place where two replays say different things.
type Difference struct {
	// Aspect is one of DiffAspects.
	Aspect string
	// Tick is the tick that differs; only with HasTick.
	Tick    Tick
	HasTick bool
	// Step is the step of the tick, from 0 on; -1 where it is not one step
	// that differs.
	Step int
	// What names what differs, by the names of the code book: "step 2 (move),
	// parameter 1 (x)".
	What string
	// A and B are what the two say; empty where one says nothing.
	A, B string
}

// String is for people.
func (d Difference) String() string {
	s := d.Aspect
	if d.HasTick {
		s = fmt.Sprintf("tick %d", d.Tick)
	}
	say := func(v string) string {
		if v == "" {
			return "nothing"
		}
		return v
	}
	return fmt.Sprintf("%s, %s: %s, against %s", s, d.What, say(d.A), say(d.B))
}

// DiffOptions say what Diff passes over.
type DiffOptions struct {
	// Ignore holds DiffAspects that are not compared.
	Ignore []string
}

// Diff compares what two replays say, not how their files store it: the format,
// the width of codes, the cut into chunks, how parameters are encoded, and
// whether a file has a footer make no difference. Where one of them has no
// end, its end is not compared. It gives the differences in order to each
// until that returns an error, which Diff returns.
func Diff(a, b *File, o DiffOptions, each func(Difference) error) error {
	d := &differ{a: a, b: b, each: each, ignore: o.Ignore}
	for _, part := range [...]struct {
		aspect  string
		compare func()
	}{
		{DiffMeta, d.meta}, {DiffBook, d.book}, {DiffPlayers, d.players}, {"", d.ticks},
		{DiffKeyframes, d.keyframes}, {DiffMarks, d.marks}, {DiffReports, d.reports}, {DiffEnd, d.end},
	} {
		if d.err == nil && !slices.Contains(o.Ignore, part.aspect) {
			part.compare()
		}
	}
	return d.err
}

// differ compares two replays. Its first error stays.
type differ struct {
	a, b   *File
	each   func(Difference) error
	ignore []string
	err    error

	tickA, tickB   TickRecord
	stepsA, stepsB StepReader
}

func (d *differ) report(x Difference) {
	if d.err == nil && !slices.Contains(d.ignore, x.Aspect) {
		d.err = d.each(x)
	}
}

// values reports two printed values that differ.
func (d *differ) values(aspect, what, a, b string) {
	if a != b {
		d.report(Difference{Aspect: aspect, Step: -1, What: what, A: a, B: b})
	}
}

func (d *differ) meta() {
	x, y := d.a.sum.Meta, d.b.sum.Meta
	text := func(what, a, b string) { d.values(DiffMeta, what, quoted(a), quoted(b)) }
	text("session", x.Session, y.Session)
	text("game", x.Game, y.Game)
	text("build", x.Build, y.Build)
	text("data", x.Data, y.Data)
	text("map", x.Map, y.Map)
	d.values(DiffMeta, "seed", strconv.FormatUint(x.Seed, 10), strconv.FormatUint(y.Seed, 10))
	d.values(DiffMeta, "tick rate", x.TickRate.String(), y.TickRate.String())
	d.values(DiffMeta, "first tick", fmt.Sprint(x.FirstTick), fmt.Sprint(y.FirstTick))
	d.values(DiffMeta, "started at, microseconds since 1970", nonZero(x.StartedAt), nonZero(y.StartedAt))
	d.values(DiffMeta, "bytes of a state hash", nonZero(int64(x.HashBytes)), nonZero(int64(y.HashBytes)))
	d.values(DiffMeta, "parts of the state hash", printList(x.HashParts, func(p HashPart) string { return fmt.Sprintf("%s %d", quoted(p.Name), p.Bytes) }),
		printList(y.HashParts, func(p HashPart) string { return fmt.Sprintf("%s %d", quoted(p.Name), p.Bytes) }))
	d.lists(DiffMeta, "label", labelTexts(x.Labels), labelTexts(y.Labels))
	d.lists(DiffMeta, "environment", labelTexts(x.Env), labelTexts(y.Env))
	text("format of the origin", x.Origin.Format, y.Origin.Format)
	text("header of the origin", string(x.Origin.Header), string(y.Origin.Header))
	text("fields of a newer version", string(x.unknown), string(y.unknown))
}

func quoted(s string) string {
	if s == "" {
		return ""
	}
	return strconv.Quote(s)
}

func nonZero(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

func printList[T any](list []T, text func(T) string) string {
	var parts []string
	for _, x := range list {
		parts = append(parts, text(x))
	}
	return strings.Join(parts, ", ")
}

func labelTexts(labels []Label) []string {
	var texts []string
	for _, l := range labels {
		texts = append(texts, fmt.Sprintf("%s = %s", strconv.Quote(l.Key), strconv.Quote(l.Value)))
	}
	return texts
}

// lists reports the entries of two lists that differ, by their places from 1
// on.
func (d *differ) lists(aspect, what string, a, b []string) {
	for i := range max(len(a), len(b)) {
		var x, y string
		if i < len(a) {
			x = a[i]
		}
		if i < len(b) {
			y = b[i]
		}
		d.values(aspect, fmt.Sprintf("%s %d", what, i+1), x, y)
	}
}

// book compares the entries by their codes: their order says nothing.
func (d *differ) book() {
	var codes []uint16
	for _, b := range [...]*CodeBook{d.a.book, d.b.book} {
		if b == nil {
			continue
		}
		for _, c := range b.Codes {
			codes = append(codes, c.Code)
		}
	}
	slices.Sort(codes)
	for _, c := range slices.Compact(codes) {
		d.values(DiffBook, fmt.Sprintf("code %d", c), codeText(d.a.book.Lookup(c)), codeText(d.b.book.Lookup(c)))
	}
}

func codeText(c *CodeInfo) string {
	if c == nil {
		return ""
	}
	s := strconv.Quote(c.Name)
	if c.Passive {
		s += " passive"
	}
	return s + "(" + printList(c.Params, func(p ParamInfo) string {
		s := strings.TrimSpace(strconv.Quote(p.Name) + " " + p.Type)
		if p.Personal {
			s += " personal"
		}
		return s
	}) + ")"
}

func (d *differ) players() {
	text := func(e PlayerEvent) string {
		switch {
		case e.Leave:
			return fmt.Sprintf("player %d leaves at tick %d", e.ID, e.Tick)
		case e.Observer:
			return fmt.Sprintf("player %d %q of team %q joins at tick %d as an observer", e.ID, e.Name, e.Team, e.Tick)
		}
		return fmt.Sprintf("player %d %q of team %q joins at tick %d", e.ID, e.Name, e.Team, e.Tick)
	}
	d.lists(DiffPlayers, "event", textsOf(d.a.sum.Players, text), textsOf(d.b.sum.Players, text))
}

func textsOf[T any](list []T, text func(T) string) []string {
	texts := make([]string, len(list))
	for i, x := range list {
		texts[i] = text(x)
	}
	return texts
}

func (d *differ) marks() {
	text := func(m Mark) string {
		return fmt.Sprintf("tick %d, %q, player %d, %q", m.Tick, m.Kind, m.Player, m.Text)
	}
	d.lists(DiffMarks, "mark", textsOf(d.a.sum.Marks, text), textsOf(d.b.sum.Marks, text))
}

func (d *differ) end() {
	x, y := d.a.sum.End, d.b.sum.End
	if x == nil || y == nil {
		return
	}
	d.values(DiffEnd, "state", x.State.String(), y.State.String())
	d.values(DiffEnd, "reason", quoted(x.Reason), quoted(y.Reason))
}

// ticks walks both replays along: what one of them lacks lies in a gap, or
// before its first or behind its last tick.
func (d *differ) ticks() {
	ra, rb := d.a.Reader(), d.b.Reader()
	moreA, moreB := d.next(ra, &d.tickA), d.next(rb, &d.tickB)
	for d.err == nil && (moreA || moreB) {
		switch {
		case !moreB || moreA && d.tickA.Tick < d.tickB.Tick:
			d.only(&d.tickA, func(x string) (string, string) { return x, "" })
			moreA = d.next(ra, &d.tickA)
		case !moreA || d.tickB.Tick < d.tickA.Tick:
			d.only(&d.tickB, func(x string) (string, string) { return "", x })
			moreB = d.next(rb, &d.tickB)
		default:
			d.tick()
			moreA, moreB = d.next(ra, &d.tickA), d.next(rb, &d.tickB)
		}
	}
	if !slices.Contains(d.ignore, DiffTicks) {
		d.gaps()
	}
}

func (d *differ) next(r *Reader, t *TickRecord) bool {
	if d.err != nil {
		return false
	}
	err := r.Next(t)
	if err != nil && !errors.Is(err, io.EOF) {
		d.err = err
	}
	return err == nil
}

// only reports a tick that one of the replays does not have.
func (d *differ) only(t *TickRecord, sides func(string) (string, string)) {
	a, b := sides(plural(t.Steps, "step"))
	d.report(Difference{Aspect: DiffTicks, Tick: t.Tick, HasTick: true, Step: -1, What: "the tick", A: a, B: b})
}

// tick compares a tick that both have.
func (d *differ) tick() {
	a, b := &d.tickA, &d.tickB
	if !sameSteps(a, b) {
		d.steps(a, b)
	}
	if !bytes.Equal(a.Hash, b.Hash) {
		d.report(Difference{Aspect: DiffHashes, Tick: a.Tick, HasTick: true, Step: -1, What: "state hash", A: hex.EncodeToString(a.Hash), B: hex.EncodeToString(b.Hash)})
	}
	if a.HasTime != b.HasTime || a.Time != b.Time {
		d.report(Difference{Aspect: DiffTimes, Tick: a.Tick, HasTick: true, Step: -1, What: "time in microseconds", A: timeText(a), B: timeText(b)})
	}
}

func timeText(t *TickRecord) string {
	if !t.HasTime {
		return ""
	}
	return strconv.FormatInt(t.Time, 10)
}

// steps reports every step of a tick that differs, by its place.
func (d *differ) steps(a, b *TickRecord) {
	d.stepsA.Reset(a)
	d.stepsB.Reset(b)
	for n := range max(a.Steps, b.Steps) {
		var x, y Step
		haveA, haveB := d.stepsA.Next(&x), d.stepsB.Next(&y)
		if haveA && haveB && x.Code == y.Code {
			d.params(a.Tick, n, x, y)
			continue
		}
		var textA, textB string
		if haveA {
			textA = stepText(d.a.book, x)
		}
		if haveB {
			textB = stepText(d.b.book, y)
		}
		d.report(Difference{Aspect: DiffTicks, Tick: a.Tick, HasTick: true, Step: n, What: fmt.Sprintf("step %d", n), A: textA, B: textB})
	}
}

// params reports every parameter of a step that differs.
func (d *differ) params(tick Tick, n int, x, y Step) {
	info := d.a.book.Lookup(x.Code)
	for i := range max(len(x.Params), len(y.Params)) {
		var a, b string
		switch {
		case i < len(x.Params) && i < len(y.Params) && x.Params[i].Equal(y.Params[i]):
			continue
		case i < len(x.Params) && i < len(y.Params):
			a, b = typedText(x.Params[i], y.Params[i]), typedText(y.Params[i], x.Params[i])
		case i < len(x.Params):
			a = x.Params[i].String()
		default:
			b = y.Params[i].String()
		}
		what := fmt.Sprintf("step %d (%s), parameter %d", n, codeName(info, x.Code), i)
		if name := info.paramName(i); name != "" {
			what += " (" + name + ")"
		}
		d.report(Difference{Aspect: DiffTicks, Tick: tick, HasTick: true, Step: n, What: what, A: a, B: b})
	}
}

// typedText names the kind of a value that another kind prints alike.
func typedText(v, other Value) string {
	if v.Kind() != other.Kind() {
		return v.Kind().String() + " " + v.String()
	}
	return v.String()
}

func stepText(book *CodeBook, s Step) string {
	info := book.Lookup(s.Code)
	return codeName(info, s.Code) + "(" + printList(s.Params, Value.String) + ")"
}

func codeName(info *CodeInfo, code uint16) string {
	if info == nil || info.Name == "" {
		return fmt.Sprintf("code %d", code)
	}
	return info.Name
}

// paramName is the name of parameter i; empty where there is none.
func (c *CodeInfo) paramName(i int) string {
	if c == nil || i >= len(c.Params) {
		return ""
	}
	return c.Params[i].Name
}

// gaps compares what the declared gaps say of ticks that both lack.
func (d *differ) gaps() {
	text := func(g Gap) string {
		by := "producer"
		if g.ByRecorder {
			by = "recorder"
		}
		return fmt.Sprintf("ticks %d to %d, declared by the %s, %q", g.First, g.Last, by, g.Reason)
	}
	d.lists(DiffTicks, "gap", textsOf(d.a.sum.Gaps, text), textsOf(d.b.sum.Gaps, text))
}

// keyframes compares the states by their ticks.
func (d *differ) keyframes() {
	a, b := d.a.keyframesByTick(), d.b.keyframesByTick()
	at := func(f *File, list []int) Tick {
		if len(list) == 0 {
			return MaxTick + 1
		}
		return f.sum.Keyframes[list[0]].NextTick
	}
	for d.err == nil && len(a)+len(b) > 0 {
		tick := min(at(d.a, a), at(d.b, b))
		var x, y *Keyframe
		if at(d.a, a) == tick {
			x, a = d.keyframe(d.a, a[0]), a[1:]
		}
		if at(d.b, b) == tick {
			y, b = d.keyframe(d.b, b[0]), b[1:]
		}
		d.oneKeyframe(tick, x, y)
	}
}

func (d *differ) keyframe(f *File, i int) *Keyframe {
	k, err := f.Keyframe(i)
	if d.err == nil {
		d.err = err
	}
	return k
}

func (d *differ) oneKeyframe(tick Tick, x, y *Keyframe) {
	diff := Difference{Aspect: DiffKeyframes, Tick: tick, HasTick: true, Step: -1, What: "keyframe before the tick"}
	switch {
	case x == nil && y == nil:
		return
	case y == nil:
		diff.A = plural(len(x.State), "byte")
	case x == nil:
		diff.B = plural(len(y.State), "byte")
	case bytes.Equal(x.State, y.State):
		return
	default:
		at := firstDifferent(x.State, y.State)
		diff.What += fmt.Sprintf(", from byte %d on", at)
		diff.A, diff.B = bytesAt(x.State, at), bytesAt(y.State, at)
	}
	d.report(diff)
}

func firstDifferent(a, b []byte) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}

// bytesAt prints some bytes of a state.
func bytesAt(state []byte, at int) string {
	const most = 8
	return fmt.Sprintf("%x of %s", state[at:min(at+most, len(state))], plural(len(state), "byte"))
}

func (d *differ) reports() {
	x, y := noteFeed{f: d.a}, noteFeed{f: d.b}
	for n := 1; d.err == nil; n++ {
		a, b := d.takeReport(&x), d.takeReport(&y)
		if a == "" && b == "" {
			return
		}
		d.values(DiffReports, fmt.Sprintf("report %d", n), a, b)
	}
}

// takeReport prints the next report; empty behind the last one.
func (d *differ) takeReport(n *noteFeed) string {
	r, err := n.report()
	if d.err == nil {
		d.err = err
	}
	if err != nil || r == nil {
		return ""
	}
	n.reports = n.reports[1:]
	return fmt.Sprintf("peer %d at tick %d: %x for tick %d", r.Peer, r.At, r.Hash, r.Of)
}
