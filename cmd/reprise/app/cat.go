package app

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"reprise/format"
)

func newCat() *cobra.Command {
	var o catOptions
	cmd := &cobra.Command{
		Use:   "cat FILE",
		Short: "Print steps and ticks as text, or as JSON lines",
		Long: `cat prints a line for every step: the tick, the command's name (or code), and the
parameters; and a line for every state hash and gap. With --numbers the tick of a
step is TICK:STEP, the step's number within its tick, as edit scripts name it. With
--jsonl it prints JSON lines, which record and convert take back without a loss.

A torn replay is printed up to where it is torn; the exit code is 5 then.`,
		Example: `  reprise cat --from 3000 --to 3020 match.rply
  reprise cat --numbers --from 120 --to 120 match.rply
  reprise cat --jsonl match.rply > match.jsonl`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.jsonl && o.numbers {
				return usagef("--numbers is for text: JSON lines have no step numbers")
			}
			return withReplay(args[0], newOpener(cmd).open, func(r *replay) error { return o.run(cmd.OutOrStdout(), r) })
		},
	}
	cmd.Flags().Var(&o.from, "from", "first tick to print")
	cmd.Flags().Var(&o.to, "to", "last tick to print")
	cmd.Flags().BoolVar(&o.numbers, "numbers", false, "print the number of each step within its tick")
	cmd.Flags().BoolVar(&o.jsonl, "jsonl", false, "print JSON lines")
	return cmd
}

type catOptions struct {
	from, to tickFlag
	numbers  bool
	jsonl    bool
}

func (o *catOptions) run(stdout io.Writer, r *replay) error {
	if err := o.from.within(&o.to, r.File); err != nil {
		return err
	}
	if isTerminal(stdout) {
		stdout = &escapingWriter{w: stdout}
	}
	out := bufio.NewWriter(stdout)
	var err error
	if o.jsonl {
		err = format.WriteJSONL(out, r.File, format.JSONLWriteOptions{From: o.from.value, To: o.to.tick()})
	} else {
		err = o.text(out, r.File)
	}
	if flushErr := out.Flush(); err == nil {
		err = flushErr
	}
	if err == nil {
		err = r.tornError()
	}
	return err
}

// text prints the ticks and gaps of the range. A failure to write stays in w,
// and ends the loop with the next tick.
func (o *catOptions) text(w *bufio.Writer, f *format.File) error {
	r := f.Reader()
	if o.from.set {
		r.Seek(o.from.value)
	}
	gaps := f.Summary().Gaps
	var t format.TickRecord
	var steps format.StepReader
	for {
		err := r.Next(&t)
		for len(gaps) > 0 && (err != nil || gaps[0].First < t.Tick) {
			o.gap(w, gaps[0])
			gaps = gaps[1:]
		}
		if err == io.EOF || err == nil && o.to.set && t.Tick > o.to.value {
			return nil
		}
		if err != nil {
			return err
		}
		if err := o.tick(w, f.Book(), &t, &steps); err != nil {
			return err
		}
	}
}

// gap prints a gap that reaches into the range.
func (o *catOptions) gap(w *bufio.Writer, g format.Gap) {
	if o.from.set && g.Last < o.from.value || o.to.set && g.First > o.to.value {
		return
	}
	fmt.Fprintf(w, "%d gap until tick %d%s\n", g.First, g.Last, because(jsonText(g.Reason)))
}

func (o *catOptions) tick(w *bufio.Writer, book *format.CodeBook, t *format.TickRecord, steps *format.StepReader) error {
	var step format.Step
	steps.Reset(t)
	for n := 0; steps.Next(&step); n++ {
		fmt.Fprintf(w, "%s %s\n", o.place(t.Tick, n), stepText(book, step))
	}
	if t.Hash != nil {
		fmt.Fprintf(w, "%d hash %s\n", t.Tick, hex.EncodeToString(t.Hash))
	}
	_, err := w.Write(nil)
	return err
}

// place names step n of a tick.
func (o *catOptions) place(tick format.Tick, n int) string {
	if o.numbers {
		return fmt.Sprintf("%d:%d", tick, n)
	}
	return fmt.Sprint(tick)
}

// stepText names a step and its parameters by the code book.
func stepText(book *format.CodeBook, step format.Step) string {
	info := book.Lookup(step.Code)
	s := fmt.Sprint(step.Code)
	if info != nil && info.Name != "" {
		s = printable(info.Name)
	}
	for i, v := range step.Params {
		s += " "
		if info != nil && i < len(info.Params) && info.Params[i].Name != "" {
			s += printable(info.Params[i].Name) + "="
		}
		s += v.String()
	}
	return s
}
