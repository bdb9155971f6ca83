package app

import (
	"bufio"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"reprise/format"
	"reprise/player"
)

func newPlay() *cobra.Command {
	var o playOptions
	cmd := &cobra.Command{
		Use:   "play FILE",
		Short: "Re-simulate a replay in the sandbox at a chosen speed",
		Long: `play runs a replay headless through its game: at the recorded tick rate times
--speed, or as fast as it goes with --speed max. Every recorded hash on the way is
compared; play stops at the first that differs. A replay without hashes plays to
its end and is then said to be unverified.

With --from, play begins at that tick: from the nearest recorded keyframe, or
for want of one from the start, the ticks before it are run at full speed, and
their hashes compared. --trace writes a line
"tick hash" for every tick, for another machine's trace to be compared with; with
--trace - the result stands on standard error.

--keyframes FILE keeps the states that --from makes on its way: the next time it
starts from the nearest of them. --interactive uses them for every move, and keeps
those of its own. They serve one replay and one build of the game, are compared
with the recorded hashes before they are relied on, and are made anew where they
fit no more.

With a desync comes what the recording says of its machine and what differs here.

--interactive shows the replay in the terminal: play, pause, step and seek, the
steps of each tick and the fields of the state; "?" there lists the keys.` + simHelp,
		Example: `  reprise play --speed 8 match.rply
  reprise play --speed max --trace trace.txt match.rply
  reprise play --from 3000 --to 3200 match.rply
  reprise play --interactive --from 3000 match.rply`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.sim.check(); err != nil {
				return err
			}
			run := o.run
			if o.interactive {
				if err := o.checkInteractive(cmd, args[0]); err != nil {
					return err
				}
				run = o.interact
			}
			return withReplay(args[0], newOpener(cmd).open, func(r *replay) error { return run(cmd, r) })
		},
	}
	f := cmd.Flags()
	o.speed = 1
	o.sim.flags(f)
	f.Var(&o.speed, "speed", `times the recorded speed, from 0.01 to 1000, or "max"`)
	f.BoolVar(&o.times, "recorded-times", false, "pace by the recorded times of the ticks, not by the tick rate")
	f.Var(&o.from, "from", "first tick to play at --speed")
	f.StringVar(&o.keyframes, "keyframes", "", keyframesHelp)
	f.BoolVar(&o.interactive, "interactive", false, "a player in the terminal")
	f.Var(&o.to, "to", "last tick to play")
	f.StringVar(&o.trace, "trace", "", `write "tick hash" lines to this file ("-" is standard output)`)
	return cmd
}

type playOptions struct {
	sim      simOptions
	speed    speedFlag
	times    bool
	from, to tickFlag
	trace    string
	// keyframes is the path of the side file, and side what is made of it.
	keyframes string
	side      *keyframeFile
	// interactive shows a player in the terminal.
	interactive bool
}

func (o *playOptions) run(cmd *cobra.Command, r *replay) error {
	if err := o.from.within(&o.to, r.File); err != nil {
		return err
	}
	if o.trace != "" && r.Summary().Meta.HashBytes == 0 {
		return usagef("--trace: the replay declares no state hashes, so no trace of them can be written")
	}
	if o.keyframes != "" && !o.from.set {
		return usagef("--keyframes is for --from and --interactive: nothing is sought without them")
	}
	var err error
	if o.side, err = openKeyframes(o.keyframes, &o.sim, r); err != nil {
		return err
	}
	sims := o.sim.open(cmd)
	defer sims.close()
	sim, release, err := sims.forReplay(r.Summary().Meta)
	if err != nil {
		return err
	}
	defer release()
	trace, err := openTrace(o.trace, cmd.OutOrStdout(), r.path)
	if err != nil {
		return err
	}
	report, err := o.play(cmd, sim, r, trace)
	if err := trace.close(); err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	if o.trace == "-" {
		out = cmd.ErrOrStderr()
	}
	if _, printErr := fmt.Fprintln(out, playText(r.path, &report)); printErr != nil {
		return printErr
	}
	if report.Desync != nil {
		say(cmd.ErrOrStderr(), "%s: %s", printable(r.path), compareMachine(r.Summary().Meta).text())
	}
	return o.result(r, err)
}

// play runs the engine.
func (o *playOptions) play(cmd *cobra.Command, sim player.Simulation, r *replay, trace *trace) (player.Report, error) {
	options := player.EngineOptions{Start: player.StartOf(r.File), Speed: float64(o.speed), RecordedTimes: o.times, Last: o.to.tick()}
	if trace != nil {
		options.Trace = trace.write
	}
	source := player.NewFileSource(r.File)
	switch {
	case !o.from.set:
		return player.Run(cmd.Context(), sim, source, options)
	case !player.LooksAhead(sim):
		return o.playFrom(cmd, sim, source, r, options)
	}
	options.Speed = player.Max
	late := &lateSpeed{FileSource: source, from: o.from.value, speed: float64(o.speed)}
	late.engine = player.NewEngine(sim, late, options)
	return late.engine.Run(cmd.Context())
}

// playFrom seeks to the first tick and plays on from there.
func (o *playOptions) playFrom(cmd *cobra.Command, sim player.Simulation, source *player.FileSource, r *replay, options player.EngineOptions) (player.Report, error) {
	budget := int64(-1)
	if o.side != nil {
		budget = 0
	}
	p := player.NewPlayback(r.File, sim, player.PlaybackOptions{Budget: budget, Trace: options.Trace})
	o.side.read(p, cmd.ErrOrStderr())
	err := p.Seek(cmd.Context(), o.from.value)
	for _, bad := range p.BadKeyframes() {
		say(cmd.ErrOrStderr(), "%s: %v", printable(r.path), bad)
	}
	report := p.Report()
	if err == nil && report.Desync != nil {
		err = report.Desync
	}
	if err == nil {
		err = o.side.write(p, cmd.ErrOrStderr())
	}
	if err != nil {
		return report, err
	}
	source.Seek(o.from.value)
	options.Underway, options.Start.NextTick = true, o.from.value
	played, err := player.Run(cmd.Context(), sim, source, options)
	report.Add(&played)
	if report.HashesCompared > 0 && errors.Is(err, player.ErrNothingCompared) {
		err = gapOf(err)
	}
	return report, err
}

// lateSpeed is, for a game that looks ahead and so cannot be halted between two
// ticks, a source that sets the engine's speed when it gives tick from
// or, where that is missing, the one behind it.
type lateSpeed struct {
	*player.FileSource
	engine *player.Engine
	from   format.Tick
	speed  float64
	set    bool
}

// Next gives the next item.
func (s *lateSpeed) Next() (player.Item, error) {
	item, err := s.FileSource.Next()
	if err == nil && item.Tick != nil && item.Tick.Tick >= s.from && !s.set {
		s.set = true
		err = s.engine.SetSpeed(s.speed)
	}
	return item, err
}

// result is the error that play ends with: a replay without hashes is played
// all the same, but not across a gap, nor as a whole where it is torn.
func (o *playOptions) result(r *replay, err error) error {
	if errors.Is(err, player.ErrNothingCompared) {
		err = gapOf(err)
	}
	if err == nil && !o.to.set {
		err = r.tornError()
	}
	return err
}

// gapOf keeps, of an error, the gap: it must not pass for a whole replay.
func gapOf(err error) error {
	var gap *player.GapError
	if errors.As(err, &gap) {
		return gap
	}
	return nil
}

// playText says what a run did.
func playText(path string, r *player.Report) string {
	s := fmt.Sprintf("%s: %s run, %s (%d ignored), %s compared", printable(path), counted(r.TicksRun, "tick"),
		counted(r.StepsRun, "step"), r.Ignored, counted(r.HashesCompared, "hash"))
	if r.HashesCompared == 0 {
		s += ": played, NOT verified"
	}
	if r.TicksRun > 0 {
		s += fmt.Sprintf("; ticks %d to %d", r.FirstTick, r.LastTick)
	}
	if r.Rebased > 0 {
		s += fmt.Sprintf("; more than a second late %s, the schedule was started anew", counted(r.Rebased, "time"))
	}
	return s
}

// trace writes "tick hash" lines. A nil trace writes nothing.
type trace struct {
	w    *bufio.Writer
	file *os.File
}

// openTrace opens the trace's file, which must not be the replay; nil where
// no trace was asked for.
func openTrace(path string, stdout io.Writer, replay string) (*trace, error) {
	switch path {
	case "":
		return nil, nil
	case "-":
		return &trace{w: bufio.NewWriter(stdout)}, nil
	}
	if sameFile(path, replay) {
		return nil, usagef("--trace %s: that is the replay", printable(path))
	}
	file, err := os.Create(path)
	if err != nil {
		return nil, fmt.Errorf("--trace %s: %w", printable(path), cause(err))
	}
	return &trace{bufio.NewWriter(file), file}, nil
}

func sameFile(a, b string) bool {
	infoA, errA := os.Stat(a)
	infoB, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(infoA, infoB)
}

func (t *trace) write(tick format.Tick, hash []byte) error {
	_, err := fmt.Fprintf(t.w, "%d %s\n", tick, hex.EncodeToString(hash))
	return err
}

func (t *trace) close() error {
	if t == nil {
		return nil
	}
	err := t.w.Flush()
	if t.file != nil {
		err = errors.Join(err, t.file.Close())
	}
	return err
}

// speedFlag is a speed factor; "max" is player.Max.
type speedFlag float64

func (s *speedFlag) String() string {
	if float64(*s) == player.Max {
		return "max"
	}
	return strconv.FormatFloat(float64(*s), 'g', -1, 64)
}

func (s *speedFlag) Set(text string) error {
	if text == "max" {
		*s = speedFlag(player.Max)
		return nil
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || !(v >= 0.01 && v <= 1000) {
		return errors.New("not a speed: use a number from 0.01 to 1000, or max")
	}
	*s = speedFlag(v)
	return nil
}

func (s *speedFlag) Type() string { return "speed" }
