package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"sync"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/term"
	"github.com/spf13/cobra"

	"reprise/player"
)

// checkInteractive refuses what the interactive player cannot do, before the
// replay is opened.
func (o *playOptions) checkInteractive(cmd *cobra.Command, path string) error {
	switch {
	case o.trace != "":
		return usagef("--interactive writes no trace: leave out --trace")
	case o.to.set:
		return usagef("--interactive plays as far as you let it: leave out --to")
	case o.times:
		return usagef("--interactive is paced by the tick rate: leave out --recorded-times")
	case path == "-":
		return usagef("--interactive takes its keys from standard input: the replay must be a file")
	}
	return checkTerminal(cmd.InOrStdin(), cmd.OutOrStdout(), os.Getenv("TERM"))
}

// checkTerminal tells whether keys can be read and a screen be drawn.
func checkTerminal(in io.Reader, out io.Writer, kind string) error {
	switch {
	case !isTTY(in) || !isTTY(out):
		return usagef("--interactive needs a terminal on standard input and output: play without it runs anywhere")
	case kind == "dumb" || kind == "" && runtime.GOOS != "windows":
		return usagef("--interactive needs a terminal that can move the cursor, and TERM is %q: play without it runs anywhere", kind)
	}
	return nil
}

func isTTY(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(f.Fd())
}

// interact shows the replay until the user quits. The result is that of what
// was run: a desync is one here, too.
func (o *playOptions) interact(cmd *cobra.Command, r *replay) error {
	if err := o.from.within(&o.to, r.File); err != nil {
		return err
	}
	var err error
	if o.side, err = openKeyframes(o.keyframes, &o.sim, r); err != nil {
		return err
	}
	// What a child process says would tear the screen: it is shown later.
	stderr := cmd.ErrOrStderr()
	var said heldOutput
	cmd.SetErr(&said)
	defer said.release(stderr)
	sim, closeSim, err := simFor(cmd, &o.sim, r)
	if err != nil {
		return err
	}
	defer closeSim()
	d := newDesk(cmd.Context(), r.File, sim, player.SystemClock{}, player.PlaybackOptions{})
	defer d.close()
	from := r.Summary().Meta.FirstTick
	if o.from.set {
		from = o.from.value
	}
	v, err := newViewer(d, r, float64(o.speed), from)
	if err != nil {
		return err
	}
	v.side = o.side.read(d.playback, cmd.ErrOrStderr())
	if err := show(cmd, v); err != nil {
		return err
	}
	d.close()
	return errors.Join(o.farewell(cmd.OutOrStdout(), r, d.playback.Report(), v.problem), o.side.write(d.playback, cmd.ErrOrStderr()))
}

// show runs the screen.
func show(cmd *cobra.Command, v *viewer) error {
	program := tea.NewProgram(v, tea.WithContext(cmd.Context()), tea.WithInput(cmd.InOrStdin()), tea.WithOutput(cmd.OutOrStdout()),
		tea.WithoutSignalHandler())
	_, err := program.Run()
	if cmd.Context().Err() != nil {
		return context.Cause(cmd.Context())
	}
	return err
}

// farewell sums up what was run, when the screen is gone.
func (o *playOptions) farewell(w io.Writer, r *replay, report player.Report, problem error) error {
	if _, err := fmt.Fprintln(w, playText(r.path, &report)); err != nil {
		return err
	}
	if report.Desync != nil {
		return report.Desync
	}
	var gap *player.GapError
	if errors.Is(problem, player.ErrUnable) || errors.As(problem, &gap) {
		return nil // what was refused on the way says nothing of the rest
	}
	return problem
}

// heldOutput keeps the last part of what is written to it.
type heldOutput struct {
	mu   sync.Mutex
	text []byte
}

// mostHeld bounds what is kept.
const mostHeld = 64 << 10

// Write keeps b.
func (h *heldOutput) Write(b []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.text = append(h.text, b...)
	if extra := len(h.text) - mostHeld; extra > 0 {
		h.text = bytes.Clone(h.text[extra:])
	}
	return len(b), nil
}

// release writes what was kept.
func (h *heldOutput) release(w io.Writer) {
	h.mu.Lock()
	defer h.mu.Unlock()
	w.Write(h.text)
	h.text = nil
}
