package app

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"reprise/format"
)

func newDiff() *cobra.Command {
	o := diffOptions{most: 1}
	cmd := &cobra.Command{
		Use:   "diff A B",
		Short: "Find the first difference between two replays, by content",
		Long: `diff compares what two replays say, whatever their files are: RPLY1 and RPLY2, JSON
lines, archived, sealed, live or torn (up to where it is torn). It ends with 0
where they say the same, and with 1 where they do not. It then prints the first
difference, or the first N with --all N: in the metadata, code book, players,
then tick by tick in the steps and their parameters by the names of the code book
and by typed value, the hashes and the times, then in the gaps, keyframes, marks,
reports and the end. The end is compared only where both have one.

--ignore leaves out what need not agree, such as "metadata,times".`,
		Example: `  reprise diff match.rply copy.rply
  reprise diff --all 20 --ignore metadata,times server.rply client.rply`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(args); err != nil {
				return err
			}
			return o.run(cmd, args[0], args[1])
		},
	}
	f := cmd.Flags()
	f.IntVar(&o.most, "all", 1, "print at most so many differences")
	f.StringSliceVar(&o.ignore, "ignore", nil, "what is not compared: "+strings.Join(format.DiffAspects, ", "))
	f.BoolVar(&o.json, "json", false, "print the result as one JSON document")
	return cmd
}

type diffOptions struct {
	most   int
	ignore []string
	json   bool
}

func (o *diffOptions) check(args []string) error {
	if o.most < 1 {
		return usagef("--all %d: use a number from 1 on", o.most)
	}
	for _, aspect := range o.ignore {
		if !slices.Contains(format.DiffAspects, aspect) {
			return usagef("--ignore %s: use %s", printable(aspect), strings.Join(format.DiffAspects, ", "))
		}
	}
	if args[0] == "-" && args[1] == "-" {
		return usagef("A and B cannot both be standard input")
	}
	return nil
}

// errMore ends a comparison after enough differences.
var errMore = errors.New("there are more differences")

func (o *diffOptions) run(cmd *cobra.Command, a, b string) error {
	files := newOpener(cmd)
	var both []*replay
	for _, path := range [...]string{a, b} {
		r, err := files.open(path)
		if err != nil {
			return atFile(path, err)
		}
		defer r.Close()
		noteTorn(cmd, r)
		both = append(both, r)
	}
	return o.compare(cmd, both[0], both[1])
}

func (o *diffOptions) compare(cmd *cobra.Command, a, b *replay) error {
	doc := diffDocument{A: jsonText(a.path), B: jsonText(b.path), Differences: []jsonDifference{}}
	err := format.Diff(a.File, b.File, format.DiffOptions{Ignore: o.ignore}, func(d format.Difference) error {
		if len(doc.Differences) == o.most {
			return errMore
		}
		doc.Differences = append(doc.Differences, differenceJSON(d))
		return nil
	})
	if doc.More = err == errMore; doc.More {
		err = nil
	}
	if err != nil {
		return fmt.Errorf("%s and %s: %w", printable(a.path), printable(b.path), err)
	}
	doc.Same = len(doc.Differences) == 0
	if o.json {
		err = writeJSON(cmd.OutOrStdout(), doc)
	} else {
		err = doc.print(cmd.OutOrStdout())
	}
	if err == nil && !doc.Same {
		err = &exitError{code: exitFalse}
	}
	return err
}

type diffDocument struct {
	A           jsonText         `json:"a"`
	B           jsonText         `json:"b"`
	Same        bool             `json:"same"`
	Differences []jsonDifference `json:"differences"`
	// More is set where there are more differences than were asked for.
	More bool `json:"more"`
}

type jsonDifference struct {
	Aspect string       `json:"aspect"`
	Tick   *format.Tick `json:"tick"`
	Step   *int         `json:"step"`
	What   jsonText     `json:"what"`
	A      *jsonText    `json:"a"`
	B      *jsonText    `json:"b"`

	text string
}

func differenceJSON(d format.Difference) jsonDifference {
	j := jsonDifference{Aspect: d.Aspect, What: jsonText(d.What), text: d.String()}
	if d.HasTick {
		j.Tick = &d.Tick
	}
	if d.Step >= 0 {
		j.Step = &d.Step
	}
	said := func(v string) *jsonText {
		if v == "" {
			return nil
		}
		text := jsonText(v)
		return &text
	}
	j.A, j.B = said(d.A), said(d.B)
	return j
}

func (d *diffDocument) print(w io.Writer) error {
	var b strings.Builder
	if d.Same {
		fmt.Fprintf(&b, "%s and %s say the same\n", printable(string(d.A)), printable(string(d.B)))
	}
	for _, x := range d.Differences {
		b.WriteString(printable(x.text) + "\n")
	}
	if d.More && len(d.Differences) > 1 {
		b.WriteString("and more\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}
