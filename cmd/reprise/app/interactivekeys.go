package app

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"unicode"

	tea "charm.land/bubbletea/v2"

	"reprise/format"
	"reprise/player"
)

// jumpSeconds is how far a page key goes; in a game without a tick rate, so
// many turns.
const jumpSeconds = 10

// speeds are the steps of the speed keys.
var speeds = [...]float64{0.1, 0.25, 0.5, 1, 2, 4, 8, 16, 32, 64, player.Max}

// binding is what a key does, and how the help names it.
type binding struct {
	keys        []string
	label, what string
	do          func(v *viewer) tea.Cmd
}

// act is a binding's action that needs nothing of the terminal.
func act(do func(v *viewer)) func(v *viewer) tea.Cmd {
	return func(v *viewer) tea.Cmd {
		do(v)
		return nil
	}
}

// bindings are all keys; those without a label stand in no list.
var bindings = [...]binding{
	{[]string{"space"}, "space", "play, or pause after the present tick", act((*viewer).toggle)},
	{[]string{"right", "l"}, "right, left", "one tick on, or back", act((*viewer).stepOn)},
	{[]string{"left", "h"}, "", "", act((*viewer).stepBack)},
	{[]string{".", "shift+right"}, ". ,", "one step of the tick on, or back (also shift with an arrow)", act((*viewer).innerOn)},
	{[]string{",", "shift+left"}, "", "", act((*viewer).innerBack)},
	{[]string{"pgdown"}, "PgDn, PgUp", fmt.Sprintf("%d seconds (or turns) on, or back", jumpSeconds), act(func(v *viewer) { v.jump(jumpSeconds) })},
	{[]string{"pgup"}, "", "", act(func(v *viewer) { v.jump(-jumpSeconds) })},
	{[]string{"home"}, "Home, End", "to the beginning, or the end", act(func(v *viewer) { v.seek(goal{tick: v.summary.Meta.FirstTick}) })},
	{[]string{"end"}, "", "", act(func(v *viewer) { v.seek(goal{tick: v.summary.NextTick}) })},
	{[]string{"+", "="}, "+ -", "faster, slower: 0.1 to 64, and max", act(func(v *viewer) { v.faster() })},
	{[]string{"-"}, "", "", act(func(v *viewer) { v.slower() })},
	{[]string{"g"}, "g", "go to a tick: a number, +N, -N, or a time M:SS", act(func(v *viewer) { v.ask(promptTick) })},
	{[]string{"/"}, "/", "go to the next tick with a command, by name or code", act(func(v *viewer) { v.ask(promptCommand) })},
	{[]string{"n"}, "n N", "to the next mark, or the one before", act(func(v *viewer) { v.nextMark() })},
	{[]string{"N", "shift+n"}, "", "", act(func(v *viewer) { v.lastMark() })},
	{[]string{"f"}, "f", "show the fields with a name only (Esc: all)", act(func(v *viewer) { v.ask(promptField) })},
	{[]string{"c"}, "c", "show the changed fields only", act((*viewer).toggleChanged)},
	{[]string{"up", "k"}, "up, down, tab", "scroll the state; tab: the steps", act(func(v *viewer) { v.scroll(-1) })},
	{[]string{"down", "j"}, "", "", act(func(v *viewer) { v.scroll(1) })},
	{[]string{"tab"}, "", "", act(func(v *viewer) { v.stepsHeld = !v.stepsHeld })},
	{[]string{"esc"}, "Esc", "stop a move or a search where it is", act((*viewer).escape)},
	{[]string{"?"}, "?", "this help", act(func(v *viewer) { v.help = true })},
	{[]string{"q", "ctrl+c"}, "q", "quit", func(*viewer) tea.Cmd { return tea.Quit }},
	{[]string{"ctrl+z"}, "", "", func(*viewer) tea.Cmd { return tea.Suspend }},
	{[]string{"ctrl+l"}, "", "", func(*viewer) tea.Cmd { return tea.ClearScreen }},
}

// keyActions finds a key's action.
var keyActions = sync.OnceValue(func() map[string]func(*viewer) tea.Cmd {
	actions := map[string]func(*viewer) tea.Cmd{}
	for _, b := range bindings {
		for _, key := range b.keys {
			actions[key] = b.do
		}
	}
	return actions
})

// press does what a key says.
func (v *viewer) press(key tea.KeyPressMsg) tea.Cmd {
	name := key.String()
	switch {
	case name == "ctrl+c":
		return tea.Quit
	case v.prompt != nil:
		v.edit(name, key.Text)
		return nil
	case v.help:
		v.help = false
		if name != "q" {
			return nil
		}
	}
	if do := keyActions()[name]; do != nil {
		return do(v)
	}
	return nil
}

func (v *viewer) toggle() {
	if v.playing {
		v.pause()
	} else {
		v.play()
	}
}

// stepOn plays one tick, or passes a gap.
func (v *viewer) stepOn() {
	to := v.bound()
	v.pause()
	if to.tick >= v.summary.NextTick {
		v.notice = "this is the end"
		return
	}
	if g := v.gapAt(to.tick); g != nil {
		v.seek(goal{tick: g.Last + 1})
		return
	}
	kind := jobPlay
	if to.step != 0 || v.job.kind == jobSeek || v.problem != nil {
		kind = jobSeek
	}
	v.begin(job{kind: kind, to: goal{tick: to.tick + 1}})
}

// stepBack goes to the tick before, or to the beginning of this one.
func (v *viewer) stepBack() {
	to := v.bound()
	v.pause()
	switch {
	case to.step != 0:
		v.seek(goal{tick: to.tick})
	case to.tick == v.summary.Meta.FirstTick:
		v.notice = "this is the beginning"
	default:
		v.seek(goal{tick: v.before(to.tick)})
	}
}

// before is the place one tick back, across a gap.
func (v *viewer) before(tick format.Tick) format.Tick {
	if g := v.gapAt(tick - 1); g != nil {
		return g.First
	}
	return tick - 1
}

const noInner = "this game goes by whole ticks only: use the arrows"

// innerOn goes one step on inside the tick.
func (v *viewer) innerOn() {
	to := v.bound()
	v.pause()
	switch {
	case to.tick >= v.summary.NextTick || v.gapAt(to.tick) != nil:
		v.stepOn()
	case !v.desk.inner:
		v.notice = noInner
	case to.step == endOfTick:
		v.seek(goal{tick: to.tick + 1})
	default:
		v.seek(goal{to.tick, to.step + 1})
	}
}

// innerBack goes one step back, also into the tick before.
func (v *viewer) innerBack() {
	to := v.bound()
	v.pause()
	switch {
	case to.step > 0:
		v.seek(goal{to.tick, to.step - 1})
	case to.step == endOfTick:
	case !v.desk.inner:
		v.notice = noInner
	case to.tick == v.summary.Meta.FirstTick || v.gapAt(to.tick-1) != nil:
		v.stepBack()
	default:
		v.seek(goal{to.tick - 1, endOfTick})
	}
}

// gapAt is the gap that a tick lies in; nil where it lies in none.
func (v *viewer) gapAt(tick format.Tick) *format.Gap {
	for i := range v.summary.Gaps {
		if g := &v.summary.Gaps[i]; g.First <= tick && tick <= g.Last {
			return g
		}
	}
	return nil
}

// jump goes by seconds, or turns.
func (v *viewer) jump(seconds float64) {
	ticks := seconds
	if rate := v.summary.Meta.TickRate.Float(); rate > 0 {
		ticks *= rate
	}
	v.seek(goal{tick: v.displaced(v.bound().tick, ticks)})
}

// displaced is the tick so many ticks from another, inside the replay.
func (v *viewer) displaced(from format.Tick, ticks float64) format.Tick {
	first, end := v.summary.Meta.FirstTick, v.summary.NextTick
	way := format.Tick(min(math.Round(math.Abs(ticks)), float64(format.MaxTick)))
	if way == 0 {
		way = 1
	}
	if ticks < 0 {
		if from-first <= way {
			return first
		}
		return v.outOfGap(from-way, false)
	}
	if end-from <= way {
		return end
	}
	return v.outOfGap(from+way, true)
}

// outOfGap is the tick itself, or an end of the gap that it lies inside of.
func (v *viewer) outOfGap(tick format.Tick, on bool) format.Tick {
	g := v.gapAt(tick)
	switch {
	case g == nil:
		return tick
	case on:
		return g.Last + 1
	}
	return g.First
}

func (v *viewer) faster() {
	for _, s := range speeds {
		if s > v.pacer.Speed() {
			v.setSpeed(s)
			return
		}
	}
	v.notice = "there is no faster speed"
}

func (v *viewer) slower() {
	for i := len(speeds) - 1; i >= 0; i-- {
		if speeds[i] < v.pacer.Speed() {
			v.setSpeed(speeds[i])
			return
		}
	}
	v.notice = "there is no slower speed"
}

func (v *viewer) nextMark() {
	for _, m := range v.marks {
		if m.Tick > v.bound().tick {
			v.seek(goal{tick: v.outOfGap(min(m.Tick, v.summary.NextTick), true)})
			return
		}
	}
	v.notice = "there is no mark behind here"
}

func (v *viewer) lastMark() {
	for i := len(v.marks) - 1; i >= 0; i-- {
		if m := v.marks[i]; m.Tick < v.bound().tick {
			v.seek(goal{tick: v.outOfGap(m.Tick, false)})
			return
		}
	}
	v.notice = "there is no mark before here"
}

func (v *viewer) toggleChanged() {
	v.state.onlyChanged = !v.state.onlyChanged
	v.state.top = 0
	v.state.sift()
}

func (v *viewer) scroll(lines int) {
	if v.stepsHeld {
		v.steps.top = max(0, v.steps.top+lines)
		return
	}
	v.state.top = max(0, v.state.top+lines)
}

// escape stops a move or a search; without one it shows all fields again, and
// removes what is said.
func (v *viewer) escape() {
	switch {
	case v.job.kind != jobNone:
		v.desk.giveUp()
		v.finish()
		v.pause()
		v.stale, v.notice = true, "stopped here"
	case v.state.filter != "":
		v.filter("")
	default:
		v.problem, v.notice = nil, ""
	}
}

func (v *viewer) filter(name string) {
	v.state.filter, v.state.top = name, 0
	v.state.sift()
}

// prompt is a line that is being typed.
type prompt struct {
	kind promptKind
	text string
}

type promptKind uint8

const (
	promptTick    promptKind = 1
	promptCommand promptKind = 2
	promptField   promptKind = 3
)

var promptLabels = map[promptKind]string{
	promptTick:    "go to tick (or +N, -N, M:SS): ",
	promptCommand: "command, name or code: ",
	promptField:   "fields with: ",
}

func (v *viewer) ask(kind promptKind) { v.prompt = &prompt{kind: kind} }

// longestEntry bounds what can be typed.
const longestEntry = 60

// edit changes the line that is being typed.
func (v *viewer) edit(key, text string) {
	p := v.prompt
	switch key {
	case "esc":
		v.prompt = nil
	case "enter":
		v.prompt = nil
		v.entered(p.kind, strings.TrimSpace(p.text))
	case "backspace":
		if runes := []rune(p.text); len(runes) > 0 {
			p.text = string(runes[:len(runes)-1])
		}
	default:
		v.paste(text)
	}
}

// paste takes text into the line that is being typed.
func (v *viewer) paste(text string) {
	if v.prompt == nil {
		return
	}
	for _, r := range text {
		if !unicode.IsControl(r) && len(v.prompt.text) < longestEntry {
			v.prompt.text += string(r)
		}
	}
}

// entered does what a typed line asks for.
func (v *viewer) entered(kind promptKind, text string) {
	switch {
	case kind == promptField:
		v.filter(text)
	case kind == promptCommand:
		v.searchFor(text)
	case text != "":
		v.goTo(text)
	}
}

func (v *viewer) goTo(text string) {
	tick, err := v.parsePlace(text)
	if err != nil {
		v.notice = err.Error()
		return
	}
	first, end := v.summary.Meta.FirstTick, v.summary.NextTick
	g := v.gapAt(tick)
	switch {
	case tick < first || tick > end:
		v.notice = fmt.Sprintf("tick %d is not in the replay, which has %s", tick, rangeText(v.summary))
	case g != nil && tick != g.First:
		v.notice = fmt.Sprintf("tick %d is missing: there is a gap from %d to %d", tick, g.First, g.Last)
	default:
		v.seek(goal{tick: tick})
	}
}

// parsePlace reads a tick, a distance or a time.
func (v *viewer) parsePlace(text string) (format.Tick, error) {
	wrong := fmt.Errorf("%s is no tick: use a number, +N, -N or a time M:SS", printable(text))
	if strings.Contains(text, ":") {
		return v.parseTime(text, wrong)
	}
	n, err := parseNumber(strings.TrimLeft(text, "+-"))
	if err != nil || n > uint64(format.MaxTick) {
		return 0, wrong
	}
	switch text[0] {
	case '+':
		return v.displaced(v.bound().tick, float64(n)), nil
	case '-':
		return v.displaced(v.bound().tick, -float64(n)), nil
	}
	return format.Tick(n), nil
}

// parseTime reads H:MM:SS or M:SS, as the status line shows it.
func (v *viewer) parseTime(text string, wrong error) (format.Tick, error) {
	rate := v.summary.Meta.TickRate.Float()
	if rate == 0 {
		return 0, errors.New("the game has no tick rate: use the number of a turn")
	}
	var seconds float64
	for _, part := range strings.Split(text, ":") {
		n, err := strconv.ParseFloat(part, 64)
		if err != nil || !(n >= 0 && n < 1e9) {
			return 0, wrong
		}
		seconds = 60*seconds + n
	}
	return v.summary.Meta.FirstTick + format.Tick(min(math.Round(seconds*rate), float64(format.MaxTick/2))), nil
}

func parseNumber(text string) (uint64, error) { return strconv.ParseUint(text, 10, 64) }

// searchFor looks for a command behind this tick; nothing typed looks for the
// last one again.
func (v *viewer) searchFor(what string) {
	if what == "" {
		what = v.sought
	}
	if what == "" {
		return
	}
	codes, err := codesOf(v.book, what)
	if err != nil {
		v.notice = printable(err.Error())
		return
	}
	v.sought = what
	v.begin(job{kind: jobSearch, to: goal{tick: v.bound().tick + 1}, codes: codes, what: "command " + printable(what)})
}

// rangeText names the ticks of a replay.
func rangeText(s *format.Summary) string {
	if s.NextTick == s.Meta.FirstTick {
		return "no ticks"
	}
	return fmt.Sprintf("the ticks %d to %d", s.Meta.FirstTick, s.NextTick-1)
}
