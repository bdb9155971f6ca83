package app

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reprise/format"
	"reprise/player"
)

func newBench() *cobra.Command {
	o := benchOptions{rounds: 7, slowest: 5}
	cmd := &cobra.Command{
		Use:   "bench FILE",
		Short: "Measure how fast a simulation plays a replay, or compare two",
		Long: `bench plays a replay as a reproducible performance scene: the same inputs, tick for
tick. It prints the ticks a second of the median round, the time of single ticks
(the fastest of three passes, so that what disturbed one pass does not show), and
the slowest ticks by number.

With --vs, two simulations, say two builds, run in turn in every round, and the
ratio of their times is given with its 95 % confidence interval: where it holds 1,
no difference was shown. Nothing is hashed or compared; "verify" does that.

The ticks of an exec: child are timed with the way there and back; those of a
turn-based game, which looks ahead, only together.` + simHelp,
		Example: `  reprise bench --sim skirmish match.rply
  reprise bench --sim exec:builds/1.4.1/sim --vs exec:builds/1.4.2/sim match.rply`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(); err != nil {
				return err
			}
			return withReplay(args[0], newOpener(cmd).open, func(r *replay) error { return o.run(cmd, r) })
		},
	}
	f := cmd.Flags()
	o.sim.flags(f)
	f.StringVar(&o.vs, "vs", "", "a second simulation to compare with; builds are not checked")
	f.IntVar(&o.rounds, "rounds", o.rounds, "how often to run the whole replay, at least 2")
	f.IntVar(&o.slowest, "slowest", o.slowest, "how many of the slowest ticks to list")
	f.BoolVar(&o.json, "json", false, "print the result as one JSON document")
	return cmd
}

type benchOptions struct {
	sim             simOptions
	vs              string
	rounds, slowest int
	json            bool
}

func (o *benchOptions) check() error {
	if o.rounds < 2 {
		return usagef("--rounds %d: use 2 or more", o.rounds)
	}
	if o.slowest < 0 {
		return usagef("--slowest %d: use 0 or more", o.slowest)
	}
	if err := o.sim.check(); err != nil {
		return err
	}
	return checkSim("--vs", o.vs)
}

func (o *benchOptions) run(cmd *cobra.Command, r *replay) error {
	chosen := []simOptions{o.sim}
	if o.vs != "" {
		chosen[0].anyBuild = true
		chosen = append(chosen, chosen[0])
		chosen[1].spec = o.vs
	}
	var sims []player.Simulation
	for i := range chosen {
		sim, release, err := simFor(cmd, &chosen[i], r)
		if err != nil {
			return err
		}
		defer release()
		sims = append(sims, sim)
	}
	results, err := player.Measure(cmd.Context(), r.File, sims, o.rounds, nil)
	if err != nil {
		return err
	}
	if o.json {
		return writeJSON(cmd.OutOrStdout(), o.document(r, results))
	}
	return o.print(cmd.OutOrStdout(), r, results)
}

// percentiles are those that bench gives.
var percentiles = [...]float64{50, 90, 99, 99.9, 100}

func (o *benchOptions) print(w io.Writer, r *replay, results []player.Measurement) error {
	var t strings.Builder
	fmt.Fprintf(&t, "%s: %s, %s\n", printable(r.path), counted(results[0].Ticks, "tick"), counted(o.rounds, "round"))
	for i := range results {
		m := &results[i]
		if len(results) > 1 {
			fmt.Fprintf(&t, "%s\n", [...]string{"first", "second"}[i])
		}
		fmt.Fprintf(&t, "  ticks a second   %.0f\n", m.TicksPerSecond())
		if len(m.PerTick) == 0 {
			t.WriteString("  time of a tick   not known: the game looks ahead\n")
			continue
		}
		t.WriteString("  time of a tick  ")
		for _, p := range percentiles {
			fmt.Fprintf(&t, " p%v %v", p, tickTime(m.Percentile(p)))
		}
		t.WriteString("\n  slowest ticks   ")
		for _, s := range m.Slowest(o.slowest) {
			fmt.Fprintf(&t, " %d (%v)", s.Tick, tickTime(s.Time))
		}
		t.WriteString("\n")
	}
	if len(results) > 1 {
		q := results[1].RatioTo(&results[0])
		fmt.Fprintf(&t, "second takes %.3f times the time of first, 95 %% confidence %.3f to %.3f%s\n", q.Value, q.Low, q.High, shownBy(q))
	}
	_, err := io.WriteString(w, t.String())
	return err
}

func shownBy(q player.Ratio) string {
	if q.Low <= 1 && q.High >= 1 {
		return ": no difference shown"
	}
	return ""
}

func tickTime(d time.Duration) time.Duration {
	if d > time.Millisecond {
		return d.Round(time.Microsecond)
	}
	return d.Round(10 * time.Nanosecond)
}

type benchDocument struct {
	File   jsonText    `json:"file"`
	Ticks  int         `json:"ticks"`
	Rounds int         `json:"rounds"`
	Sims   []jsonSpeed `json:"simulations"`
	Ratio  *jsonRatio  `json:"second_to_first"`
}

type jsonSpeed struct {
	TicksPerSecond float64            `json:"ticks_per_second"`
	Seconds        []float64          `json:"seconds"`
	TickMicros     map[string]float64 `json:"tick_microseconds"`
	Slowest        []jsonSlow         `json:"slowest"`
}

type jsonSlow struct {
	Tick   format.Tick `json:"tick"`
	Micros float64     `json:"microseconds"`
}

type jsonRatio struct {
	Value float64 `json:"value"`
	Low   float64 `json:"low_95"`
	High  float64 `json:"high_95"`
}

func (o *benchOptions) document(r *replay, results []player.Measurement) *benchDocument {
	d := &benchDocument{File: jsonText(r.path), Ticks: results[0].Ticks, Rounds: o.rounds}
	for i := range results {
		m := &results[i]
		s := jsonSpeed{TicksPerSecond: m.TicksPerSecond(), TickMicros: map[string]float64{}, Slowest: []jsonSlow{}}
		for _, round := range m.Rounds {
			s.Seconds = append(s.Seconds, round.Seconds())
		}
		for _, p := range percentiles {
			if len(m.PerTick) > 0 {
				s.TickMicros[fmt.Sprintf("p%v", p)] = micros(m.Percentile(p))
			}
		}
		for _, slow := range m.Slowest(o.slowest) {
			s.Slowest = append(s.Slowest, jsonSlow{slow.Tick, micros(slow.Time)})
		}
		d.Sims = append(d.Sims, s)
	}
	if len(results) > 1 {
		q := results[1].RatioTo(&results[0])
		d.Ratio = &jsonRatio{q.Value, q.Low, q.High}
	}
	return d
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
