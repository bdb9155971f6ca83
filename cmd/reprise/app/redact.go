package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"reprise/format"
)

// redactResult is what `redact --json` prints for one file.
type redactResult struct {
	verdict
	Output     jsonText   `json:"output"`
	Players    int        `json:"players"`
	Parameters uint64     `json:"parameters"`
	Segments   uint64     `json:"segments"`
	Labels     []jsonText `json:"labels"`
	Header     bool       `json:"header"`
	Marks      int        `json:"marks"`
	Chunks     int        `json:"unknown_chunks"`
	Left       []jsonText `json:"left"`
}

// redactOptions are the flags of the command redact.
type redactOptions struct {
	format.RedactOptions
	out    string
	asJSON bool
}

func newRedact() *cobra.Command {
	var o redactOptions
	cmd := &cobra.Command{
		Use:   "redact FILE|DIR... -o OUT",
		Short: "Write copies without what is personal",
		Long: `redact writes a copy of each replay without its players and their salt, with the
parameters that its code book calls personal emptied (their position and type
stay), without the header of JSON lines that a converted replay keeps, and without
the labels and facts of the environment that --label names. The copy has the content
digest and the signatures of the original: "check" says what was erased.

It says of each file what may still be personal, since nothing in the file says
whether it is: texts in other parameters, keyframes, labels, marks, names of
sessions and of files. A copy can no longer prove the inputs of the segments in which
parameters were emptied. FILE is not changed.

One FILE is written to OUT. For a folder, or several files, OUT is a folder.`,
		Example: `  reprise redact match.rply -o public.rply
  reprise redact archive/2027 -o public --label host --mark-texts`,
		Args: atLeastOne("FILE or DIR"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.out == "" {
				return usagef("redact writes new files: say where with -o OUT")
			}
			return o.run(cmd, args)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&o.out, "output", "o", "", "the file, or the folder, to write")
	f.StringArrayVar(&o.Labels, "label", nil, "key of a label or fact of the environment to erase (may be repeated)")
	f.BoolVar(&o.MarkTexts, "mark-texts", false, "empty the texts of all marks")
	f.BoolVar(&o.asJSON, "json", false, "one JSON document a file, on a line of its own")
	return cmd
}

func (o *redactOptions) run(cmd *cobra.Command, args []string) error {
	single := len(args) == 1 && !isFolder(args[0]) && !isFolder(o.out)
	open := newOpener(cmd)
	var worst outcome
	for _, arg := range args {
		entries := searchFiles([]string{arg})
		if len(entries) == 0 {
			say(cmd.ErrOrStderr(), "%s: no replays in it", printable(arg))
		}
		for _, entry := range entries {
			out := o.out
			if !single {
				out = filepath.Join(o.out, redactedName(arg, entry.path))
			}
			r, err := entry.open(open)
			result := o.redact(cmd.Context(), entry.path, out, r, err, !single)
			if r != nil {
				r.Close()
			}
			if err := result.print(cmd.OutOrStdout(), o.asJSON); err != nil {
				return err
			}
			worst.add(result.err)
		}
	}
	return worst.err()
}

func isFolder(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.IsDir()
}

// redactedName is where a file found under arg goes below the output folder:
// its place is kept, and copies are RPLY2 as it is.
func redactedName(arg, path string) string {
	name, err := filepath.Rel(arg, path)
	if err != nil || name == "." {
		name = filepath.Base(path)
	}
	for _, ending := range replayEndings {
		if bare, ok := strings.CutSuffix(name, ending); ok {
			return bare + ".rply"
		}
	}
	return name
}

func (o *redactOptions) redact(ctx context.Context, path, out string, r *replay, err error, makeFolder bool) *redactResult {
	result := &redactResult{verdict: verdict{File: jsonText(path)}, Output: jsonText(out), Labels: []jsonText{}, Left: []jsonText{}}
	if err == nil && r.live {
		err = errors.New("a daemon is writing it: redact it when its session has ended")
	}
	if err == nil && makeFolder {
		err = os.MkdirAll(filepath.Dir(out), 0o777)
	}
	if err == nil {
		err = writeNew(ctx, out, func(f newFile) error {
			report, err := format.Redact(r.File, o.RedactOptions, f)
			if err == nil {
				result.take(report)
			}
			return err
		})
	}
	result.settle(err)
	return result
}

func (r *redactResult) take(report *format.RedactReport) {
	r.Players, r.Parameters, r.Segments, r.Header, r.Marks, r.Chunks = report.Names, report.Params, report.Segments, report.Header, report.Marks, report.Unknown
	for _, l := range report.Labels {
		r.Labels = append(r.Labels, jsonText(l))
	}
	for _, l := range report.Left {
		r.Left = append(r.Left, jsonText(l))
	}
}

func (r *redactResult) print(w io.Writer, asJSON bool) error {
	if asJSON {
		return writeJSON(w, r)
	}
	if r.err != nil {
		return r.verdict.print(w, "", nil)
	}
	if err := r.verdict.print(w, r.facts(), nil); err != nil {
		return err
	}
	for _, l := range r.Left {
		if _, err := fmt.Fprintf(w, "  may still be personal: %s\n", printable(string(l))); err != nil {
			return err
		}
	}
	return nil
}

// facts names what was erased.
func (r *redactResult) facts() string {
	var erased []string
	add := func(n uint64, what string) {
		if n > 0 {
			erased = append(erased, counted(n, what))
		}
	}
	add(uint64(r.Players), "player")
	add(r.Parameters, "parameter")
	add(uint64(len(r.Labels)), "label")
	add(uint64(r.Marks), "mark text")
	add(uint64(r.Chunks), "unknown chunk")
	if r.Header {
		erased = append(erased, "the header of JSON lines")
	}
	if len(erased) == 0 {
		erased = append(erased, "nothing")
	}
	return fmt.Sprintf("copied to %s, erased: %s", printable(string(r.Output)), strings.Join(erased, ", "))
}
