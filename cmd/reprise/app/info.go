package app

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"reprise/format"
)

func newInfo() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "info FILE...",
		Short: "Print everything that a replay says about itself",
		Long: `info prints what a replay says about itself, without reading all of it: state,
game and build, ticks, steps, hashes, keyframes, marks, gaps, players, times and
digest. It proves nothing: see check.

A torn replay is described up to where it is torn, and ends with exit code 5.`,
		Example: `  reprise info match.rply
  reprise info --json replays/*.rply`,
		Args: atLeastOne("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return eachReplay(cmd, namedFiles(args), func(path string, r *replay, err error) error {
				if err == nil {
					err = printInfo(cmd.OutOrStdout(), describe(r), asJSON)
				}
				if err == nil {
					err = r.tornError()
				}
				if err != nil {
					say(cmd.ErrOrStderr(), "%s", atFile(path, err))
				}
				return err
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "one JSON document a file, on a line of its own")
	return cmd
}

func printInfo(w io.Writer, i *fileInfo, asJSON bool) error {
	if asJSON {
		return writeJSON(w, i)
	}
	_, err := io.WriteString(w, i.text())
	return err
}

// text is for people: a line a fact, those that say nothing left out.
func (i *fileInfo) text() string {
	t := infoText{}
	t.b.WriteString(printable(string(i.File)) + "\n")
	t.line("format", "%s", strings.TrimSuffix(i.Format+" in "+i.Wrapping, " in "))
	t.line("state", "%s", i.stateSentence())
	t.line("session", "%s", printable(string(i.Session)))
	t.line("game", "%s", printable(strings.TrimSpace(string(i.Game)+" "+string(i.Build))))
	t.line("data", "%s", printable(string(i.Data)))
	t.line("map", "%s", printable(string(i.Map)))
	t.line("seed", "%d", i.Seed)
	t.line("tick rate", "%s", i.rateSentence())
	t.line("ticks", "%s", i.tickSentence())
	t.line("steps", "%d", i.Steps)
	t.line("hashes", "%s", i.hashSentence())
	t.line("keyframes", "%s", joinTicks(i.Keyframes))
	t.lists(i)
	t.line("started", "%s", i.StartedAt)
	t.line("length", "%s", i.lengthSentence())
	t.line("bytes", "%d", i.Bytes)
	t.line("digest", "%s", i.Digest)
	t.line("signed by", "%s", i.signerSentence())
	t.line("redacted", "%s", i.redactionSentence())
	return t.b.String()
}

// signerSentence does not say that the signatures hold: that is for check.
func (i *fileInfo) signerSentence() string {
	if len(i.SignedBy) == 0 {
		return ""
	}
	return "key " + strings.Join(i.SignedBy, ", key ") + " (see check --trust)"
}

func (i *fileInfo) redactionSentence() string {
	r := i.Redacted
	if r == nil {
		return ""
	}
	var parts []string
	if r.Players {
		parts = append(parts, "the players")
	}
	if r.Metadata {
		parts = append(parts, "metadata")
	}
	if r.Parameters > 0 {
		parts = append(parts, counted(r.Parameters, "parameter")+" in "+counted(r.Segments, "segment"))
	}
	if r.Marks > 0 {
		parts = append(parts, "the texts of "+counted(r.Marks, "mark"))
	}
	return strings.Join(parts, ", ")
}

type infoText struct{ b strings.Builder }

func (t *infoText) line(name, text string, args ...any) {
	if text = fmt.Sprintf(text, args...); text != "" {
		fmt.Fprintf(&t.b, "  %-12s %s\n", name, text)
	}
}

// lists prints what there may be several of.
func (t *infoText) lists(i *fileInfo) {
	for _, m := range i.Marks {
		t.line("mark", "tick %d, %s, player %d: %s", m.Tick, printable(string(m.Kind)), m.Player, printable(string(m.Text)))
	}
	for _, g := range i.Gaps {
		t.line("gap", "%s, declared by %s%s", g.ticks(), g.Declared, because(g.Reason))
	}
	if i.PlayerCount != nil {
		t.line("players", "%d", *i.PlayerCount)
	}
	for _, p := range i.Players {
		t.line("player", "%s", p.sentence())
	}
	if i.Reports > 0 {
		t.line("reports", "%s of peers", counted(i.Reports, "hash"))
	}
	for _, l := range i.Labels {
		t.line("label", "%s = %s", printable(string(l.Key)), printable(string(l.Value)))
	}
	for _, l := range i.Env {
		t.line("environment", "%s = %s", printable(string(l.Key)), printable(string(l.Value)))
	}
}

// because puts a reason behind a fact, if there is one.
func because(reason jsonText) string {
	if reason == "" {
		return ""
	}
	return ": " + printable(string(reason))
}

func (i *fileInfo) stateSentence() string {
	s := i.State
	switch {
	case i.Note != "":
		s = i.Note
	case i.Complete:
		s += ", complete"
	case len(i.Gaps) > 0:
		s += ", with " + counted(len(i.Gaps), "gap")
	}
	s += because(i.EndReason)
	if i.Torn != nil {
		s += fmt.Sprintf("; ends inside a record, not whole from offset %d on: %s", i.Torn.Offset, counted(i.Torn.Bytes, "byte"))
	}
	return s
}

func (i *fileInfo) rateSentence() string {
	if i.TickRate.Num == 0 {
		return "none: a tick is a turn"
	}
	return format.Rate(i.TickRate).String() + " a second"
}

func (i *fileInfo) tickSentence() string {
	if i.LastTick == nil {
		return "none"
	}
	return fmt.Sprintf("%d, from %d to %d", i.Ticks, i.FirstTick, *i.LastTick)
}

func (i *fileInfo) hashSentence() string {
	if i.HashBytes == 0 {
		return "none: it can be played, not verified"
	}
	s := fmt.Sprintf("%d of %s", i.Hashes, counted(i.HashBytes, "byte"))
	for n, p := range i.HashParts {
		sep := ", "
		if n == 0 {
			sep = ": "
		}
		s += fmt.Sprintf("%s%s %d", sep, printable(string(p.Name)), p.Bytes)
	}
	if i.HashesLeft > 0 {
		s += fmt.Sprintf("; %d %s left out", i.HashesLeft, were(i.HashesLeft))
	}
	return s
}

func (p jsonPlayer) sentence() string {
	s := fmt.Sprintf("%d %s", p.ID, printable(string(p.Name)))
	if p.Team != "" {
		s += ", team " + printable(string(p.Team))
	}
	if p.Observer {
		s += ", observer"
	}
	for _, stay := range p.Stays {
		s += fmt.Sprintf(", from tick %d", stay.Joined)
		if stay.Left != nil {
			s += fmt.Sprintf(" until %d", *stay.Left)
		}
	}
	return s
}

func (i *fileInfo) lengthSentence() string {
	var parts []string
	if i.GameSeconds != nil {
		parts = append(parts, duration(*i.GameSeconds)+" of game time")
	}
	if i.WallSeconds != nil {
		parts = append(parts, duration(*i.WallSeconds)+" on the clock")
	}
	return strings.Join(parts, ", ")
}

// joinTicks counts keyframes and lists their ticks, the first ones where
// there are many.
func joinTicks(ticks []format.Tick) string {
	const most = 8
	if len(ticks) == 0 {
		return ""
	}
	var parts []string
	for _, t := range ticks[:min(len(ticks), most)] {
		parts = append(parts, fmt.Sprint(t))
	}
	noun := "tick"
	if len(ticks) > 1 {
		noun = "ticks"
	}
	s := fmt.Sprintf("%d, before %s %s", len(ticks), noun, strings.Join(parts, ", "))
	if len(ticks) > most {
		s += " and later ones"
	}
	return s
}
