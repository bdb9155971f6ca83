package app

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"reprise/format"
	"reprise/player"
)

func newVerify() *cobra.Command {
	var o verifyOptions
	cmd := &cobra.Command{
		Use:   "verify FILE|DIR...",
		Short: "Re-simulate replays at full speed and compare every recorded hash",
		Long: `verify plays each replay from its start through the game that recorded it, as fast
as it goes, and compares the game's state hash with every recorded one. It stops
at the first tick that differs, and names it.

Every result says how many ticks were run and how many hashes were compared.
Where nothing was compared the exit code is 6, never 0, unless
--allow-unverified is given. Nothing is simulated across a gap unless a keyframe
at its end restarts the game; that is exit code 4. A torn replay is verified up
to where it is torn, and ends with 5.

--jobs runs several simulations at once. A replay with recorded keyframes is cut
there: each part starts from its keyframe, and the state that the game comes to at
the part's end must equal the next keyframe, byte for byte. Where the game cannot
save its state to be compared, a hash of the part's last tick must prove it; else
the replay is run in one part after all.

--watch goes on after that: what appears in the folders is verified when it is
sealed or, in a format without an end, when it has been left alone for a second.
Ctrl-C ends it, with the code of the worst file.

With a desync comes what the recording says of its machine and what differs here,
floats above all: that may be the reason, and no bug of the game's.

--twice runs each replay again and compares the hashes of every tick, recorded or
not: a game that gives two results for the same inputs is found on one machine.` + simHelp + `

With --sims, a table picks the simulation for each game, build and hash of the
game's data, as they were recorded. What it has none for is listed at the end:

  [[sim]]
  game = "my-game"
  build = "1.4.2"      # left out: every build that has no entry
  data = "5f1c"        # left out: every data that has no entry
  sim = "exec:builds/1.4.2/server --simulate"`,
		Example: `  reprise verify replays/
  reprise verify --sim skirmish match.rply
  reprise verify --sim "exec:./server --simulate" --json replays/
  reprise verify --jobs 4 --shard 1/3 --junit result.xml replays/`,
		Args: atLeastOne("FILE or DIR"),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, args) },
	}
	f := cmd.Flags()
	o.sim.flags(f)
	f.StringVar(&o.sims, "sims", "", "TOML file that gives the simulation for each game, build and data, in place of --sim")
	f.BoolVar(&o.allowUnverified, "allow-unverified", false, "accept replays that hold no hash to compare")
	f.BoolVar(&o.keepGoing, "keep-going", false, "go on after the first desync and count the later ones")
	f.BoolVar(&o.twice, "twice", false, "run each replay a second time and compare every tick")
	f.IntVar(&o.jobs, "jobs", 1, "how many simulations to run at once: over replays and, where there are fewer, over the keyframes of each")
	f.Var(&o.shard, "shard", "verify only every N-th replay, from the I-th on")
	f.StringVar(&o.junit, "junit", "", "write the results to this file as JUnit XML")
	f.BoolVar(&o.watch, "watch", false, "then wait for more replays in the folders, until Ctrl-C")
	f.BoolVar(&o.json, "json", false, "one JSON document a file, on a line of its own")
	return cmd
}

type verifyOptions struct {
	sim                                            simOptions
	allowUnverified, keepGoing, twice, watch, json bool
	sims                                           string
	jobs                                           int
	shard                                          shardFlag
	junit                                          string
}

// verifyResult is what `verify --json` prints for one file.
type verifyResult struct {
	verdict
	Game     jsonText    `json:"game"`
	Build    jsonText    `json:"build"`
	Ticks    int         `json:"ticks_run"`
	Steps    int         `json:"steps_run"`
	Ignored  int         `json:"steps_ignored"`
	Compared int         `json:"hashes_compared"`
	Recorded uint64      `json:"hashes_recorded"`
	Desync   *jsonDesync `json:"desync,omitempty"`
	Desyncs  int         `json:"desyncs"`
	// Machine is there with Desync.
	Machine *jsonMachine `json:"machine,omitempty"`
	Gaps    []jsonMet    `json:"gaps"`
	Parts   int          `json:"parts"`
	Seconds float64      `json:"seconds"`
}

type jsonDesync struct {
	Tick     format.Tick  `json:"tick"`
	LastGood *format.Tick `json:"last_good_tick"`
	Part     jsonText     `json:"part,omitempty"`
	Want     string       `json:"recorded"`
	Got      string       `json:"simulated"`
}

type jsonMet struct {
	First     format.Tick `json:"first"`
	Last      format.Tick `json:"last"`
	Restarted bool        `json:"restarted_behind"`
}

func (o *verifyOptions) run(cmd *cobra.Command, args []string) error {
	if err := o.check(); err != nil {
		return err
	}
	if o.watch {
		return o.runWatch(cmd, args)
	}
	entries := o.shard.of(searchFiles(args))
	if len(entries) == 0 {
		return &exitError{exitNothing, errors.New("nothing was compared: there is no replay (.rply, .jsonl) to verify")}
	}
	report, err := openJUnit(o.junit, entries)
	if err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	shown := newProgress(cmd.ErrOrStderr())
	var sum tally
	var worst outcome
	for r := range o.verifyAll(cmd, entries, shown) {
		sum.add(&r.verdict)
		worst.add(r.err)
		report.add(r)
		shown.clear()
		if err := r.print(out, o.json); err != nil {
			return err
		}
	}
	if err := report.close(); err != nil {
		return err
	}
	if !o.json {
		if err := sum.print(out); err != nil {
			return err
		}
	}
	return worst.err()
}

// check refuses bad flags before anything is done.
func (o *verifyOptions) check() error {
	if o.jobs < 1 {
		return usagef("--jobs %d: use a number from 1 on", o.jobs)
	}
	if o.watch && (o.junit != "" || o.shard.count > 0) {
		return usagef("--watch has no end, so it goes with neither --junit nor --shard")
	}
	if o.sims != "" {
		if o.sim.spec != "" {
			return usagef("--sim and --sims are two ways to choose a simulation: use one")
		}
		var err error
		if o.sim.table, err = loadSimTable(o.sims); err != nil {
			return err
		}
	}
	return o.sim.check()
}

// verifyAll verifies with several workers and gives the results in the order
// of the entries.
func (o *verifyOptions) verifyAll(cmd *cobra.Command, entries []replayEntry, shown *progress) <-chan *verifyResult {
	results := make([]chan *verifyResult, len(entries))
	for i := range results {
		results[i] = make(chan *verifyResult, 1)
	}
	files := newOpener(cmd)
	inside := max(1, o.jobs/len(entries))
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(o.jobs, len(entries)) {
		workers.Go(func() {
			w := &verifier{o: o, cmd: cmd, inside: inside, files: files, sims: o.sim.open(cmd), shown: shown}
			defer w.sims.close()
			for i := next.Add(1) - 1; i < int64(len(entries)); i = next.Add(1) - 1 {
				w.position = fmt.Sprintf("%d of %d", i+1, len(entries))
				results[i] <- w.verify(entries[i])
			}
		})
	}
	ordered := make(chan *verifyResult)
	go func() {
		for _, r := range results {
			ordered <- <-r
		}
		workers.Wait()
		close(ordered)
	}()
	return ordered
}

// verifier verifies one replay after the other.
type verifier struct {
	o        *verifyOptions
	cmd      *cobra.Command
	inside   int // simulations to run at once within one replay
	files    *opener
	sims     *simulations
	shown    *progress
	position string
}

func (w *verifier) verify(entry replayEntry) *verifyResult {
	r := &verifyResult{verdict: verdict{File: jsonText(entry.path)}, Gaps: []jsonMet{}}
	began := time.Now()
	f, err := entry.open(w.files)
	if err == nil {
		err = w.replay(r, f)
		f.Close()
	}
	r.settle(err)
	r.Seconds = time.Since(began).Seconds()
	return r
}

func (w *verifier) replay(r *verifyResult, f *replay) error {
	s := f.Summary()
	r.Game, r.Build, r.Recorded = jsonText(s.Meta.Game), jsonText(s.Meta.Build), s.Hashes
	var trace repeatTrace
	report, parts, err := w.run(f, &trace)
	r.report(&report)
	r.Parts = parts
	if r.Desync != nil {
		r.Machine = compareMachine(s.Meta)
	}
	if errors.Is(err, player.ErrNothingCompared) && w.o.allowUnverified {
		err = gapOf(err)
	}
	if err == nil || errors.Is(err, player.ErrNothingCompared) {
		err = errors.Join(err, f.tornError())
	}
	if err == nil {
		err = r.promised(s)
	}
	if err == nil && w.o.twice {
		trace.again = true
		_, err = w.simulate(f, &trace)
		if errors.Is(err, player.ErrNothingCompared) {
			err = nil
		}
	}
	return err
}

// run runs the replay, in as many parts as it can where several simulations
// may run at once.
func (w *verifier) run(f *replay, trace *repeatTrace) (report player.Report, parts int, err error) {
	parts = player.Segments(f.File)
	if w.inside > 1 && parts > 1 && !w.o.twice {
		report, err = player.VerifySegments(w.cmd.Context(), f.File, player.SegmentOptions{
			Jobs: w.inside, Simulation: func() (player.Simulation, func(), error) { return simFor(w.cmd, &w.o.sim, f) },
			KeepGoing: w.o.keepGoing, OnOutcome: w.show(f),
		})
		if !errors.Is(err, player.ErrUnable) {
			return report, parts, err
		}
	}
	report, err = w.simulate(f, trace)
	return report, 1, err
}

// simulate runs the replay once.
func (w *verifier) simulate(f *replay, trace *repeatTrace) (player.Report, error) {
	sim, release, err := w.sims.forReplay(f.Summary().Meta)
	if err != nil {
		return player.Report{}, err
	}
	defer release()
	options := player.EngineOptions{Start: player.StartOf(f.File), KeepGoing: w.o.keepGoing, OnOutcome: w.show(f)}
	if w.o.twice && f.Summary().Meta.HashBytes > 0 {
		options.Trace = trace.tick
	}
	return player.Run(w.cmd.Context(), sim, player.NewFileSource(f.File), options)
}

// showEvery is how many ticks pass between two looks at the clock.
const showEvery = 256

// show shows how far the run is.
func (w *verifier) show(f *replay) func(player.Outcome) {
	return func(out player.Outcome) {
		if out.Tick%showEvery == 0 {
			w.shown.show("%s: tick %d of %d, %s", w.position, out.Tick, f.Summary().NextTick, f.path)
		}
	}
}

func (r *verifyResult) report(p *player.Report) {
	r.Ticks, r.Steps, r.Ignored, r.Compared, r.Desyncs = p.TicksRun, p.StepsRun, p.Ignored, p.HashesCompared, p.DesyncCount
	if d := p.Desync; d != nil {
		r.Desync = &jsonDesync{Tick: d.Tick, Part: jsonText(d.Part), Want: hex.EncodeToString(d.Want), Got: hex.EncodeToString(d.Got)}
		if d.HasLastGood {
			r.Desync.LastGood = &d.LastGood
		}
	}
	for _, g := range p.Gaps {
		r.Gaps = append(r.Gaps, jsonMet{g.Gap.First, g.Gap.Last, g.Restarted})
	}
}

// promised compares what was done with what the file says that it holds.
func (r *verifyResult) promised(s *format.Summary) error {
	if uint64(r.Ticks) == s.Ticks && uint64(r.Compared) == s.Hashes {
		return nil
	}
	return fmt.Errorf("%w: the replay says that it holds %s and %s, there were %d and %d", format.ErrCorrupt,
		counted(s.Ticks, "tick"), counted(s.Hashes, "hash"), r.Ticks, r.Compared)
}

func (r *verifyResult) print(w io.Writer, asJSON bool) error {
	if asJSON {
		return writeJSON(w, r)
	}
	facts := fmt.Sprintf("%s run, %s compared", counted(r.Ticks, "tick"), counted(r.Compared, "hash"))
	if r.Desyncs > 1 {
		facts += fmt.Sprintf(", %d of them differ", r.Desyncs)
	}
	if differs := r.Machine.differs(); differs != "" {
		facts += "; " + differs
	}
	var notes []jsonText
	if alike := r.Machine.alike(); alike != "" {
		notes = []jsonText{jsonText(alike)}
	}
	return r.verdict.print(w, facts, notes)
}
