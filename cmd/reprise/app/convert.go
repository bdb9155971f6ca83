package app

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"reprise/cmd/internal/table"
	"reprise/format"
)

func newConvert() *cobra.Command {
	var o convertOptions
	cmd := &cobra.Command{
		Use:   "convert IN OUT",
		Short: "Convert a replay to another format",
		Long: `convert reads any replay and writes RPLY2, RPLY1, JSON lines, CSV or Parquet; OUT's
ending decides (.rply is RPLY2, then .jsonl, .csv and .parquet) unless --to does.
It refuses to lose content that the target cannot hold, and says what that is;
with --lossy it leaves that behind. Signatures, and notices of what was redacted or
left out, are RPLY2's alone: what goes is said. OUT must not exist; "-" is standard output.

An archive that is converted to RPLY2 is one no longer: the file has the ordinary
layout again, with the same content digest, signatures and notice of what was
redacted. State hashes that the archive left out stay left out, and it says so.

CSV and Parquet hold one table. --table all, the default, has a row for everything
in the replay, and convert reads it back without a loss. --table steps, or ticks, has
only these, for tools that want no more; what it leaves out is said. The columns:

` + table.Columns + `

A table of ticks has the columns tick, steps (their number), hash and time_us.

Raw saveState buffers of the replay array are read with --raw-width, --raw-params
and --raw-length (IN is the command area), and written with --to savestate (OUT
is the command area, --raw-params the parameter area). --int64-split 31 is for
buffers of the original engine's code, which splits int64 halves at 2^31.`,
		Example: `  reprise convert old.rply match.rply --to rply2
  reprise convert match.jsonl match.rply
  reprise convert archive/2026/11/29/room-m-42-20261129T190259Z.rply match.rply
  reprise convert match.rply back.rply --to rply1
  reprise convert match.rply match.parquet
  reprise convert match.rply steps.csv --table steps
  reprise convert commands.bin match.rply --raw-params params.bin --raw-width 8 --raw-length 120`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(args[1]); err != nil {
				return err
			}
			return withReplay(args[0], o.opener(cmd), func(r *replay) error { return o.run(cmd, r, args[1]) })
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.to, "to", "", "target format: rply1, rply2, jsonl, csv, parquet or savestate")
	f.StringVar((*string)(&o.table), "table", string(table.All), "csv, parquet: all, steps or ticks")
	f.BoolVar(&o.packLists, "pack-lists", false, "from JSON lines: pack runs of integers into list parameters where a step has too many")
	f.StringVar(&o.rawParams, "raw-params", "", "file of the raw parameter area")
	f.IntVar(&o.rawWidth, "raw-width", 0, "width of command codes in the raw command area: 8 or 16")
	f.IntVar(&o.rawLength, "raw-length", -1, "number of steps in the raw command area (default: all of it)")
	f.IntVar(&o.split, "int64-split", 32, "where raw int64 halves are split: 32, or 31 for the original engine's code")
	f.BoolVar(&o.lossy, "lossy", false, "let --to rply1 and savestate leave behind what they have no place for")
	return cmd
}

type convertOptions struct {
	to, rawParams       string
	packLists           bool
	rawWidth, rawLength int
	split               int
	lossy               bool
	table               table.Kind
}

// targets are the formats that can be written, endings those that a name stands
// for.
var (
	targets = []string{"rply1", "rply2", "jsonl", "csv", "parquet", "savestate"}
	endings = map[string]string{".rply": "rply2", ".jsonl": "jsonl", ".csv": "csv", ".parquet": "parquet"}
)

// toTable tells whether the target is a table.
func (o *convertOptions) toTable() bool { return o.to == "csv" || o.to == "parquet" }

// check decides the target, and refuses flags that do not go together.
func (o *convertOptions) check(out string) error {
	if o.to == "" {
		o.to = endings[filepath.Ext(out)]
	}
	switch {
	case o.to == "":
		return usagef("%s has no ending that names a format (.rply, .jsonl, .csv, .parquet): use --to", printable(out))
	case !slices.Contains(targets, o.to):
		return usagef("--to %s: use rply1, rply2, jsonl, csv, parquet or savestate", printable(o.to))
	case o.table != table.All && o.table != table.Steps && o.table != table.Ticks:
		return usagef("--table %s: use all, steps or ticks", printable(string(o.table)))
	case o.table != table.All && !o.toTable():
		return usagef("--table is for csv and parquet, the target is %s", o.to)
	case o.split != 31 && o.split != 32:
		return usagef("--int64-split %d: use 31 or 32", o.split)
	case o.rawWidth != 0 && o.rawWidth != 8 && o.rawWidth != 16:
		return usagef("--raw-width %d: use 8 or 16", o.rawWidth)
	case o.rawWidth != 0 && o.rawParams == "":
		return usagef("--raw-width needs --raw-params FILE, the parameter area")
	case o.rawWidth != 0 && o.to == "savestate":
		return usagef("--raw-width reads a saveState and --to savestate writes one: convert in two steps")
	case o.to == "savestate" && (o.rawParams == "" || out == "-"):
		return usagef("--to savestate writes two files: OUT and --raw-params FILE")
	}
	return nil
}

// opener picks how IN is read: as a replay, or as raw buffers.
func (o *convertOptions) opener(cmd *cobra.Command) func(string) (*replay, error) {
	files := newOpener(cmd)
	switch {
	case o.rawWidth != 0:
		return func(path string) (*replay, error) { return o.openRaw(files, path) }
	case o.packLists:
		return files.openPacked
	}
	return func(path string) (*replay, error) { return openTableOr(files, path) }
}

// openTableOr opens a table that convert wrote, or any replay.
func openTableOr(files *opener, path string) (*replay, error) {
	if path == "-" {
		b, err := files.read(path)
		if err != nil {
			return nil, cause(err)
		}
		if as, ok := table.Is(b); ok {
			return tableReplay(bytes.NewReader(b), int64(len(b)), as, path)
		}
		f, err := format.NewFile(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			return nil, openError(err)
		}
		return &replay{File: f, path: path}, nil
	}
	src, size, err := openRegular(path)
	if err != nil {
		return files.open(path)
	}
	defer src.Close()
	head := make([]byte, 16)
	n, _ := src.ReadAt(head, 0)
	as, ok := table.Is(head[:n])
	if !ok {
		return files.open(path)
	}
	return tableReplay(src, size, as, path)
}

// tableReplay reads a table into memory, as a replay.
func tableReplay(src io.ReaderAt, size int64, as table.Format, path string) (*replay, error) {
	var out format.Buffer
	if err := table.Read(src, size, as, &out); err != nil {
		return nil, &hintedError{openError(err), "a whole table is what \"reprise convert\" writes with --table all"}
	}
	f, err := format.NewFile(&out, int64(len(out.Bytes())))
	if err != nil {
		return nil, openError(err)
	}
	return &replay{File: f, path: path}, nil
}

func (o *convertOptions) run(cmd *cobra.Command, r *replay, out string) error {
	if r.Torn != nil {
		return r.Torn
	}
	ctx := cmd.Context()
	switch {
	case o.to == "savestate":
		return o.writeRaw(ctx, r, out)
	case out == "-":
		return o.write(cmd.OutOrStdout(), cmd.ErrOrStderr(), r)
	}
	err := writeNew(ctx, out, func(f newFile) error { return o.write(f, cmd.ErrOrStderr(), r) })
	if err != nil {
		return err
	}
	s := r.Summary()
	say(cmd.ErrOrStderr(), "%s: %s, %s to %s", printable(out), counted(s.Ticks, "tick"), counted(s.Steps, "step"), o.to)
	return nil
}

func (o *convertOptions) write(out, stderr io.Writer, r *replay) error {
	w := bufio.NewWriter(out)
	if lost := unsaid(r); len(lost) > 0 && o.to != "rply2" {
		say(stderr, "%s: %s cannot say: %s", printable(r.path), o.to, strings.Join(lost, ", "))
	}
	var err error
	switch {
	case o.to == "rply1" && o.lossy:
		var lost []string
		if lost, err = format.WriteRPLY1Lossy(w, r.File); len(lost) > 0 {
			say(stderr, "%s: left behind: %s", printable(r.path), strings.Join(lost, ", "))
		}
	case o.to == "rply1":
		err = format.WriteRPLY1(w, r.File)
	case o.to == "jsonl":
		err = format.WriteJSONL(w, r.File, format.JSONLWriteOptions{})
	case o.toTable():
		if err = table.Write(w, r.File, table.Format(o.to), o.table); err == nil && o.table != table.All {
			say(stderr, "%s: the table of %s leaves out the metadata, code book, %s", printable(r.path), o.table, o.table.Left())
		}
	case r.Summary().Archived():
		err = format.Unarchive(r.File, w)
	default:
		_, err = io.Copy(w, r.Raw())
	}
	if err != nil {
		return err
	}
	return w.Flush()
}

// openRaw reads the two areas of a saveState.
func (o *convertOptions) openRaw(files *opener, in string) (*replay, error) {
	commands, err := files.read(in)
	if err != nil {
		return nil, cause(err)
	}
	params, err := files.read(o.rawParams)
	if err != nil {
		return nil, atFile(o.rawParams, cause(err))
	}
	f, err := o.importState(commands, params)
	if err != nil {
		return nil, err
	}
	return &replay{File: f, path: in}, nil
}

func (o *convertOptions) importState(commands, params []byte) (*format.File, error) {
	state := format.State{CommandWidth: format.Width(o.rawWidth), Length: o.rawLength, CommandArray: commands, ParamArray: params}
	if o.rawLength < 0 {
		state.Length = len(commands) / (1 + o.rawWidth/8)
	}
	var err error
	if o.split == 31 {
		if state, err = format.ConvertSplit31(state, false); err != nil {
			return nil, err
		}
	}
	var out format.Buffer
	if err := format.ImportState(&out, state); err != nil {
		return nil, err
	}
	return format.NewFile(&out, int64(len(out.Bytes())))
}

// writeRaw writes the two areas of a saveState: both files, or none.
func (o *convertOptions) writeRaw(ctx context.Context, r *replay, out string) error {
	if err := o.refuseLoss(r.Summary()); err != nil {
		return err
	}
	state, err := format.ExportState(r.File)
	if err == nil && o.split == 31 {
		state, err = format.ConvertSplit31(state, true)
	}
	if err != nil {
		return err
	}
	return writeNew(ctx, out, func(f newFile) error {
		if _, err := f.Write(state.CommandArray); err != nil {
			return err
		}
		return writeNew(ctx, o.rawParams, func(f newFile) error {
			_, err := f.Write(state.ParamArray)
			return err
		})
	})
}

// refuseLoss names what a saveState cannot hold, unless --lossy was given.
func (o *convertOptions) refuseLoss(s *format.Summary) error {
	if o.lossy {
		return nil
	}
	for _, loss := range [...]struct {
		n    uint64
		what string
	}{{s.Hashes, "state hashes"}, {uint64(len(s.Keyframes)), "keyframes"}, {uint64(len(s.Marks)), "marks"}, {uint64(len(s.Gaps)), "gaps"},
		{uint64(len(s.Players)), "players"}, {s.Reports, "reports"}, {uint64(s.Meta.TickRate.Num), "ticks and their rate"}} {
		if loss.n > 0 {
			return fmt.Errorf("%w: a saveState has no place for %s", format.ErrLossy, loss.what)
		}
	}
	return nil
}
