package app

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"reprise/cmd/internal/daemon"
	"reprise/recorder/archive"
)

func newPrune() *cobra.Command {
	var o pruneOptions
	cmd := &cobra.Command{
		Use:   "prune --dry-run [--config FILE] DATA",
		Short: "List what the daemon's retention would remove, and why",
		Long: `prune lists the replays of a data folder that a daemon with this configuration
would remove now, the oldest first, each with the reason, and changes nothing:
removing is the daemon's work, which does it by the same rules every minute. What
is kept in any case (pinned, unfinished, unreadable replays) is counted, and
listed with --kept.

The rules are the keys retain_… of --config, of the environment (REPRISE_RETAIN_…),
or of the flags below, in ascending order of weight. A session that ended within
the last half minute may be missing.`,
		Example: `  reprise prune --dry-run --config /etc/reprise/reprised.toml /var/lib/reprise
  reprise prune --dry-run --retain-age 720h --retain-bytes 100GiB /var/lib/reprise`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, args[0]) },
	}
	f := cmd.Flags()
	f.BoolVar(&o.dryRun, "dry-run", false, "list, and change nothing: must be given")
	f.StringVar(&o.config, "config", "", "configuration file of the daemon")
	f.BoolVar(&o.kept, "kept", false, "list what is to be kept, too")
	f.BoolVar(&o.json, "json", false, "one JSON document a replay, on a line of its own")
	o.rules = f
	addRuleFlags(f)
	return cmd
}

type pruneOptions struct {
	dryRun, kept, json bool
	config             string
	rules              *pflag.FlagSet
}

// ruleFlags are the flags of the daemon that prune takes.
var ruleFlags = []string{"retain-age", "retain-bytes", "retain-count", "retain-games", "retain-unfinished", "reopen-window"}

func addRuleFlags(f *pflag.FlagSet) {
	cfg := daemon.Default()
	all := pflag.NewFlagSet("reprised", pflag.ContinueOnError)
	cfg.Flags(all)
	for _, name := range ruleFlags {
		flag := *all.Lookup(name)
		f.AddFlag(&flag)
	}
}

// policy loads the rules as the daemon does.
func (o *pruneOptions) policy() (archive.Policy, time.Duration, error) {
	cfg := daemon.Default()
	flags := pflag.NewFlagSet("reprised", pflag.ContinueOnError)
	cfg.Flags(flags)
	for _, name := range ruleFlags {
		if flag := o.rules.Lookup(name); flag.Changed {
			if err := flags.Set(name, flag.Value.String()); err != nil {
				return archive.Policy{}, 0, &exitError{exitUsage, err}
			}
		}
	}
	if err := cfg.Load(o.config, os.LookupEnv, flags); err != nil {
		return archive.Policy{}, 0, &exitError{exitUsage, err}
	}
	return cfg.Policy(), cfg.ReopenWindow.Duration, nil
}

func (o *pruneOptions) run(cmd *cobra.Command, data string) error {
	if !o.dryRun {
		return &hintedError{usagef("prune removes nothing by itself, that is the daemon's work"), "--dry-run lists what the daemon would remove"}
	}
	policy, reopen, err := o.policy()
	if err != nil {
		return err
	}
	if st, err := os.Stat(filepath.Join(data, "ledger")); err != nil || !st.Mode().IsRegular() {
		return atFile(data, errors.Join(errors.New("not a data folder of reprised: it has no ledger"), cause(err)))
	}
	remove, unmet, held, err := archive.Preview(data, policy, reopen, time.Now())
	if err != nil {
		return atFile(data, err)
	}
	out := bufio.NewWriter(cmd.OutOrStdout())
	if err := errors.Join(o.print(out, remove, held), out.Flush()); err != nil {
		return err
	}
	for _, bound := range unmet {
		say(cmd.ErrOrStderr(), "%s", bound)
	}
	if !o.json {
		say(cmd.ErrOrStderr(), "%s", pruneSummary(remove, held))
	}
	return nil
}

// pruneLine is what prune says of one replay; the JSON names are a contract.
type pruneLine struct {
	Verdict string   `json:"verdict"`
	File    jsonText `json:"file"`
	Session string   `json:"session"`
	Game    jsonText `json:"game"`
	Ended   string   `json:"ended_at"`
	Bytes   int64    `json:"bytes"`
	Reason  jsonText `json:"reason"`
}

// Verdicts of prune.
const (
	verdictRemove = "remove"
	verdictKeep   = "keep"
)

func (o *pruneOptions) print(w io.Writer, remove []archive.Removal, held []archive.Holding) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if !o.json {
		fmt.Fprintln(table, "VERDICT\tGAME\tENDED\tBYTES\tFILE\tREASON")
	}
	put := func(verdict string, h *archive.Holding, why string) error {
		l := pruneLine{verdict, jsonText(h.File), h.ID, jsonText(h.Game), h.Since.UTC().Format(time.RFC3339), h.Bytes, jsonText(why)}
		if o.json {
			return writeJSON(w, l)
		}
		_, err := fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%s\t%s\n", l.Verdict, dash(printable(string(l.Game))), l.Ended, l.Bytes, printable(h.File), printable(why))
		return err
	}
	for i := range remove {
		if err := put(verdictRemove, &remove[i].Holding, remove[i].Why); err != nil {
			return err
		}
	}
	for i := range held {
		if o.kept && held[i].Kept != "" {
			if err := put(verdictKeep, &held[i], held[i].Kept); err != nil {
				return err
			}
		}
	}
	return table.Flush()
}

func pruneSummary(remove []archive.Removal, held []archive.Holding) string {
	var goes, all int64
	kept := 0
	for i := range remove {
		goes += remove[i].Bytes
	}
	for i := range held {
		all += held[i].Bytes
		if held[i].Kept != "" {
			kept++
		}
	}
	return fmt.Sprintf("%d of %s would be removed, %d of %d bytes; %d are kept in any case", len(remove), counted(len(held), "replay"), goes, all, kept)
}
