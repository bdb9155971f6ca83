package app

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"reprise/format"
	"reprise/player"
)

// The smallest screen that everything fits on.
const (
	leastWidth  = 60
	leastHeight = 16
)

// seekShown is how long a move takes before it is said that it is under way.
const seekShown = 150 * time.Millisecond

// line is one line on screen. The text says all; the style only stresses it.
type line struct {
	text  string
	style lineStyle
}

type lineStyle uint8

const (
	stylePlain   lineStyle = 0
	styleTitle   lineStyle = 1
	styleRule    lineStyle = 2
	styleChanged lineStyle = 3
	styleAlarm   lineStyle = 4
	styleHint    lineStyle = 5
)

// sgr are the attributes of the styles, for a terminal that has them.
var sgr = [...]string{stylePlain: "", styleTitle: "7", styleRule: "1", styleChanged: "33", styleAlarm: "1;31", styleHint: "2"}

// View draws the screen.
func (v *viewer) View() tea.View {
	var b strings.Builder
	for i, l := range v.screen() {
		if i > 0 {
			b.WriteByte('\n')
		}
		if attributes := sgr[l.style]; attributes != "" && l.text != "" {
			b.WriteString("\x1b[" + attributes + "m" + l.text + "\x1b[m")
			continue
		}
		b.WriteString(l.text)
	}
	view := tea.NewView(b.String())
	view.AltScreen = true
	return view
}

// screen is what is shown, a line for each line of the terminal.
func (v *viewer) screen() []line {
	var lines []line
	switch {
	case v.width < leastWidth || v.height < leastHeight:
		lines = v.tiny()
	case v.help:
		lines = v.helpScreen()
	default:
		lines = v.fullScreen()
	}
	lines = lines[:max(0, min(len(lines), v.height))]
	for i := range lines {
		lines[i].text = fit(lines[i], v.width)
	}
	return lines
}

// fit cuts a line to the width; a title fills it.
func fit(l line, width int) string {
	text := ansi.Truncate(l.text, width, "...")
	if l.style == styleTitle {
		text += strings.Repeat(" ", max(0, width-ansi.StringWidth(text)))
	}
	return text
}

// tiny is what is left where the screen is too small.
func (v *viewer) tiny() []line {
	return []line{{text: v.status()}, {text: fmt.Sprintf("%dx%d is too small: %dx%d", v.width, v.height, leastWidth, leastHeight)}}
}

func (v *viewer) fullScreen() []line {
	stepRows, stateRows := v.stepRows(), v.stateRows()
	lines := append([]line{{v.title(), styleTitle}, {v.status(), styleRule}}, v.timeLine()...)
	lines = append(lines, line{text: v.markText()}, v.hashLine(), line{text: v.frameText()}, v.rule(v.steps.title(), v.stepsHeld))
	lines = append(lines, padded(v.steps.rows(stepRows), stepRows)...)
	lines = append(lines, v.rule(v.state.title(), !v.stepsHeld))
	lines = append(lines, padded(v.state.rows(stateRows), stateRows)...)
	keys := keyLine
	if len(keys) > v.width {
		keys = keyShort
	}
	return append(lines, v.message(), line{keys, styleHint})
}

// fixedRows are the lines of the full screen beside steps and state.
const fixedRows = 11

// stepRows and stateRows share what is left of the screen.
func (v *viewer) stepRows() int  { return (v.height - fixedRows) * 2 / 5 }
func (v *viewer) stateRows() int { return v.height - fixedRows - v.stepRows() }

func padded(lines []line, height int) []line {
	for len(lines) < height {
		lines = append(lines, line{})
	}
	return lines[:height]
}

// rule is the title of a panel; the arrows stand where up and down scroll.
func (v *viewer) rule(title string, held bool) line {
	s := "-- " + title + " "
	end := "--"
	if held {
		end = " up/down"
	}
	title = ansi.Truncate(s, v.width-len(end)-1, "... ")
	return line{title + strings.Repeat("-", max(0, v.width-ansi.StringWidth(title)-len(end))) + end, styleRule}
}

// title names the replay.
func (v *viewer) title() string {
	m := v.summary.Meta
	parts := []string{" " + printable(filepath.Base(v.heading.path))}
	for _, p := range []string{m.Game, m.Build, m.Map} {
		if p != "" {
			parts = append(parts, printable(p))
		}
	}
	state := v.heading.state
	if len(v.summary.Gaps) > 0 {
		state += ", with " + counted(len(v.summary.Gaps), "gap")
	}
	return strings.Join(append(parts, state), "  ")
}

// status says what the player does, where, and how fast.
func (v *viewer) status() string {
	s := fmt.Sprintf(" %-8s tick %d", v.stateWord(), v.at.next)
	if v.at.within > 0 {
		s += fmt.Sprintf(" step %d", v.at.within)
	}
	s += fmt.Sprintf(" of %d", v.summary.NextTick)
	if first := v.summary.Meta.FirstTick; first > 0 {
		s = strings.Replace(s, " of ", fmt.Sprintf(" of %d to ", first), 1)
	}
	if rate := v.summary.Meta.TickRate.Float(); rate > 0 {
		at := func(t format.Tick) string { return playTime(float64(t-v.summary.Meta.FirstTick) / rate) }
		s += fmt.Sprintf("   %s of %s", at(v.at.next), at(v.summary.NextTick))
	}
	return s + "   speed " + speedText(v.pacer.Speed())
}

func (v *viewer) stateWord() string {
	long := v.now.Sub(v.job.began) >= seekShown
	switch {
	case v.job.kind == jobSearch && long:
		return "SEARCHES"
	case v.job.kind != jobNone && long:
		return "SEEKS"
	case v.playing:
		return "PLAYING"
	case v.at.next >= v.summary.NextTick:
		return "ENDED"
	}
	return "PAUSED"
}

func speedText(speed float64) string {
	flag := speedFlag(speed)
	if speed == player.Max {
		return flag.String()
	}
	return flag.String() + "x"
}

// playTime prints seconds as M:SS.s or H:MM:SS.s.
func playTime(seconds float64) string {
	tenths := uint64(seconds * 10)
	s := fmt.Sprintf("%02d.%d", tenths/10%60, tenths%10)
	minutes := tenths / 600
	if minutes < 60 {
		return fmt.Sprintf("%d:%s", minutes, s)
	}
	return fmt.Sprintf("%d:%02d:%s", minutes/60, minutes%60, s)
}

// markText names the mark here, or the next one.
func (v *viewer) markText() string {
	if len(v.marks) == 0 {
		return " no marks"
	}
	for i, m := range v.marks {
		if m.Tick >= v.at.next {
			where := "next mark"
			if m.Tick == v.at.next {
				where = "mark here"
			}
			return fmt.Sprintf(" %s (%d of %d): %s", where, i+1, len(v.marks), markName(m))
		}
	}
	last := v.marks[len(v.marks)-1]
	return fmt.Sprintf(" last mark (%d of %d): %s", len(v.marks), len(v.marks), markName(last))
}

func markName(m format.Mark) string {
	s := fmt.Sprintf("tick %d, %s", m.Tick, printable(m.Kind))
	if m.Player != 0 {
		s += fmt.Sprintf(", player %d", m.Player)
	}
	if m.Text != "" {
		s += ": " + printable(m.Text)
	}
	return s
}

// hashLine says what was compared, and the first desync.
func (v *viewer) hashLine() line {
	d := v.at.desync
	switch {
	case d != nil:
		return line{" " + desyncText(d, v.at.desyncs), styleAlarm}
	case v.summary.Meta.HashBytes == 0 || v.summary.Hashes == 0:
		return line{text: " the replay holds no state hashes: nothing here is verified"}
	case v.at.compared == 0:
		return line{text: " no hash compared yet"}
	}
	return line{text: fmt.Sprintf(" %s compared, all equal", counted(v.at.compared, "hash"))}
}

// hashShown is how much of a hash fits on the line.
const hashShown = 4

func desyncText(d *player.DesyncError, all int) string {
	s := fmt.Sprintf("DESYNC at tick %d", d.Tick)
	if d.Part != "" {
		s += fmt.Sprintf(" in %q", d.Part)
	}
	s += fmt.Sprintf(": recorded %s, simulated %s", hashStart(d.Want), hashStart(d.Got))
	if all > 1 {
		s += fmt.Sprintf(", and at %s more", counted(all-1, "tick"))
	}
	return s
}

func hashStart(hash []byte) string {
	if len(hash) > hashShown {
		return fmt.Sprintf("%x...", hash[:hashShown])
	}
	return fmt.Sprintf("%x", hash)
}

// frameText says where moves can start from.
func (v *viewer) frameText() string {
	given := len(v.summary.Keyframes)
	s := fmt.Sprintf(" keyframes: %d recorded", given)
	if v.side > 0 {
		given += v.side
		s += fmt.Sprintf(", %d read", v.side)
	}
	if n := len(v.at.bad); n > 0 {
		s += fmt.Sprintf(" (%d bad, before tick %d)", n, v.at.bad[0].NextTick)
	}
	switch {
	case !v.at.playsThrough:
		return s + fmt.Sprintf(", %d kept (%.1f MiB)", v.at.kept, float64(v.at.keptBytes)/(1<<20))
	case given > len(v.at.bad):
		return s + "; moving back replays from one of them"
	}
	return s + "; moving back replays from the start"
}

// message is the line that answers keys.
func (v *viewer) message() line {
	switch {
	case v.prompt != nil:
		return line{" " + promptLabels[v.prompt.kind] + printable(v.prompt.text) + "_", styleRule}
	case v.job.kind != jobNone && v.now.Sub(v.job.began) >= seekShown:
		return line{" " + v.jobText(), stylePlain}
	case v.problem != nil:
		return line{" " + printable(errorText(v.problem)), styleAlarm}
	case v.notice != "":
		return line{" " + v.notice, styleRule}
	}
	return line{legend, styleHint}
}

const (
	legend   = " K keyframe  x bad keyframe  m mark  . gap  ! first desync"
	keyLine  = " space play  arrows tick  ,. step  +- speed  g go  / find  ? help  q quit"
	keyShort = " space play  arrows tick  g go  / find  ? help  q quit"
)

// jobText says what is under way.
func (v *viewer) jobText() string {
	if v.job.kind == jobSearch {
		return fmt.Sprintf("searching for %s, now at tick %d: Esc stops", v.job.what, v.job.to.tick)
	}
	return fmt.Sprintf("going to tick %d, now at tick %d: Esc stops", v.job.to.tick, v.reached)
}

// helpScreen lists the keys.
func (v *viewer) helpScreen() []line {
	lines := []line{{" reprise play --interactive", styleTitle}}
	for _, b := range bindings {
		if b.label != "" {
			lines = append(lines, line{text: fmt.Sprintf(" %-14s %s", b.label, b.what)})
		}
	}
	lines = append(lines, line{}, line{text: legend},
		line{text: " The state is that before the tick: * changed, + new since the last one shown."})
	return append(padded(lines, max(len(lines), v.height-1)), line{" any key goes back", styleHint})
}
