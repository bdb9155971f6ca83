package app

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"reprise/format"
)

var updateScreens = flag.Bool("update-screens", false, "write testdata/interactive anew")

// golden compares the screen with a file.
func (s *sitting) golden(name string) {
	s.t.Helper()
	var b strings.Builder
	for _, l := range s.v.screen() {
		b.WriteString(strings.TrimRight(l.text, " ") + "\n")
	}
	path := filepath.Join("testdata", "interactive", name+".txt")
	if *updateScreens {
		must(s.t, os.WriteFile(path, []byte(b.String()), 0o644))
	}
	want, err := os.ReadFile(path)
	must(s.t, err)
	if b.String() != string(want) {
		s.t.Errorf("%s: the screen is\n%s", path, b.String())
	}
}

// The screens at 80 columns and 24 lines, as a terminal without colour shows
// them.
func TestInteractiveScreens(t *testing.T) {
	marks := []format.Mark{{Tick: 49, Kind: "goal", Player: 1, Text: "from the left\x1b[31m"}, {Tick: 222, Kind: "whistle"}}
	whole := court{ticks: 300, every: 100, marks: marks}
	holed := court{ticks: 300, every: 70, marks: marks, gap: format.Gap{First: 100, Last: 139, Reason: "spool full"}, broken: 210}
	for name, screen := range map[string]struct {
		court court
		saves bool
		act   func(s *sitting)
	}{
		"start":   {whole, true, func(*sitting) {}},
		"playing": {whole, true, func(s *sitting) { s.press("+", "space"); s.wait(5 * time.Second) }},
		"step":    {whole, true, func(s *sitting) { s.enter("g", "149"); s.press(".", ".") }},
		"mark":    {whole, true, func(s *sitting) { s.press("n") }},
		"end":     {whole, true, func(s *sitting) { s.press("right", "end", "c") }},
		"desync": {court{ticks: 300, flip: 120}, true, func(s *sitting) {
			s.press("+", "+", "+", "+", "+", "+", "+", "space")
		}},
		"gap":    {holed, true, func(s *sitting) { s.press("end"); s.enter("g", "215"); s.enter("g", "120") }},
		"atgap":  {holed, true, func(s *sitting) { s.enter("g", "100") }},
		"nosave": {court{ticks: 300}, false, func(s *sitting) { s.press("right") }},
		"failed": {court{ticks: 300, foul: 120}, true, func(s *sitting) { s.press("end") }},
		"seeking": {court{ticks: 20_000}, true, func(s *sitting) {
			s.game.endTick = func(format.Tick) error { time.Sleep(time.Millisecond); return nil }
			s.hit("end")
			s.wait(2 * time.Second)
		}},
		"searching": {whole, true, func(s *sitting) { s.enter("f", "score"); s.hit("/", "g", "o") }},
		"help":      {whole, true, func(s *sitting) { s.press("?") }},
		"small":     {whole, true, func(s *sitting) { s.take(tea.WindowSizeMsg{Width: 60, Height: 16}) }},
		"tiny":      {whole, true, func(s *sitting) { s.take(tea.WindowSizeMsg{Width: 40, Height: 10}) }},
	} {
		t.Run(name, func(t *testing.T) {
			sit(t, screen.court.record(t), screen.saves, func(s *sitting) {
				screen.act(s)
				s.golden(name)
			})
		})
	}
}

// Whatever the size, no line is too long, there are as many as there is room
// for, and what the file holds never reaches the terminal as it is.
func TestInteractiveScreenFits(t *testing.T) {
	c := court{ticks: 300, every: 100, marks: []format.Mark{{Tick: 2, Kind: "goal\n\x1b[2J", Text: strings.Repeat("世", 300)}}}
	sit(t, c.record(t), true, func(s *sitting) {
		s.press("right", "right")
		for _, help := range []bool{false, true} {
			s.v.help = help
			for width := 1; width < 140; width += 3 {
				for height := 1; height < 60; height += 2 {
					s.take(tea.WindowSizeMsg{Width: width, Height: height})
					lines := s.v.screen()
					if len(lines) > height || !help && height >= leastHeight && width >= leastWidth && len(lines) != height {
						t.Fatalf("%dx%d: %d lines", width, height, len(lines))
					}
					for _, l := range lines {
						if ansi.StringWidth(l.text) > width || strings.ContainsAny(l.text, "\x1b\n") {
							t.Fatalf("%dx%d: %q", width, height, l.text)
						}
					}
				}
			}
		}
	})
}

// A line that scrolls stays within what there is to see.
func TestInteractiveScrolls(t *testing.T) {
	sit(t, court{ticks: 300}.record(t), true, func(s *sitting) {
		s.take(tea.WindowSizeMsg{Width: 80, Height: leastHeight})
		first := func() string { s.v.screen(); return s.v.state.rows(2)[0].text }
		for range 10 {
			s.press("down")
			s.v.screen()
		}
		if top := s.v.state.top; top != len(s.v.state.fields)-s.v.stateRows() {
			t.Errorf("scrolled to %d", top)
		}
		for range 10 {
			s.press("up")
		}
		if got := first(); got != "  tick = 0" {
			t.Errorf("first field %q", got)
		}
		s.press("tab", "down")
		if s.v.state.top != 0 || !s.v.stepsHeld {
			t.Error("tab does not give the keys to the steps")
		}
	})
}
