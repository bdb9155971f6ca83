package app

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reprise/format"
	"reprise/player"
	"reprise/recorder/archive"
)

func newClip() *cobra.Command {
	o := clipOptions{}
	cmd := &cobra.Command{
		Use:   "clip --from T --to T FILE -o OUT",
		Short: "Cut a range of ticks into a replay that plays and verifies alone",
		Long: `clip writes the ticks from --from to --to as a replay of its own: with their
numbers, hashes, times, keyframes, marks and reports, and with every player known
by then. So that it can be simulated it begins with a keyframe: the last one at
--from or before it (the clip is then longer than asked for, and says so), or, with
--sim, one at --from that the game's own simulation makes. A clip from the replay's
first tick on needs none. Without any keyframe clip refuses, unless
--without-keyframe is given: such a clip can be read, not simulated.

The label clip-of names the replay by its session and content digest, the range,
and the keys that had signed it, if it passes the check for that; "info" and "check"
print it. It is the word of whoever cut the clip, and no proof: a clip is new
content, which the replay's signatures do not cover. Who vouches for it signs it:
"reprise sign". Leaves of the content digest that lie whole in the clip are those of
the replay.

A replay in the data folder of a daemon is pinned as clipped, so that retention
keeps what the clip was cut from; "unpin" takes that back, and --no-pin leaves it.
FILE is not changed; of a torn one, what is whole can be cut. OUT must not exist.` + simHelp,
		Example: `  reprise clip --from 3000 --to 3600 match.rply -o fight.rply
  reprise clip --from 3000 --to 3600 --sim skirmish match.rply -o fight.rply
  reprise verify fight.rply
  reprise sign --key referee.key fight.rply`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(); err != nil {
				return err
			}
			return withReplay(args[0], newOpener(cmd).open, func(r *replay) error { return o.run(cmd, r) })
		},
	}
	f := cmd.Flags()
	f.Var(&o.from, "from", "first tick of the clip")
	f.Var(&o.to, "to", "last tick of the clip")
	f.StringVarP(&o.out, "output", "o", "", "the file to write")
	f.BoolVar(&o.bare, "without-keyframe", false, "cut at --from also where no keyframe leads there")
	f.BoolVar(&o.noPin, "no-pin", false, "let retention remove the replay that the clip is cut from")
	f.BoolVar(&o.json, "json", false, "print what was cut as one JSON document")
	o.sim.flags(f)
	return cmd
}

type clipOptions struct {
	from, to          tickFlag
	out               string
	bare, noPin, json bool
	sim               simOptions
}

func (o *clipOptions) check() error {
	switch {
	case !o.from.set || !o.to.set:
		return usagef("clip needs a range: give --from and --to")
	case o.out == "":
		return usagef("clip writes a new file: say where with -o OUT")
	case o.bare && o.sim.spec != "":
		return usagef("--without-keyframe and --sim, which makes one, are at odds: use one")
	}
	return o.sim.check()
}

func (o *clipOptions) run(cmd *cobra.Command, r *replay) error {
	if err := o.from.within(&o.to, r.File); err != nil {
		return err
	}
	noteTorn(cmd, r)
	options := format.ClipOptions{From: o.from.value, To: o.to.value, WithoutKeyframe: o.bare}
	if o.sim.spec != "" && !hasKeyframe(r.Summary(), o.from.value) {
		var err error
		if options.State, err = o.simulate(cmd, r); err != nil {
			return err
		}
	}
	var report *format.ClipReport
	err := writeNew(cmd.Context(), o.out, func(f newFile) error {
		var err error
		report, err = format.Clip(r.File, f, options)
		return err
	})
	if err != nil {
		return clipError(err)
	}
	if report.Doubt != nil {
		say(cmd.ErrOrStderr(), "%s: who signed it is not named in the clip: %v", printable(r.path), report.Doubt)
	}
	pinned, err := o.pin(r)
	if err != nil {
		say(cmd.ErrOrStderr(), "%s: the clip is made, but this replay could not be pinned, and retention may remove it: %v", printable(r.path), err)
	}
	if o.json {
		return writeJSON(cmd.OutOrStdout(), clipJSON(r.path, o.out, options, report, pinned))
	}
	_, err = fmt.Fprintln(cmd.OutOrStdout(), clipText(r.path, o.out, options, report, pinned))
	return err
}

// pin keeps the replay that a clip was cut from, where it is in a data folder,
// and gives the session that it pinned. A pin that holds already stays.
func (o *clipOptions) pin(r *replay) (session string, err error) {
	if o.noPin || r.path == "-" {
		return "", nil
	}
	err = withPins(&dataFolders{}, r.path, r.Summary().Meta.Session, func(p archive.Pins, id string) error {
		if _, held, err := p.Find(id); held || err != nil {
			return err
		}
		session = id
		reason := fmt.Sprintf("ticks %d to %d", o.from.value, o.to.value)
		return p.Set(archive.Pin{Session: id, Kind: archive.PinClipped, Reason: reason, Since: time.Now().UTC().Truncate(time.Second)})
	})
	if errors.Is(err, errNoData) || errors.Is(err, errNoSession) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return session, nil
}

// noteTorn says that only a part of the input is there.
func noteTorn(cmd *cobra.Command, r *replay) {
	if err := r.tornError(); err != nil {
		say(cmd.ErrOrStderr(), "%s: %v: what stands before is taken", printable(r.path), err)
	}
}

func hasKeyframe(s *format.Summary, tick format.Tick) bool {
	for _, k := range s.Keyframes {
		if k.NextTick == tick {
			return true
		}
	}
	return false
}

// simulate makes the state before the first tick. It is not taken from a run
// that is out of step with the recorded hashes.
func (o *clipOptions) simulate(cmd *cobra.Command, r *replay) ([]byte, error) {
	sims := o.sim.open(cmd)
	defer sims.close()
	sim, release, err := sims.forReplay(r.Summary().Meta)
	if err != nil {
		return nil, err
	}
	defer release()
	p := player.NewPlayback(r.File, sim, player.PlaybackOptions{})
	if err := p.Seek(cmd.Context(), o.from.value); err != nil {
		return nil, err
	}
	if desync := p.Report().Desync; desync != nil {
		return nil, desync
	}
	state, err := p.Save(nil)
	if errors.Is(err, player.ErrUnable) {
		err = &hintedError{err, "without --sim the clip begins with the last recorded keyframe"}
	}
	return state, err
}

// clipError says what to do about a range that has no start.
func clipError(err error) error {
	switch {
	case errors.Is(err, format.ErrRange):
		return &exitError{exitUsage, err}
	case errors.Is(err, format.ErrNoStart):
		return &hintedError{err, "begin at the first tick or behind a keyframe (\"info\" lists them), make one with --sim, or give --without-keyframe"}
	}
	return err
}

func clipText(path, out string, o format.ClipOptions, r *format.ClipReport, pinned string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: ticks %d to %d of %s: %s, %s, %s", printable(out), r.First, r.Last, printable(path), counted(r.Ticks, "tick"), counted(r.Steps, "step"), counted(r.Hashes, "hash"))
	if len(r.Gaps) > 0 {
		fmt.Fprintf(&b, ", with %s", counted(len(r.Gaps), "gap"))
	}
	switch {
	case r.First < o.From:
		fmt.Fprintf(&b, "; it begins %s before tick %d, where the last keyframe is", counted(uint64(o.From-r.First), "tick"), o.From)
	case o.State != nil:
		b.WriteString("; it begins with a keyframe made by simulation")
	case r.Keyframe:
		b.WriteString("; it begins with a keyframe")
	case o.WithoutKeyframe:
		b.WriteString("; it has no keyframe to start from")
	}
	if keys := keyIDs(r.Signers); len(keys) > 0 {
		fmt.Fprintf(&b, "; it says that %s was signed by key %s", printable(path), strings.Join(keys, ", key "))
	}
	if pinned != "" {
		fmt.Fprintf(&b, "; session %s is pinned", pinned)
	}
	return b.String()
}

type clipDocument struct {
	File      jsonText    `json:"file"`
	Output    jsonText    `json:"output"`
	From      format.Tick `json:"from"`
	To        format.Tick `json:"to"`
	FirstTick format.Tick `json:"first_tick"`
	LastTick  format.Tick `json:"last_tick"`
	Keyframe  bool        `json:"keyframe"`
	Simulated bool        `json:"simulated"`
	Ticks     uint64      `json:"ticks"`
	Steps     uint64      `json:"steps"`
	Hashes    uint64      `json:"hashes"`
	Gaps      []jsonGap   `json:"gaps"`
	Source    jsonText    `json:"source"`
	SignedBy  []string    `json:"source_signed_by"`
	Pinned    string      `json:"pinned_session,omitempty"`
}

func keyIDs(keys []format.PublicKey) []string {
	ids := []string{}
	for _, k := range keys {
		ids = append(ids, k.ID())
	}
	return ids
}

func clipJSON(path, out string, o format.ClipOptions, r *format.ClipReport, pinned string) clipDocument {
	return clipDocument{jsonText(path), jsonText(out), o.From, o.To, r.First, r.Last, r.Keyframe, o.State != nil,
		r.Ticks, r.Steps, r.Hashes, describeGaps(r.Gaps, ""), jsonText(r.Source), keyIDs(r.Signers), pinned}
}
