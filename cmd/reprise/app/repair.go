package app

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"reprise/format"
)

func newRepair() *cobra.Command {
	var out string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "repair FILE -o OUT",
		Short: "Keep every intact part of a damaged or torn replay",
		Long: `repair writes a new file with every chunk (in RPLY1: every tick) that is intact,
and names what is lost. Ticks that are lost become declared gaps, so that
nothing is ever simulated across them without a word. Of JSON lines it keeps what
stands before a cut. FILE is not changed, and OUT must not exist.

It ends with 0 where FILE was whole (OUT has the same bytes), with 4 where a part
was kept, and with 5 where nothing could be kept; then there is no OUT.`,
		Example: `  reprise repair torn.rply -o good.rply`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if out == "" {
				return usagef("repair writes a new file: say where with -o OUT")
			}
			report, err := repairFile(cmd.Context(), args[0], out)
			if err != nil {
				return atFile(args[0], err)
			}
			if asJSON {
				err = writeJSON(cmd.OutOrStdout(), repairJSON(args[0], out, report))
			} else {
				err = printRepair(cmd.OutOrStdout(), args[0], out, report)
			}
			if err == nil && !report.Whole {
				err = &exitError{code: exitPartly}
			}
			return err
		},
	}
	cmd.Flags().StringVarP(&out, "output", "o", "", "the file to write")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the report as one JSON document")
	return cmd
}

// repairFile repairs path into a new file.
func repairFile(ctx context.Context, path, out string) (*format.RepairReport, error) {
	src, size, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer src.Close()
	var report *format.RepairReport
	err = writeNew(ctx, out, func(f newFile) error {
		report, err = repairAny(src, size, f)
		return err
	})
	return report, err
}

// openRegular opens a file to be read from any place, never one that opening
// would wait for.
func openRegular(path string) (*os.File, int64, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, 0, cause(err)
	}
	if !st.Mode().IsRegular() {
		return nil, 0, fmt.Errorf("%w: not a regular file", format.ErrNotReplay)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, 0, cause(err)
	}
	return f, st.Size(), nil
}

// repairAny repairs a file of any format.
func repairAny(src *os.File, size int64, out newFile) (*format.RepairReport, error) {
	head := make([]byte, 1)
	if n, _ := src.ReadAt(head, 0); n == 1 && head[0] == '{' {
		return repairLines(src, size, out)
	}
	report, err := format.RepairAny(src, size, out)
	if format.IsDamage(err) {
		return nil, &hintedError{err, "nothing of it can be kept, so nothing was written"}
	}
	return report, err
}

// repairLines keeps the whole lines of JSON lines that were cut.
func repairLines(src *os.File, size int64, out newFile) (*format.RepairReport, error) {
	f, err := format.NewFile(src, size)
	if err != nil {
		return nil, &hintedError{err, "JSON lines are text: mend that line, or remove it; nothing was written"}
	}
	s := f.Summary()
	report := &format.RepairReport{Whole: f.Torn == nil, Unproven: f.Unproven(), Ticks: s.Ticks, Steps: s.Steps, Gaps: s.Gaps}
	if report.Whole {
		_, err := io.Copy(out, io.NewSectionReader(src, 0, size))
		return report, err
	}
	report.Losses = []format.Loss{{Offset: f.Torn.Offset, Bytes: size - f.Torn.Offset, Why: f.Torn.Error()}}
	return report, format.WriteJSONL(out, f, format.JSONLWriteOptions{})
}

type repairDocument struct {
	File   jsonText   `json:"file"`
	Output jsonText   `json:"output"`
	Whole  bool       `json:"whole"`
	Chunks int        `json:"chunks"`
	Ticks  uint64     `json:"ticks"`
	Steps  uint64     `json:"steps"`
	Losses []jsonLoss `json:"losses"`
	Mended []jsonText `json:"mended"`
	Gaps   []jsonGap  `json:"gaps"`
}

type jsonLoss struct {
	Offset int64    `json:"offset"`
	Bytes  int64    `json:"bytes"`
	Why    jsonText `json:"why"`
}

func repairJSON(path, out string, r *format.RepairReport) repairDocument {
	d := repairDocument{File: jsonText(path), Output: jsonText(out), Whole: r.Whole, Chunks: r.Chunks, Ticks: r.Ticks, Steps: r.Steps,
		Losses: []jsonLoss{}, Mended: []jsonText{}, Gaps: describeGaps(r.Gaps, "")}
	for _, l := range r.Losses {
		d.Losses = append(d.Losses, jsonLoss{l.Offset, l.Bytes, jsonText(l.Why)})
	}
	for _, m := range r.Mended {
		d.Mended = append(d.Mended, jsonText(m))
	}
	return d
}

func printRepair(w io.Writer, path, out string, r *format.RepairReport) error {
	what := "a part was kept in"
	switch {
	case r.Whole && r.Unproven:
		what = "nothing wrong was found, copied to"
	case r.Whole:
		what = "whole, copied to"
	}
	s := fmt.Sprintf("%s: %s %s: %s, %s", printable(path), what, printable(out), counted(r.Ticks, "tick"), counted(r.Steps, "step"))
	if r.Unproven {
		s += "; " + unproven
	}
	s += "\n"
	for _, l := range r.Losses {
		s += fmt.Sprintf("  lost %s at offset %d: %s\n", counted(uint64(l.Bytes), "byte"), l.Offset, printable(l.Why))
	}
	for _, m := range r.Mended {
		s += fmt.Sprintf("  mended: %s\n", printable(m))
	}
	for _, g := range describeGaps(r.Gaps, "") {
		s += fmt.Sprintf("  gap: %s\n", g.ticks())
	}
	_, err := io.WriteString(w, s)
	return err
}
