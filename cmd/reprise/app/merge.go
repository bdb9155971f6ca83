package app

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"reprise/format"
)

func newMerge() *cobra.Command {
	var out string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "merge FILE... -o OUT",
		Short: "Join the parts of one match",
		Long: `merge joins parts of one match into a new replay: clips of it, copies that
overlap, and a later recording that names its session in the label part-of. Their
order is of no account, and a copy may be there twice. What several parts have has
to agree: else merge ends with 1 and names the first tick that differs. Ticks that
no part has become a declared gap. Labels merged-from name the parts.

Parts are of one match where they name one session (a clip names that of its
replay) and agree on game, build, data, seed, map, tick rate, state hash and code
book. The files are not changed, and OUT must not exist.`,
		Example: `  reprise merge first-half.rply second-half.rply -o match.rply`,
		Args:    atLeastOne("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if out == "" {
				return usagef("merge writes a new file: say where with -o OUT")
			}
			report, err := mergeFiles(cmd, args, out)
			if err != nil {
				return mergeError(err, args)
			}
			if asJSON {
				return writeJSON(cmd.OutOrStdout(), mergeJSON(args, out, report))
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), mergeText(out, report))
			return err
		},
	}
	cmd.Flags().StringVarP(&out, "output", "o", "", "the file to write")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print what was joined as one JSON document")
	return cmd
}

func mergeFiles(cmd *cobra.Command, paths []string, out string) (*format.MergeReport, error) {
	o := newOpener(cmd)
	var parts []*format.File
	for _, path := range paths {
		r, err := o.open(path)
		if err != nil {
			return nil, atFile(path, err)
		}
		defer r.Close()
		noteTorn(cmd, r)
		parts = append(parts, r.File)
	}
	var report *format.MergeReport
	err := writeNew(cmd.Context(), out, func(f newFile) error {
		var err error
		report, err = format.Merge(parts, f)
		return err
	})
	return report, err
}

// mergeError names the files that an error is about.
func mergeError(err error, paths []string) error {
	var conflict *format.ConflictError
	switch {
	case errors.As(err, &conflict):
		err = fmt.Errorf("%s and %s have another %s at tick %d", printable(paths[conflict.A]), printable(paths[conflict.B]), conflict.What, conflict.Tick)
		return &exitError{exitFalse, &hintedError{err, `"reprise diff --all 10 A B" shows what differs; nothing was written`}}
	case errors.Is(err, format.ErrOtherMatch):
		return &hintedError{err, `"reprise info" prints what a replay is; nothing was written`}
	}
	return err
}

func mergeText(out string, r *format.MergeReport) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s, ticks %d to %d: %s, %s, %s", printable(out), counted(r.Parts, "part"), r.First, r.Last,
		counted(r.Ticks, "tick"), counted(r.Steps, "step"), counted(r.Hashes, "hash"))
	if r.Overlap > 0 {
		fmt.Fprintf(&b, "; %s are in several parts, which agree", counted(r.Overlap, "tick"))
	}
	if r.Duplicates > 0 {
		fmt.Fprintf(&b, "; left out: %s of another part", counted(r.Duplicates, "copy"))
	}
	for _, g := range describeGaps(r.Holes, "") {
		fmt.Fprintf(&b, "\n  gap: %s, in none of the parts", g.ticks())
	}
	return b.String()
}

type mergeDocument struct {
	Files      []jsonText  `json:"files"`
	Output     jsonText    `json:"output"`
	Parts      int         `json:"parts"`
	Duplicates int         `json:"duplicates"`
	Overlap    uint64      `json:"overlapping_ticks"`
	FirstTick  format.Tick `json:"first_tick"`
	LastTick   format.Tick `json:"last_tick"`
	Ticks      uint64      `json:"ticks"`
	Steps      uint64      `json:"steps"`
	Hashes     uint64      `json:"hashes"`
	Gaps       []jsonGap   `json:"gaps"`
	Holes      []jsonGap   `json:"holes"`
}

func mergeJSON(paths []string, out string, r *format.MergeReport) mergeDocument {
	d := mergeDocument{Output: jsonText(out), Parts: r.Parts, Duplicates: r.Duplicates, Overlap: r.Overlap, FirstTick: r.First, LastTick: r.Last,
		Ticks: r.Ticks, Steps: r.Steps, Hashes: r.Hashes, Gaps: describeGaps(r.Gaps, ""), Holes: describeGaps(r.Holes, "")}
	for _, path := range paths {
		d.Files = append(d.Files, jsonText(path))
	}
	return d
}
