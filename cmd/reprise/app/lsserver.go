package app

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"reprise/format"
	"reprise/transport"
)

// sessionInfo is what `ls --server` says of one session; the JSON names are a
// contract. Those that info has, too, mean the same.
type sessionInfo struct {
	File        jsonText     `json:"file"`
	State       string       `json:"state"`
	Complete    bool         `json:"complete"`
	EndReason   jsonText     `json:"end_reason,omitempty"`
	Session     jsonText     `json:"session"`
	Game        jsonText     `json:"game"`
	LastTick    *format.Tick `json:"last_tick"`
	Ticks       uint64       `json:"ticks"`
	Steps       uint64       `json:"steps"`
	Hashes      uint64       `json:"hashes"`
	DurableTick format.Tick  `json:"durable_tick"`
	StartedAt   string       `json:"started_at"`
	EndsAt      string       `json:"ends_at,omitempty"`
	Bytes       uint64       `json:"bytes"`
}

func describeSession(s *transport.Listed) *sessionInfo {
	i := &sessionInfo{File: jsonText(s.File), State: s.State.String(), EndReason: jsonText(s.Reason), Session: jsonText(s.Session), Game: jsonText(s.Game),
		Ticks: s.Ticks, Steps: s.Steps, Hashes: s.Hashes, DurableTick: s.DurableTick, Bytes: s.Bytes}
	if s.Ticks > 0 {
		last := s.NextTick - 1
		i.LastTick = &last
	}
	if !s.Started.IsZero() {
		i.StartedAt = clockTime(s.Started.UnixMicro())
	}
	if !s.Ends.IsZero() {
		i.EndsAt = clockTime(s.Ends.UnixMicro())
	}
	return i
}

// listServer lists the sessions of a daemon.
func (o *lsOptions) listServer(cmd *cobra.Command) error {
	switch o.state {
	case "", "live", "detached", "ending", "quarantined":
	default:
		return usagef("--state %s: with --server use live, detached, ending or quarantined", o.state)
	}
	if o.player != "" || o.filters.pinned {
		return usagef("--player and --pinned: a daemon lists neither players nor pins")
	}
	if err := o.filters.parse(time.Now()); err != nil {
		return err
	}
	if len(o.session) > format.MaxSessionID {
		return usagef("--session: no id has more than %d characters", format.MaxSessionID)
	}
	cfg, err := o.server.config(cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	cfg.Agent = "reprise ls"
	sessions, err := transport.List(cmd.Context(), o.server.servers, cfg, o.session)
	if err != nil {
		return unreached(err)
	}
	out := cmd.OutOrStdout()
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	if !o.json {
		fmt.Fprintln(table, "STATE\tGAME\tTICKS\tSTEPS\tDURABLE\tSTARTED\tBYTES\tSESSION")
	}
	for n := range sessions {
		i := describeSession(&sessions[n])
		if o.game != "" && string(i.Game) != o.game || o.state != "" && i.State != o.state || !o.filters.began(sessions[n].Started) {
			continue
		}
		if err := o.printSession(table, out, i); err != nil {
			return err
		}
	}
	return table.Flush()
}

// began tells whether the bounds let a session pass that began then.
func (l *lsFilters) began(at time.Time) bool {
	if l.from.IsZero() && l.to.IsZero() {
		return true
	}
	return !at.IsZero() && !at.Before(l.from) && (l.to.IsZero() || at.Before(l.to))
}

// printSession prints a line. DURABLE is the first tick that a crash of the
// daemon could take.
func (o *lsOptions) printSession(table, out io.Writer, i *sessionInfo) error {
	if o.json {
		return writeJSON(out, i)
	}
	_, err := fmt.Fprintf(table, "%s\t%s\t%d\t%d\t%d\t%s\t%d\t%s\n", i.State, dash(printable(string(i.Game))), i.Ticks, i.Steps,
		i.DurableTick, dash(i.StartedAt), i.Bytes, printable(string(i.Session)))
	return err
}
