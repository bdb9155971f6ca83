package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"reprise/format"
	"reprise/player"
)

// verdict is what check and verify find of one file.
type verdict struct {
	File    jsonText `json:"file"`
	Status  string   `json:"status"`
	Exit    int      `json:"exit"`
	Problem jsonText `json:"problem,omitempty"`

	err error
}

// settle turns the error that ended the work on a file into the verdict.
func (v *verdict) settle(err error) {
	v.err, v.Exit, v.Status = err, exitCode(err), statusOf(err)
	if err != nil {
		v.Problem = jsonText(errorText(err))
	}
}

// statusOf names a result in a word or two.
func statusOf(err error) string {
	switch {
	case isError[*player.StepFailure](err):
		return "step failed"
	case isError[*repeatError](err):
		return "not repeatable"
	case isError[*player.KeyframeError](err) && !isError[*player.DesyncError](err):
		return "wrong keyframe"
	case errors.Is(err, format.ErrChanged):
		return "changed"
	case isError[*trustError](err):
		return "not trusted"
	case isError[*unprovenError](err):
		return "proven in part"
	case errors.Is(err, context.Canceled):
		return "interrupted"
	}
	switch exitCode(err) {
	case exitOK:
		return "ok"
	case exitFalse:
		return "desync"
	case exitPartly:
		return "gap"
	case exitDamaged:
		return damageStatus(err)
	case exitNothing:
		return "nothing compared"
	case exitGame:
		return gameStatus(err)
	case exitSimulation:
		return "simulation failed"
	}
	return "not tried"
}

func gameStatus(err error) string {
	switch {
	case isError[*player.GameMissingError](err):
		return "missing game"
	case isError[*player.BuildMismatchError](err):
		return "missing build"
	case isError[*player.DataMismatchError](err):
		return "missing data"
	}
	return "wrong game"
}

func damageStatus(err error) string {
	switch {
	case errors.Is(err, format.ErrNotReplay):
		return "not a replay"
	case errors.Is(err, format.ErrNewer):
		return "newer"
	case errors.Is(err, format.ErrTorn):
		return "torn"
	case errors.Is(err, format.ErrLimit):
		return "over a limit"
	}
	return "damaged"
}

// print prints the verdict as a line: status, file, facts, problem, notes.
func (v *verdict) print(w io.Writer, facts string, notes []jsonText) error {
	parts := []string{fmt.Sprintf("%-17s %s", v.Status, printable(string(v.File)))}
	if facts != "" {
		parts = append(parts, facts)
	}
	if v.Problem != "" {
		parts = append(parts, printableLines(string(v.Problem)))
	}
	line := strings.Join(parts, ": ")
	for _, note := range notes {
		line += "; " + printable(string(note))
	}
	_, err := fmt.Fprintln(w, line)
	return err
}

// tally counts files by their status, and what was missing for them.
type tally struct {
	files   counts
	missing counts
}

// counts counts names, in the order in which they came.
type counts struct {
	total int
	order []string
	of    map[string]int
}

func (c *counts) add(name string) {
	if c.of == nil {
		c.of = map[string]int{}
	}
	if c.of[name] == 0 {
		c.order = append(c.order, name)
	}
	c.total++
	c.of[name]++
}

func (t *tally) add(v *verdict) {
	t.files.add(v.Status)
	if what := missingText(v.err); what != "" {
		t.missing.add(what)
	}
}

// missingText names the game, build or data that a replay needs; empty where
// it misses none.
func missingText(err error) string {
	var game *player.GameMissingError
	var build *player.BuildMismatchError
	var data *player.DataMismatchError
	switch {
	case errors.As(err, &game):
		return fmt.Sprintf("game %q", game.Game)
	case errors.As(err, &build):
		return fmt.Sprintf("game %q, build %q", build.Game, build.Recorded)
	case errors.As(err, &data):
		return fmt.Sprintf("game %q, build %q, data %q", data.Game, data.Build, data.Recorded)
	}
	return ""
}

// print sums several files up, and lists what was missing.
func (t *tally) print(w io.Writer) error {
	if t.files.total < 2 {
		return nil
	}
	line := counted(t.files.total, "file")
	for i, status := range t.files.order {
		separator := ", "
		if i == 0 {
			separator = ": "
		}
		line += fmt.Sprintf("%s%d %s", separator, t.files.of[status], status)
	}
	line += "\n"
	for _, what := range t.missing.order {
		line += fmt.Sprintf("missing: %s, for %s\n", printable(what), counted(t.missing.of[what], "file"))
	}
	_, err := io.WriteString(w, line)
	return err
}
