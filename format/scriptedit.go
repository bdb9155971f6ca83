package format

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
)

// EditOptions say how Edit treats what a change makes untrue.
type EditOptions struct {
	// KeepHashes keeps state hashes, keyframes and reports also where they
	// are of another past: verifying then shows where the changes tell.
	KeepHashes bool
	// Salt stands before the players where the replay has none. Nil means
	// one derived from the metadata, which anyone can guess.
	Salt []byte
}

// EditReport says what Edit did.
type EditReport struct {
	// FirstChanged is the first tick whose inputs, or the state before it,
	// are not as recorded; nil where there is none.
	FirstChanged *Tick
	// Inserted, Deleted and Set count steps.
	Inserted, Deleted, Set int
	// Hashes, Keyframes and Reports count what was dropped, for it is no
	// proof any more; or, with KeepHashes, what was kept all the same.
	Hashes, Keyframes, Reports int
	Kept                       bool
	// Source is what the replay now says of the one that it was made of.
	Source string
}

// Edit writes a replay with a script's changes. State hashes and reports from
// the first changed tick on, and keyframes behind it, are no proofs of the new
// replay and are left out. Its label LabelEditedFrom names the replay that was
// edited. It has no session id unless the script gives it one, for it is not
// the session. Lines that cannot be carried out give a ScriptError. out must
// be empty; after an error it is of no use.
func Edit(f *File, out ReplayFile, s *EditScript, o EditOptions) (*EditReport, error) {
	e := &editor{f: f, o: o, meta: *f.sum.Meta, players: slices.Clone(f.sum.Players), marks: slices.Clone(f.sum.Marks), done: &EditReport{Kept: o.KeepHashes}}
	e.meta.Session = ""
	e.meta.Labels = slices.Clone(e.meta.Labels)
	for i := range s.ops {
		op := s.ops[i]
		if err := e.prepare(&op); err != nil {
			return nil, &ScriptError{Line: op.line, What: err.Error()}
		}
	}
	if err := e.checkPlayers(s); err != nil {
		return nil, err
	}
	slices.SortStableFunc(e.ops, func(a, b editOp) int { return cmp.Compare(a.first, b.first) })
	if err := e.findFirst(); err != nil {
		return nil, err
	}
	if err := e.label(); err != nil {
		return nil, err
	}
	return e.done, e.write(out)
}

// editor carries out a script.
type editor struct {
	f       *File
	o       EditOptions
	meta    Metadata
	players []PlayerEvent
	marks   []Mark
	// ops change steps, by their first tick.
	ops  []editOp
	done *EditReport

	w      *contentWriter
	next   int       // of ops, those before it have begun
	active []*editOp // those that have begun and not ended, by line
	// first is the first changed tick; start is set where the state before
	// all ticks is another.
	first   Tick
	changed bool
	start   bool
	array   *ReplayArray
}

// prepare carries out what is not about steps, and resolves what is.
func (e *editor) prepare(o *editOp) error {
	switch o.verb {
	case editInsert, editDelete, editSet, editReplace:
		return e.prepareSteps(o)
	case editMark:
		if err := e.recorded(o.mark.Tick); err != nil {
			return err
		}
		at := slices.IndexFunc(e.marks, func(m Mark) bool { return m.Tick > o.mark.Tick })
		if at < 0 {
			at = len(e.marks)
		}
		e.marks = slices.Insert(e.marks, at, o.mark)
	case editUnmark:
		return e.unmark(o)
	case editMeta:
		return e.setMeta(o)
	case editLabel:
		return e.setLabel(o.key, o.text)
	case editUnlabel:
		return e.unlabel(o.key)
	default:
		return e.setPlayer(o)
	}
	return nil
}

// recorded refuses a tick that the replay does not have.
func (e *editor) recorded(t Tick) error {
	s := e.f.sum
	switch gap := gapsWithin(s.Gaps, t, t+1); {
	case s.NextTick == s.Meta.FirstTick:
		return fmt.Errorf("tick %d is not in the replay, which has no ticks", t)
	case t < s.Meta.FirstTick || t >= s.NextTick:
		return fmt.Errorf("tick %d is not in the replay, which has the ticks %d to %d", t, s.Meta.FirstTick, s.NextTick-1)
	case len(gap) > 0:
		return fmt.Errorf("tick %d is missing in the replay, it lies in a gap", t)
	}
	return nil
}

func (e *editor) prepareSteps(o *editOp) error {
	if err := errors.Join(e.recorded(o.first), e.recorded(o.last)); err != nil {
		return err
	}
	if o.verb == editInsert || o.verb == editReplace {
		if err := e.resolveCode(&o.code); err != nil {
			return err
		}
	}
	e.ops = append(e.ops, *o)
	return nil
}

func (e *editor) resolveCode(n *editName) error {
	if n.named {
		book := e.f.book
		if book == nil {
			return fmt.Errorf("the replay has no code book that could name %q: write the code's number", n.name)
		}
		i := slices.IndexFunc(book.Codes, func(c CodeInfo) bool { return c.Name == n.name })
		if i < 0 {
			return fmt.Errorf("the code book names no command %q: write its number, or a name that \"info --json\" lists", n.name)
		}
		n.number = int(book.Codes[i].Code)
	}
	if n.number > 255 {
		e.meta.Width = Width16
	}
	return nil
}

func (e *editor) unmark(o *editOp) error {
	n := len(e.marks)
	e.marks = slices.DeleteFunc(e.marks, func(m Mark) bool { return m.Tick == o.mark.Tick && (o.all || m.Kind == o.mark.Kind) })
	if len(e.marks) == n {
		return fmt.Errorf("there is no such mark at tick %d: \"info\" lists the marks", o.mark.Tick)
	}
	return nil
}

// setMeta sets one field. Those that a game builds its first state from make
// every later state another.
func (e *editor) setMeta(o *editOp) error {
	m := &e.meta
	var field *string
	switch o.key {
	case "game":
		field = &m.Game
	case "build":
		field = &m.Build
	case "session":
		field = &m.Session
	case "data":
		field = &m.Data
	case "map":
		field = &m.Map
	case "seed":
		seed, _ := o.values[0].Uint64()
		e.change(m.FirstTick, seed != m.Seed)
		m.Seed = seed
		return nil
	case "started_at":
		m.StartedAt, _ = o.values[0].Int64()
		return nil
	default:
		m.TickRate, _ = parseRate(o.text)
		return nil
	}
	if o.key == "data" || o.key == "map" {
		e.change(m.FirstTick, *field != o.text)
	}
	*field = o.text
	return nil
}

// change notes that the game starts from another state, or gets other players,
// before tick t.
func (e *editor) change(t Tick, differs bool) {
	if !differs {
		return
	}
	e.start = e.start || t <= e.meta.FirstTick
	if t = max(t, e.meta.FirstTick); !e.changed || t < e.first {
		e.first, e.changed = t, true
	}
}

func (e *editor) setLabel(key, value string) error {
	for i, l := range e.meta.Labels {
		if l.Key == key {
			e.meta.Labels[i].Value = value
			return nil
		}
	}
	return e.addLabel(key, value)
}

func (e *editor) addLabel(key, value string) error {
	if len(e.meta.Labels) >= MaxLabels {
		return fmt.Errorf("%w: the replay has %d labels already: remove one with \"unlabel KEY\"", ErrLimit, MaxLabels)
	}
	e.meta.Labels = append(e.meta.Labels, Label{key, value})
	return nil
}

func (e *editor) unlabel(key string) error {
	n := len(e.meta.Labels)
	e.meta.Labels = slices.DeleteFunc(e.meta.Labels, func(l Label) bool { return l.Key == key })
	if len(e.meta.Labels) == n {
		return fmt.Errorf("there is no label %q: \"info\" lists the labels", key)
	}
	return nil
}

func (e *editor) setPlayer(o *editOp) error {
	if o.verb != editRename {
		at := slices.IndexFunc(e.players, func(p PlayerEvent) bool { return p.Tick > o.player.Tick })
		if at < 0 {
			at = len(e.players)
		}
		e.players = slices.Insert(e.players, at, o.player)
		e.change(o.player.Tick, true)
		return nil
	}
	found := false
	for i := range e.players {
		if p := &e.players[i]; p.ID == o.player.ID && !p.Leave {
			p.Name, found = o.player.Name, true
		}
	}
	if !found {
		return fmt.Errorf("there is no player %d: \"info\" lists the players", o.player.ID)
	}
	return nil
}

// checkPlayers checks that joins and leaves of each player alternate, and
// names the last line about one of whom they do not.
func (e *editor) checkPlayers(s *EditScript) error {
	present := map[uint64]bool{}
	for _, p := range e.players {
		if present[p.ID] == p.Leave {
			present[p.ID] = !p.Leave
			continue
		}
		what := "joins twice without a leave between"
		if p.Leave {
			what = "leaves without having joined"
		}
		return &ScriptError{Line: s.lastPlayerLine(p.ID), What: fmt.Sprintf("player %d then %s, at tick %d: \"info\" lists when players came and went", p.ID, what, p.Tick)}
	}
	return nil
}

func (s *EditScript) lastPlayerLine(id uint64) int {
	line := 0
	for _, o := range s.ops {
		if (o.verb == editJoin || o.verb == editLeave) && o.player.ID == id {
			line = o.line
		}
	}
	return line
}

// findFirst finds the first tick whose steps will be others.
func (e *editor) findFirst() error {
	if len(e.ops) == 0 || e.changed && e.ops[0].first >= e.first {
		return nil
	}
	r := e.f.Reader()
	r.Seek(e.ops[0].first)
	defer func(done EditReport) { *e.done, e.next, e.active = done, 0, nil }(*e.done)
	var t TickRecord
	for {
		err := r.Next(&t)
		if err == io.EOF || err == nil && (e.changed && t.Tick >= e.first || e.next == len(e.ops) && len(e.active) == 0) {
			return nil
		}
		if err != nil {
			return err
		}
		changed := t
		if _, err := e.apply(&changed); err != nil {
			return err
		}
		if !sameSteps(&changed, &t) {
			e.first, e.changed = t.Tick, true
			return nil
		}
	}
}

// label records the edit in the metadata.
func (e *editor) label() error {
	r := e.done
	r.Source = identity(e.f.sum)
	switch {
	case !e.changed:
		r.Source += ", no tick changed"
	case e.o.KeepHashes:
		r.Source += fmt.Sprintf(", changed from tick %d on, hashes kept", e.first)
	default:
		r.Source += fmt.Sprintf(", changed from tick %d on", e.first)
	}
	if e.changed {
		first := e.first
		r.FirstChanged = &first
	}
	return e.addLabel(LabelEditedFrom, r.Source)
}

func (e *editor) write(out ReplayFile) error {
	salt, err := e.f.salt()
	if err != nil {
		return err
	}
	if salt == nil && len(e.players) > 0 {
		salt = e.o.Salt
	}
	if e.w, err = newContentWriter(out, &e.meta, e.f.book, salt); err != nil {
		return err
	}
	t := newTranscript(e.f, e.meta.FirstTick, e.f.sum.NextTick, e)
	t.players, t.marks = e.players, e.marks
	if err := t.run(); err != nil {
		return err
	}
	return e.w.finish(endingOf(e.f, "edited copy"))
}

// begin finds the lines about tick t.
func (e *editor) begin(t Tick) {
	e.active = slices.DeleteFunc(e.active, func(o *editOp) bool { return o.last < t })
	n := len(e.active)
	for ; e.next < len(e.ops) && e.ops[e.next].first <= t; e.next++ {
		e.active = append(e.active, &e.ops[e.next])
	}
	if len(e.active) > n {
		slices.SortFunc(e.active, func(a, b *editOp) int { return cmp.Compare(a.line, b.line) })
	}
}

// apply changes the steps of a tick, and gives the last line that did.
func (e *editor) apply(t *TickRecord) (int, error) {
	if e.begin(t.Tick); len(e.active) == 0 {
		return 0, nil
	}
	if e.array == nil {
		e.array = NewArray(Options{Width: t.Width})
	}
	a := e.array
	state := State{Length: t.Steps, CommandWidth: t.Width, CommandArray: bytes.Clone(t.Commands), ParamArray: bytes.Clone(t.Params)}
	if err := a.LoadState(state); err != nil {
		return 0, err
	}
	a.SetWidth(e.meta.Width)
	line := 0
	for _, o := range e.active {
		line = o.line
		if err := e.step(a, o, t.Tick); err != nil {
			return line, &ScriptError{Line: line, What: err.Error()}
		}
	}
	state = a.SaveState()
	t.Steps, t.Width, t.Commands, t.Params = state.Length, state.CommandWidth, state.CommandArray, state.ParamArray
	return line, nil
}

// step carries out one line on the steps of a tick.
func (e *editor) step(a *ReplayArray, o *editOp, t Tick) error {
	switch {
	case o.verb == editInsert && o.step > a.Len(), o.verb != editInsert && max(o.step, o.lastStep) >= a.Len() && o.step != noStep:
		return outOfSteps(o, a.Len(), t)
	case o.verb == editInsert:
		at := o.step
		if at == noStep {
			at = a.Len()
		}
		e.done.Inserted++
		return written(a.Insert(at, uint16(o.code.number), o.values...))
	case o.verb == editReplace:
		e.done.Set++
		return written(a.Set(o.step, uint16(o.code.number), o.values...))
	case o.verb == editSet:
		return e.setParam(a, o, t)
	case o.step == noStep:
		e.done.Deleted += a.Len()
		a.Clear()
		return nil
	}
	for i := o.lastStep; i >= o.step; i-- {
		a.Delete(i)
		e.done.Deleted++
	}
	return nil
}

// written turns the refusal of a full array into an error.
func written(done bool) error {
	if !done {
		return fmt.Errorf("%w: the tick has no room for the step", ErrTickSize)
	}
	return nil
}

func outOfSteps(o *editOp, steps int, t Tick) error {
	step := max(o.step, o.lastStep)
	switch {
	case o.verb == editInsert:
		return fmt.Errorf("tick %d has %s when this line comes: insert before step 0 to %d", t, plural(steps, "step"), steps)
	case steps == 0:
		return fmt.Errorf("tick %d has no step %d: it has none when this line comes", t, step)
	}
	return fmt.Errorf("tick %d has no step %d: it has the steps 0 to %d when this line comes", t, step, steps-1)
}

func (e *editor) setParam(a *ReplayArray, o *editOp, t Tick) error {
	step, _ := a.Get(o.step)
	i := o.param.number
	if o.param.named {
		if i = e.paramNamed(step.Code, o.param.name); i < 0 {
			return fmt.Errorf("the code book names no parameter %q of code %d: write its number, from 0 on", o.param.name, step.Code)
		}
	}
	if i >= len(step.Params) {
		return fmt.Errorf("step %d of tick %d, code %d, has %s and no parameter %s: give it more with \"replace\"", o.step, t, step.Code, plural(len(step.Params), "parameter"), o.param)
	}
	params := slices.Clone(step.Params)
	params[i] = o.values[0]
	e.done.Set++
	return written(a.Set(o.step, step.Code, params...))
}

func (e *editor) paramNamed(code uint16, name string) int {
	info := e.f.book.Lookup(code)
	if info == nil {
		return -1
	}
	return slices.IndexFunc(info.Params, func(p ParamInfo) bool { return p.Name == name })
}

// untrue tells whether what was true after tick t is so no longer.
func (e *editor) untrue(t Tick) bool { return e.changed && t >= e.first }

func (e *editor) tick(t *TickRecord) error {
	line, err := e.apply(t)
	if err != nil {
		return err
	}
	if t.Hash != nil && e.untrue(t.Tick) {
		e.done.Hashes++
		if !e.o.KeepHashes {
			t.Hash = nil
		}
	}
	err = e.w.Add(t)
	if err != nil && line > 0 {
		return &ScriptError{Line: line, What: fmt.Sprintf("tick %d: %v", t.Tick, err), Err: err}
	}
	return err
}

func (e *editor) keyframe(i int) error {
	next := e.f.sum.Keyframes[i].NextTick
	if e.untrue(next) && (next > e.first || e.start) {
		e.done.Keyframes++
		if !e.o.KeepHashes {
			return nil
		}
	}
	k, err := e.f.Keyframe(i)
	if err != nil {
		return err
	}
	return e.w.Keyframe(*k)
}

func (e *editor) report(r Report) error {
	if e.untrue(r.Of) {
		e.done.Reports++
		if !e.o.KeepHashes {
			return nil
		}
	}
	return e.w.addReport(r)
}

func (e *editor) gap(g Gap) error            { return e.w.Gap(g) }
func (e *editor) player(p PlayerEvent) error { return e.w.addPlayers([]PlayerEvent{p}) }
func (e *editor) mark(m Mark) error          { return e.w.Mark(m) }
