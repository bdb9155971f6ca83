package app

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"reprise/format"
	"reprise/player"
	"reprise/player/process"
)

func newRebase() *cobra.Command {
	var o rebaseOptions
	cmd := &cobra.Command{
		Use:   "rebase FILE|DIR... -o OUT",
		Short: "Keep the inputs of replays, and take hashes and build from a changed game",
		Long: `rebase writes each replay anew for an intended change of its game, so that a golden
set survives a balance patch: inputs, players, marks and gaps are kept; the hashes,
at the same ticks, the keyframes and the build are those of the simulation. The
state that a game starts from is kept as recorded. For each file the first tick
whose hash changed is listed: read it as the reach of the change.

The label rebased-from names the old replay, and its session id is not kept. Peers'
reports, which are about the old build, are left out. The new files go into the new
folder OUT under the same names, as .rply; a replay that the changed game cannot
play to its end is named, and has no file there. Nothing is changed in place.` + simHelp,
		Example: `  reprise rebase --sim exec:builds/1.5.0/sim golden/ -o golden-1.5.0
  reprise verify --sim exec:builds/1.5.0/sim golden-1.5.0`,
		Args: atLeastOne("FILE or DIR"),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, args) },
	}
	f := cmd.Flags()
	o.sim.flags(f)
	f.StringVar(&o.build, "build", "", "the build to write (default: the one that the simulation names)")
	f.StringVarP(&o.out, "output", "o", "", "the folder to write to; it must not exist")
	f.BoolVar(&o.json, "json", false, "one JSON document a file, on a line of its own")
	return cmd
}

type rebaseOptions struct {
	sim   simOptions
	build string
	out   string
	json  bool
}

func (o *rebaseOptions) check() error {
	if o.out == "" {
		return usagef("rebase writes new files: say where with -o OUT")
	}
	if err := checkAbsent(o.out); err != nil {
		return err
	}
	return o.sim.check()
}

// rebaseResult is what `rebase --json` prints for one file.
type rebaseResult struct {
	File    jsonText     `json:"file"`
	Output  jsonText     `json:"output,omitempty"`
	Build   jsonText     `json:"build,omitempty"`
	Changed *format.Tick `json:"first_changed_tick"`
	Hashes  int          `json:"hashes"`
	Dropped int          `json:"keyframes_dropped"`
	Problem jsonText     `json:"problem,omitempty"`
}

func (o *rebaseOptions) run(cmd *cobra.Command, args []string) error {
	if err := o.check(); err != nil {
		return err
	}
	jobs := rebaseJobs(args)
	if len(jobs) == 0 {
		return &exitError{exitNothing, errors.New("there is no replay (.rply, .jsonl) to rebase")}
	}
	if err := os.MkdirAll(o.out, 0o777); err != nil {
		return fmt.Errorf("%s cannot be made: %w", printable(o.out), cause(err))
	}
	o.sim.anyBuild = true // that it is another build is the point
	sims := o.sim.open(cmd)
	defer sims.close()
	files := newOpener(cmd)
	var worst outcome
	for _, job := range jobs {
		r := &rebaseResult{File: jsonText(job.entry.path)}
		err := o.rebase(cmd, files, sims, job, r)
		if err != nil {
			r.Problem = jsonText(errorText(err))
		}
		worst.add(err)
		if err := r.print(cmd.OutOrStdout(), o.json); err != nil {
			return err
		}
	}
	return worst.err()
}

// rebaseJob is one file, and its new name within OUT.
type rebaseJob struct {
	entry replayEntry
	name  string
}

// rebaseJobs keeps the names that files have within the folders searched.
func rebaseJobs(args []string) (jobs []rebaseJob) {
	for _, arg := range args {
		for _, e := range searchFiles([]string{arg}) {
			name, err := filepath.Rel(arg, e.path)
			if err != nil || name == "." {
				name = filepath.Base(e.path)
			}
			for _, ending := range replayEndings {
				if base, ok := strings.CutSuffix(name, ending); ok {
					name = base
					break
				}
			}
			jobs = append(jobs, rebaseJob{e, name + ".rply"})
		}
	}
	return jobs
}

func (o *rebaseOptions) rebase(cmd *cobra.Command, files *opener, sims *simulations, job rebaseJob, r *rebaseResult) error {
	f, err := job.entry.open(files)
	if err != nil {
		return err
	}
	defer f.Close()
	sim, release, err := sims.forReplay(f.Summary().Meta)
	if err != nil {
		return err
	}
	defer release()
	build, err := o.buildOf(sim, f.Summary().Meta)
	if err != nil {
		return err
	}
	if err := f.tornError(); err != nil {
		return err
	}
	path := filepath.Join(o.out, job.name)
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return fmt.Errorf("%s cannot be made: %w", printable(filepath.Dir(path)), cause(err))
	}
	return writeNew(cmd.Context(), path, func(out newFile) error {
		report, err := player.Rebase(cmd.Context(), f.File, sim, build, out)
		if err != nil {
			return err
		}
		r.Output, r.Build, r.Hashes, r.Dropped = jsonText(path), jsonText(build), report.Hashes, report.Dropped
		if report.HasChanged {
			r.Changed = &report.Changed
		}
		return nil
	})
}

// buildOf is the build to write: as asked for, or as the simulation says.
func (o *rebaseOptions) buildOf(sim player.Simulation, meta *format.Metadata) (string, error) {
	if o.build != "" {
		return o.build, nil
	}
	if host, ok := sim.(interface{ Offers() []process.Offer }); ok {
		for _, offer := range host.Offers() {
			if offer.Name == meta.Game && offer.Build != "" {
				return offer.Build, nil
			}
		}
	} else if games := gamesOf(meta.Game); len(games) > 0 {
		if _, build := games[0].Identity(); build != "" {
			return build, nil
		}
	}
	return "", usagef("the simulation names no build: give the new one with --build")
}

func (r *rebaseResult) print(w io.Writer, asJSON bool) error {
	if asJSON {
		return writeJSON(w, r)
	}
	text := ""
	switch {
	case r.Problem != "":
		text = "not rebased: " + string(r.Problem)
	case r.Changed == nil:
		text = fmt.Sprintf("no hash changed, %s", counted(r.Hashes, "hash"))
	default:
		text = fmt.Sprintf("changed from tick %d on, %s", *r.Changed, counted(r.Hashes, "hash"))
	}
	if r.Dropped > 0 {
		text += fmt.Sprintf(", %s left out", counted(r.Dropped, "keyframe"))
	}
	_, err := fmt.Fprintf(w, "%s: %s\n", printable(string(r.File)), printable(text))
	return err
}
