package format

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// EditScript is a list of changes to a replay, one a line. Edit carries them
// out in their order: step numbers are those after the lines before.
//
//	insert TICK[:STEP] CODE VALUE…    a step before step STEP, else behind the last
//	delete TICK:STEP[-STEP]           these steps of a tick
//	delete TICK[-TICK]                all steps of these ticks
//	set TICK:STEP PARAM VALUE         one parameter of a step
//	replace TICK:STEP CODE VALUE…     a whole step
//	mark TICK KIND [TEXT [PLAYER]]    a mark more
//	unmark TICK [KIND]                the marks of a tick, or those of one kind
//	meta KEY VALUE                    game, build, data, map, session, seed, tick_rate, started_at
//	label KEY VALUE                   a label more, or another value
//	unlabel KEY
//	join TICK PLAYER NAME [TEAM [observer]]
//	leave TICK PLAYER
//	rename PLAYER NAME
//
// Ticks, steps, parameters and players are numbers, steps and parameters from
// 0 on. CODE and PARAM are numbers, or names of the code book. A VALUE is
// written as in JSON lines. Other texts are words of letters, digits and
// _ . / -, or JSON strings; the name of a CODE or PARAM that begins with a
// digit needs the quotes. Empty lines, and lines that begin with #, are passed
// over.
type EditScript struct {
	ops []editOp
}

// ScriptError is a line of an edit script that cannot be read, or cannot be
// carried out.
type ScriptError struct {
	// Line counts from 1.
	Line int
	What string
	// Err is the kind of the error, if it has one.
	Err error
}

func (e *ScriptError) Error() string { return fmt.Sprintf("line %d of the script: %s", e.Line, e.What) }

func (e *ScriptError) Unwrap() error { return e.Err }

// editVerb is the first word of a line.
type editVerb string

const (
	editInsert  editVerb = "insert"
	editDelete  editVerb = "delete"
	editSet     editVerb = "set"
	editReplace editVerb = "replace"
	editMark    editVerb = "mark"
	editUnmark  editVerb = "unmark"
	editMeta    editVerb = "meta"
	editLabel   editVerb = "label"
	editUnlabel editVerb = "unlabel"
	editJoin    editVerb = "join"
	editLeave   editVerb = "leave"
	editRename  editVerb = "rename"
)

// editOp is one line.
type editOp struct {
	line int
	verb editVerb
	// first and last are ticks; last is first where the line names one.
	first, last Tick
	// step and lastStep are steps of a tick; noStep where none is named.
	step, lastStep int
	code, param    editName
	values         []Value
	mark           Mark
	player         PlayerEvent
	key, text      string
	// all removes marks of every kind.
	all bool
}

const noStep = -1

// editName is a number, or a name of the code book.
type editName struct {
	name   string
	number int
	named  bool
}

// maxScriptLine bounds a line: the largest holds one step.
const maxScriptLine = MaxJSONLine

// ParseEditScript reads a script. The error is a ScriptError.
func ParseEditScript(text []byte) (*EditScript, error) {
	s := &EditScript{}
	for n := 1; len(text) > 0; n++ {
		line, rest, _ := bytes.Cut(text, []byte("\n"))
		text = rest
		line = bytes.TrimSpace(line)
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		if len(line) > maxScriptLine {
			return nil, &ScriptError{Line: n, What: fmt.Sprintf("it has %d bytes, the most is %d", len(line), maxScriptLine), Err: ErrLimit}
		}
		// Numbers of JSON never end a line, those of a script do.
		p := scriptLine{j: jsonText{b: append(slices.Clip(line), ' ')}, op: editOp{line: n, step: noStep, lastStep: noStep}}
		if err := p.parse(); err != nil {
			return nil, &ScriptError{Line: n, What: err.Error()}
		}
		s.ops = append(s.ops, p.op)
	}
	return s, nil
}

// scriptLine reads one line. Its first failure stays.
type scriptLine struct {
	j  jsonText
	op editOp
}

func (p *scriptLine) parse() error {
	p.op.verb = editVerb(p.word())
	switch p.op.verb {
	case editInsert, editReplace, editSet, editDelete:
		p.steps()
	case editMark, editUnmark:
		p.marks()
	case editMeta:
		p.meta()
	case editLabel, editUnlabel:
		p.op.key = p.name("the label's key")
		if p.op.verb == editLabel {
			p.op.text = p.name("the label's value")
		}
	case editJoin, editLeave, editRename:
		p.players()
	default:
		return fmt.Errorf("%.40q is no operation: use insert, delete, set, replace, mark, unmark, meta, label, unlabel, join, leave or rename", string(p.op.verb))
	}
	if p.more() {
		p.j.fail("%.40q stands behind what %s takes", p.rest(), p.op.verb)
	}
	return p.j.err
}

// more tells whether anything is left, and moves to it.
func (p *scriptLine) more() bool {
	if p.j.err == nil {
		p.j.peek()
	}
	return p.j.err == nil && p.j.at < len(p.j.b)
}

// rest is what was not read, for messages.
func (p *scriptLine) rest() string { return strings.TrimSpace(string(p.j.b[p.j.at:])) }

func (p *scriptLine) steps() {
	o := &p.op
	p.place()
	p.border()
	switch {
	case o.verb == editDelete:
		return
	case o.verb != editInsert && o.step == noStep:
		p.j.fail("%s needs a step: write TICK:STEP, steps count from 0", o.verb)
	}
	if o.verb == editSet {
		o.param = p.nameOrNumber("the parameter", MaxParams-1)
		o.values = []Value{p.value()}
		return
	}
	o.code = p.nameOrNumber("the code", math.MaxUint16)
	for p.more() {
		o.values = append(o.values, p.value())
	}
	if len(o.values) > MaxParams {
		p.j.fail("%d parameters, a step holds at most %d: pack integers into a list like [1,2]", len(o.values), MaxParams)
	}
}

// place reads TICK or TICK:STEP, and of what is to be deleted also TICK-TICK or
// TICK:STEP-STEP.
func (p *scriptLine) place() {
	o := &p.op
	o.first = p.tick()
	o.last = o.first
	switch {
	case o.verb == editDelete && p.j.skip('-'):
		if o.last = p.tick(); o.last < o.first {
			p.j.fail("ticks %d to %d: the second is before the first", o.first, o.last)
		}
	case p.j.skip(':'):
		o.step = p.number("the step", math.MaxInt32)
		o.lastStep = o.step
		if o.verb == editDelete && p.j.skip('-') {
			if o.lastStep = p.number("the last step", math.MaxInt32); o.lastStep < o.step {
				p.j.fail("steps %d to %d: the second is before the first", o.step, o.lastStep)
			}
		}
	}
}

func (p *scriptLine) marks() {
	o := &p.op
	o.mark.Tick = p.tick()
	p.border()
	if o.verb == editUnmark {
		if o.all = !p.more(); !o.all {
			o.mark.Kind = p.name("the kind of the marks")
		}
		return
	}
	o.mark.Kind = p.name("the kind of the mark")
	if p.more() {
		o.mark.Text = p.name("the mark's text")
	}
	if p.more() {
		o.mark.Player = p.id()
		p.border()
	}
}

// metaKeys are the fields that a script may change.
var metaKeys = []string{"game", "build", "data", "map", "session", "seed", "tick_rate", "started_at"}

func (p *scriptLine) meta() {
	o := &p.op
	o.key = p.word()
	switch o.key {
	case "game", "build", "data", "map", "session":
		o.text = p.name("the value of " + o.key)
		if o.key == "session" && o.text != "" && p.j.err == nil {
			p.j.err = ValidSession(o.text)
		}
	case "seed":
		o.values = []Value{Uint(p.digits("the seed", math.MaxUint64))}
		p.border()
	case "tick_rate":
		o.text = p.word()
		if r, ok := parseRate(o.text); p.j.err == nil {
			if !ok {
				p.j.fail("%.40q is no rate of two numbers below 2^32: write it as a decimal like 22.4 or a fraction like 1000/3", o.text)
			}
			o.text = rateText(r)
		}
	case "started_at":
		o.values = []Value{Int(p.j.startedAt())}
		p.border()
	default:
		p.j.fail("meta %.40q cannot be set: use one of %s", o.key, metaKeys)
	}
}

func (p *scriptLine) players() {
	o := &p.op
	if o.verb != editRename {
		o.player.Tick = p.tick()
		p.border()
	}
	o.player.ID = p.id()
	p.border()
	o.player.Leave = o.verb == editLeave
	if o.player.Leave {
		return
	}
	o.player.Name = p.name("the player's name")
	if o.verb == editJoin && p.more() {
		o.player.Team = p.name("the player's team")
	}
	if o.verb == editJoin && p.more() {
		if word := p.word(); word != "observer" {
			p.j.fail("%.40q stands where only observer may", word)
		}
		o.player.Observer = true
	}
}

// word reads up to the next white space.
func (p *scriptLine) word() string {
	p.j.peek()
	start := p.j.at
	for p.j.at < len(p.j.b) && !isSpace(p.j.b[p.j.at]) {
		p.j.at++
	}
	return string(p.j.b[start:p.j.at])
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\r' }

// tick reads a tick.
func (p *scriptLine) tick() Tick {
	return Tick(p.digits("the tick", uint64(MaxTick)))
}

func (p *scriptLine) id() uint64 { return p.digits("the player", math.MaxUint64) }

func (p *scriptLine) number(what string, most int) int { return int(p.digits(what, uint64(most))) }

// digits reads a number from 0 to most.
func (p *scriptLine) digits(what string, most uint64) uint64 {
	j := &p.j
	if j.err != nil {
		return 0
	}
	j.peek()
	start := j.at
	j.digits()
	text := j.b[start:j.at]
	v, err := strconv.ParseUint(string(text), 10, 64)
	if err != nil || v > most || len(text) > 1 && text[0] == '0' {
		j.at = start
		j.fail("%.40q stands where %s is due: a number from 0 to %d", p.word(), what, most)
		return 0
	}
	return v
}

// nameOrNumber reads a number, or a name of the code book.
func (p *scriptLine) nameOrNumber(what string, most int) editName {
	if c := p.j.peek(); c >= '0' && c <= '9' {
		n := editName{number: p.number(what, most)}
		p.border()
		return n
	}
	return editName{named: true, name: p.name(what)}
}

// name reads a text.
func (p *scriptLine) name(what string) string {
	s := p.text(what)
	if len(s) > MaxText {
		p.j.fail("%s has %d bytes, the most is %d", what, len(s), MaxText)
	}
	return s
}

// text reads a word, or a JSON string.
func (p *scriptLine) text(what string) string {
	j := &p.j
	c := j.peek()
	if c == '"' || c == '{' {
		s := j.text(what)
		p.border()
		return s
	}
	start := j.at
	if s := p.word(); isBare(s) || j.err != nil {
		return s
	}
	if start >= len(j.b) {
		j.fail("%s is missing at the end of the line", what)
		return ""
	}
	j.fail("%.40q stands where %s is due: put a text in double quotes", j.b[start:j.at], what)
	return ""
}

// isBare tells whether s can be read without quotes.
func isBare(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !isLetter(c) && !(c >= '0' && c <= '9' || c == '_' || c == '.' || c == '/' || c == '-') {
			return false
		}
	}
	return s != ""
}

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

// value reads one parameter.
func (p *scriptLine) value() Value {
	if !p.more() && p.j.err == nil {
		p.j.fail("the value is missing at the end of the line")
		return Value{}
	}
	at := p.j.at
	v := p.j.value()
	if p.j.err != nil && at < len(p.j.b) && isLetter(p.j.b[at]) {
		p.j.err = fmt.Errorf("%w: put a text in double quotes", p.j.err)
	}
	p.border()
	return v.Clone()
}

// border checks that white space, or the end, follows.
func (p *scriptLine) border() {
	if p.j.err == nil && p.j.at < len(p.j.b) && !isSpace(p.j.b[p.j.at]) {
		p.j.fail("%.40q follows without a space", p.rest())
	}
}

// rateText spells a rate as a script does.
func rateText(r Rate) string {
	return string(bytes.Trim(appendRate(nil, r), `"`))
}

// Append appends the script's lines in the one form that Append writes.
// Comments are not kept.
func (s *EditScript) Append(dst []byte) []byte {
	for i := range s.ops {
		dst = append(s.ops[i].append(dst), '\n')
	}
	return dst
}

func (o *editOp) append(dst []byte) []byte {
	dst = append(dst, o.verb...)
	switch o.verb {
	case editInsert, editReplace, editSet, editDelete:
		return o.appendSteps(dst)
	case editMark, editUnmark:
		return o.appendMark(dst)
	case editMeta:
		return o.appendMeta(dst)
	case editLabel:
		return appendName(appendName(dst, o.key), o.text)
	case editUnlabel:
		return appendName(dst, o.key)
	}
	if o.verb != editRename {
		dst = appendNumber(dst, ' ', uint64(o.player.Tick))
	}
	dst = appendNumber(dst, ' ', o.player.ID)
	if o.verb != editLeave {
		dst = appendName(dst, o.player.Name)
	}
	if o.player.Team != "" || o.player.Observer {
		dst = appendName(dst, o.player.Team)
	}
	if o.player.Observer {
		dst = append(dst, " observer"...)
	}
	return dst
}

func (o *editOp) appendSteps(dst []byte) []byte {
	dst = appendNumber(dst, ' ', uint64(o.first))
	if o.last != o.first {
		dst = appendNumber(dst, '-', uint64(o.last))
	}
	if o.step != noStep {
		dst = appendNumber(dst, ':', uint64(o.step))
	}
	if o.lastStep > o.step {
		dst = appendNumber(dst, '-', uint64(o.lastStep))
	}
	switch o.verb {
	case editDelete:
		return dst
	case editSet:
		dst = o.param.append(dst)
	default:
		dst = o.code.append(dst)
	}
	for _, v := range o.values {
		dst = appendJSONValue(append(dst, ' '), v)
	}
	return dst
}

func (o *editOp) appendMark(dst []byte) []byte {
	dst = appendNumber(dst, ' ', uint64(o.mark.Tick))
	if !o.all {
		dst = appendName(dst, o.mark.Kind)
	}
	if o.mark.Text != "" || o.mark.Player != 0 {
		dst = appendName(dst, o.mark.Text)
	}
	if o.mark.Player != 0 {
		dst = appendNumber(dst, ' ', o.mark.Player)
	}
	return dst
}

func (o *editOp) appendMeta(dst []byte) []byte {
	dst = append(append(dst, ' '), o.key...)
	switch o.key {
	case "seed":
		return appendJSONValue(append(dst, ' '), o.values[0])
	case "started_at":
		at, _ := o.values[0].Int64()
		return appendStartedAt(append(dst, ' '), at)
	case "tick_rate":
		return append(append(dst, ' '), o.text...)
	}
	return appendName(dst, o.text)
}

func (n editName) append(dst []byte) []byte {
	if n.named {
		return appendName(dst, n.name)
	}
	return appendNumber(dst, ' ', uint64(n.number))
}

func (n editName) String() string {
	if n.named {
		return strconv.Quote(n.name)
	}
	return strconv.Itoa(n.number)
}

func appendNumber(dst []byte, before byte, n uint64) []byte {
	return strconv.AppendUint(append(dst, before), n, 10)
}

func appendName(dst []byte, s string) []byte {
	dst = append(dst, ' ')
	if isBare(s) && isLetter(s[0]) {
		return append(dst, s...)
	}
	return appendJSONString(dst, s)
}
