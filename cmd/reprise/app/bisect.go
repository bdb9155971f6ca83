package app

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"reprise/format"
	"reprise/player"
)

func newBisect() *cobra.Command {
	var o bisectOptions
	cmd := &cobra.Command{
		Use:   "bisect FILE",
		Short: "Find the first tick, and the fields, where a simulation goes another way",
		Long: `bisect finds where the simulation leaves the recording. The recorded hashes bound
the place, and so do recorded keyframes: it is exact where every tick has a hash.
The fields that differ are named where the recording holds a keyframe behind it.

With --vs, two simulations play the same inputs, say two builds, and the hash after
every tick is compared, whatever the recording holds: the first tick where they
part, and the fields of both states that differ after it. Where the replay declares
no hashes, the saved states are compared.

What the recording says of its machine, and what differs here, stands before it.

-o DIR writes a bundle: bundle.rply holds the state just before, and the steps and
the hash of those ticks, so that "reprise verify" shows the difference alone; beside
it stand both states, a line a field.

Exit code 0 means that nothing differs, 1 that something does.` + simHelp,
		Example: `  reprise bisect --sim "exec:./server --simulate" match.rply
  reprise bisect --sim exec:builds/1.4.1/sim --vs exec:builds/1.4.2/sim -o bundle match.rply`,
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
	f.StringVar(&o.vs, "vs", "", "a second simulation, compared with the first in place of the recording; builds are not checked")
	f.StringVarP(&o.out, "output", "o", "", "the folder to write the bundle to; it must not exist")
	f.BoolVar(&o.json, "json", false, "print the result as one JSON document")
	return cmd
}

type bisectOptions struct {
	sim  simOptions
	vs   string
	out  string
	json bool
}

func (o *bisectOptions) check() error {
	if err := o.sim.check(); err != nil {
		return err
	}
	if o.out != "" {
		if err := checkAbsent(o.out); err != nil {
			return err
		}
	}
	return checkSim("--vs", o.vs)
}

func (o *bisectOptions) run(cmd *cobra.Command, r *replay) error {
	found, err := o.find(cmd, r)
	if err != nil {
		return err
	}
	if found != nil && o.out != "" {
		if err := o.writeBundle(cmd.Context(), r, found); err != nil {
			return err
		}
	}
	if o.json {
		err = writeJSON(cmd.OutOrStdout(), o.document(r, found))
	} else {
		err = o.print(cmd.OutOrStdout(), r, found)
	}
	if err == nil && found != nil {
		err = &exitError{code: exitFalse}
	}
	return err
}

// find bisects; nil means that nothing differs.
func (o *bisectOptions) find(cmd *cobra.Command, r *replay) (*player.Bisection, error) {
	other := o.sim
	if o.vs != "" {
		other.spec, other.anyBuild, o.sim.anyBuild = o.vs, true, true
	}
	first, closeFirst, err := simFor(cmd, &o.sim, r)
	if err != nil {
		return nil, err
	}
	defer closeFirst()
	second, closeSecond, err := simFor(cmd, &other, r)
	if err != nil {
		return nil, err
	}
	defer closeSecond()
	shown := newProgress(cmd.ErrOrStderr())
	defer shown.clear()
	options := player.PlaybackOptions{OnOutcome: func(out player.Outcome) {
		if out.Tick%showEvery == 0 {
			shown.show("tick %d of %d, %s", out.Tick, r.Summary().NextTick, r.path)
		}
	}}
	if o.vs != "" {
		return player.BisectSims(cmd.Context(), r.File, first, second, options)
	}
	return player.Bisect(cmd.Context(), r.File, first, second, options)
}

// simFor opens a simulation for one replay.
func simFor(cmd *cobra.Command, o *simOptions, r *replay) (player.Simulation, func(), error) {
	sims := o.open(cmd)
	sim, release, err := sims.forReplay(r.Summary().Meta)
	if err != nil {
		return nil, nil, errors.Join(err, sims.close())
	}
	return sim, func() { release(); sims.close() }, nil
}

// The names of the two sides.
func (o *bisectOptions) sides() (want, got string) {
	if o.vs != "" {
		return "first", "second"
	}
	return "recorded", "simulated"
}

func (o *bisectOptions) print(w io.Writer, r *replay, b *player.Bisection) error {
	want, got := o.sides()
	if b == nil {
		_, err := fmt.Fprintf(w, "%s: no difference between %s and %s\n", printable(r.path), want, got)
		return err
	}
	var t strings.Builder
	if machine := o.machine(r).text(); machine != "" {
		fmt.Fprintf(&t, "%s: %s\n", printable(r.path), machine)
	}
	fmt.Fprintf(&t, "%s: %s and %s differ after tick %d", printable(r.path), want, got, b.Tick)
	if b.Part != "" {
		fmt.Fprintf(&t, ", in %q", b.Part)
	}
	t.WriteString(equalBefore(r, b))
	if b.Want != nil {
		fmt.Fprintf(&t, "  hash %s %s\n  hash %s %s\n", want, hex.EncodeToString(b.Want), got, hex.EncodeToString(b.Got))
	}
	o.printFields(&t, b)
	if o.out != "" {
		fmt.Fprintf(&t, "bundle: %s\n", printable(filepath.Join(o.out, bundleFile)))
	}
	_, err := io.WriteString(w, t.String())
	return err
}

// machine compares the machine that recorded with this one; nil with --vs,
// where both sides run here.
func (o *bisectOptions) machine(r *replay) *jsonMachine {
	if o.vs != "" {
		return nil
	}
	return compareMachine(r.Summary().Meta)
}

func equalBefore(r *replay, b *player.Bisection) string {
	switch {
	case b.First == r.Summary().Meta.FirstTick:
		return "; nothing before it is known to be equal\n"
	case b.First == b.Tick:
		return fmt.Sprintf("; equal after tick %d\n", b.First-1)
	}
	return fmt.Sprintf("; equal after tick %d, no hash between\n", b.First-1)
}

func (o *bisectOptions) printFields(t *strings.Builder, b *player.Bisection) {
	switch {
	case !b.HasFields && o.vs != "":
		t.WriteString("  the games do not name the fields of their state\n")
	case !b.HasFields:
		t.WriteString("  fields: no keyframe stands behind the place; --vs with the recorded build names them\n")
	case len(b.Fields) == 0:
		fmt.Fprintf(t, "  fields after tick %d: all equal\n", b.FieldsAt)
	default:
		want, got := o.sides()
		fmt.Fprintf(t, "  fields that differ after tick %d: %d\n", b.FieldsAt, len(b.Fields))
		for _, f := range b.Fields {
			fmt.Fprintf(t, "    %-24s %s %s, %s %s\n", printable(f.Name), want, fieldText(f.Want), got, fieldText(f.Got))
		}
	}
}

func fieldText(value string) string {
	if value == "" {
		return "(none)"
	}
	return printable(value)
}

const bundleFile = "bundle.rply"

// writeBundle writes the bundle's folder, which is there as a whole or not at
// all.
func (o *bisectOptions) writeBundle(ctx context.Context, r *replay, b *player.Bisection) error {
	temporary, err := os.MkdirTemp(filepath.Dir(filepath.Clean(o.out)), ".reprise-*.tmp")
	if err != nil {
		return fmt.Errorf("%s cannot be written: %w", printable(o.out), cause(err))
	}
	defer os.RemoveAll(temporary) // what was renamed is not there any more
	err = writeNew(ctx, filepath.Join(temporary, bundleFile), func(f newFile) error { return b.WriteBundle(f, r.File) })
	if err != nil {
		return err
	}
	want, got := o.sides()
	if b.HasFields {
		err = errors.Join(writeFields(temporary, want, b.WantFields), writeFields(temporary, got, b.GotFields))
	}
	if err == nil {
		err = os.Chmod(temporary, 0o755)
	}
	if err == nil {
		err = os.Rename(temporary, o.out)
	}
	if err != nil {
		return fmt.Errorf("%s cannot be written: %w", printable(o.out), cause(err))
	}
	return nil
}

// writeFields writes a state, a line a field.
func writeFields(folder, side string, fields []player.Field) error {
	var t strings.Builder
	for _, f := range fields {
		fmt.Fprintf(&t, "%s = %s\n", printable(f.Name), printable(f.Value))
	}
	return os.WriteFile(filepath.Join(folder, side+".txt"), []byte(t.String()), 0o644)
}

// bisectDocument is what `bisect --json` prints.
type bisectDocument struct {
	File   jsonText     `json:"file"`
	Differ bool         `json:"differ"`
	Tick   *format.Tick `json:"tick"`
	First  *format.Tick `json:"first_possible_tick"`
	Part   jsonText     `json:"part,omitempty"`
	Want   string       `json:"hash_a,omitempty"`
	Got    string       `json:"hash_b,omitempty"`
	// Machine is there where a simulation differs from the recording.
	Machine  *jsonMachine `json:"machine,omitempty"`
	FieldsAt *format.Tick `json:"fields_after_tick"`
	Fields   []jsonField  `json:"fields"`
	Bundle   jsonText     `json:"bundle,omitempty"`
}

type jsonField struct {
	Name jsonText `json:"name"`
	A    jsonText `json:"a"`
	B    jsonText `json:"b"`
}

func (o *bisectOptions) document(r *replay, b *player.Bisection) *bisectDocument {
	d := &bisectDocument{File: jsonText(r.path), Fields: []jsonField{}}
	if b == nil {
		return d
	}
	d.Differ, d.Tick, d.First, d.Part = true, &b.Tick, &b.First, jsonText(b.Part)
	d.Want, d.Got = hex.EncodeToString(b.Want), hex.EncodeToString(b.Got)
	d.Machine = o.machine(r)
	if b.HasFields {
		d.FieldsAt = &b.FieldsAt
	}
	for _, f := range b.Fields {
		d.Fields = append(d.Fields, jsonField{jsonText(f.Name), jsonText(f.Want), jsonText(f.Got)})
	}
	if o.out != "" {
		d.Bundle = jsonText(filepath.Join(o.out, bundleFile))
	}
	return d
}
