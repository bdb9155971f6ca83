package app

import (
	"crypto/rand"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"reprise/format"
)

func newEdit() *cobra.Command {
	o := editOptions{}
	cmd := &cobra.Command{
		Use:   "edit SCRIPT FILE -o OUT",
		Short: "Write a replay with the changes of a small script",
		Long: `edit carries out SCRIPT ("-" is standard input) on a copy of FILE. A line of it is

  insert TICK[:STEP] CODE VALUE...   a step before step STEP, else behind the last
  delete TICK:STEP[-STEP]            these steps of a tick
  delete TICK[-TICK]                 all steps of these ticks
  set TICK:STEP PARAM VALUE          one parameter of a step
  replace TICK:STEP CODE VALUE...    a whole step
  mark TICK KIND [TEXT [PLAYER]]     a mark more
  unmark TICK [KIND]                 the marks of a tick, or those of one kind
  meta KEY VALUE                     game, build, data, map, session, seed,
                                     tick_rate, started_at
  label KEY VALUE                    a label more, or another value
  unlabel KEY
  join TICK PLAYER NAME [TEAM [observer]]
  leave TICK PLAYER
  rename PLAYER NAME

Steps and parameters count from 0. CODE and PARAM are numbers, or names of the
code book. A VALUE is as in JSON lines: 12, 1.5, "text", true, [1,2],
{"bigint":"5"}, {"bytes":"/w=="}. Other texts are plain words, or in double quotes.
Lines are carried out in order: step numbers are those after the lines before.
Empty lines, and lines that begin with #, are passed over.

State hashes and reports from the first changed tick on, and keyframes behind it,
are of another match: they are left out, unless --keep-hashes is given. A changed
seed, map or data, or another player, counts as a change before the tick. The
label edited-from names the replay, and its session id is not kept: OUT is another
replay. On any error nothing is written. OUT must not exist.`,
		Example: `  echo 'set 120:0 x 300' | reprise edit - match.rply -o edited.rply
  reprise edit fix.txt match.rply -o edited.rply --keep-hashes`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.out == "" {
				return usagef("edit writes a new file: say where with -o OUT")
			}
			if args[0] == "-" && args[1] == "-" {
				return usagef("SCRIPT and FILE cannot both be standard input")
			}
			files := newOpener(cmd)
			script, err := readScript(files, args[0])
			if err != nil {
				return atFile(args[0], err)
			}
			return withReplay(args[1], files.open, func(r *replay) error { return o.run(cmd, script, r) })
		},
	}
	f := cmd.Flags()
	f.StringVarP(&o.out, "output", "o", "", "the file to write")
	f.BoolVar(&o.keep, "keep-hashes", false, "keep hashes, reports and keyframes that the changes made untrue")
	f.BoolVar(&o.json, "json", false, "print what was changed as one JSON document")
	return cmd
}

type editOptions struct {
	out        string
	keep, json bool
}

func readScript(files *opener, path string) (*format.EditScript, error) {
	text, err := files.read(path)
	if err != nil {
		return nil, cause(err)
	}
	script, err := format.ParseEditScript(text)
	return script, scriptError(err)
}

// scriptError makes a wrong script a misuse of the command.
func scriptError(err error) error {
	if isError[*format.ScriptError](err) {
		return &exitError{exitUsage, &hintedError{err, `"reprise edit --help" explains the script; nothing was written`}}
	}
	return err
}

func (o *editOptions) run(cmd *cobra.Command, script *format.EditScript, r *replay) error {
	noteTorn(cmd, r)
	salt := make([]byte, format.SaltBytes)
	rand.Read(salt)
	var report *format.EditReport
	err := writeNew(cmd.Context(), o.out, func(f newFile) error {
		var err error
		report, err = format.Edit(r.File, f, script, format.EditOptions{KeepHashes: o.keep, Salt: salt})
		return err
	})
	if errors.Is(err, format.ErrLimit) && !isError[*format.ScriptError](err) {
		return &exitError{exitUsage, err}
	}
	if err != nil {
		return scriptError(err)
	}
	if o.json {
		return writeJSON(cmd.OutOrStdout(), editJSON(r.path, o.out, report))
	}
	_, err = fmt.Fprintln(cmd.OutOrStdout(), editText(o.out, report))
	return err
}

func editText(out string, r *format.EditReport) string {
	s := fmt.Sprintf("%s: %s inserted, %s deleted, %s set", printable(out), counted(r.Inserted, "step"), counted(r.Deleted, "step"), counted(r.Set, "step"))
	if r.FirstChanged == nil {
		return s + "; no tick is another"
	}
	s += fmt.Sprintf("; changed from tick %d on", *r.FirstChanged)
	var proofs []string
	for _, p := range [...]struct {
		n    int
		noun string
	}{{r.Hashes, "hash"}, {r.Keyframes, "keyframe"}, {r.Reports, "report"}} {
		if p.n > 0 {
			proofs = append(proofs, counted(p.n, p.noun))
		}
	}
	switch {
	case len(proofs) == 0:
		return s
	case r.Kept:
		return s + ": kept all the same: " + strings.Join(proofs, ", ")
	}
	return s + ": left out as no proof any more: " + strings.Join(proofs, ", ")
}

type editDocument struct {
	File         jsonText     `json:"file"`
	Output       jsonText     `json:"output"`
	FirstChanged *format.Tick `json:"first_changed"`
	Inserted     int          `json:"inserted"`
	Deleted      int          `json:"deleted"`
	Set          int          `json:"set"`
	Hashes       int          `json:"untrue_hashes"`
	Keyframes    int          `json:"untrue_keyframes"`
	Reports      int          `json:"untrue_reports"`
	Kept         bool         `json:"kept"`
	Source       jsonText     `json:"source"`
}

func editJSON(path, out string, r *format.EditReport) editDocument {
	return editDocument{jsonText(path), jsonText(out), r.FirstChanged, r.Inserted, r.Deleted, r.Set, r.Hashes, r.Keyframes, r.Reports, r.Kept, jsonText(r.Source)}
}
