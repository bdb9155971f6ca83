package app

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"reprise/cmd/internal/daemon"
	"reprise/recorder"
	"reprise/recorder/archive"
)

func newPrune() *cobra.Command {
	var o pruneOptions
	cmd := &cobra.Command{
		Use:   "prune [--dry-run] [--config FILE] DATA",
		Short: "Remove what a daemon's retention would remove, or list it, and why",
		Long: `prune removes the replays of a data folder that a daemon with this configuration
would remove now, the oldest first, and prints each with the reason; with --dry-run
it changes nothing, and only lists them. What is kept in any case (pinned,
unfinished, unreadable replays) is counted, and listed with --kept. Each removal is
a line on standard error, too, as in the daemon's log. Without a rule nothing goes.

While a daemon runs on the folder, removing is its work, which it does by the same
rules every minute: prune then ends with 3, and only --dry-run works. It goes by the
clock as it is, where a daemon waits a day once the clock has jumped.

The rules are the keys retain_… of --config, of the environment (REPRISE_RETAIN_…),
or of the flags below, in ascending order of weight. A session that ended within
the last half minute may be missing.`,
		Example: `  reprise prune --dry-run --config /etc/reprise/reprised.toml /var/lib/reprise
  reprise prune --dry-run --retain-age 720h --retain-bytes 100GiB /var/lib/reprise
  reprise prune --retain-age 720h --retain-bytes 100GiB /var/lib/reprise`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, args[0]) },
	}
	f := cmd.Flags()
	f.BoolVar(&o.dryRun, "dry-run", false, "list, and change nothing")
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
	policy, reopen, err := o.policy()
	if err != nil {
		return err
	}
	if st, err := os.Stat(filepath.Join(data, "ledger")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return atFile(data, cause(err))
	} else if err != nil || !st.Mode().IsRegular() {
		return atFile(data, errors.New("not a data folder of reprised: it has no ledger"))
	}
	var remove []archive.Removal
	var unmet []string
	var held []archive.Holding
	if o.dryRun {
		remove, unmet, held, err = archive.Preview(data, policy, reopen, time.Now())
	} else {
		log := slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil))
		remove, unmet, held, err = archive.Prune(cmd.Context(), data, policy, reopen, time.Now(), log)
	}
	if err != nil {
		err = pruneError(atFile(data, err), len(remove))
	}
	if held == nil {
		return err
	}
	out := bufio.NewWriter(cmd.OutOrStdout())
	err = errors.Join(err, o.print(out, remove, held), out.Flush())
	for _, bound := range unmet {
		say(cmd.ErrOrStderr(), "%s", bound)
	}
	if !o.json {
		say(cmd.ErrOrStderr(), "%s", o.summary(remove, held))
	}
	return err
}

// pruneError says what to do where nothing, or only a part, was removed.
func pruneError(err error, removed int) error {
	switch {
	case errors.Is(err, recorder.ErrRunning):
		return &hintedError{err, "it removes by its own retain_… keys every minute: change and reload these, or use --dry-run"}
	case removed > 0:
		return &exitError{exitPartly, err}
	}
	return err
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
	verdictRemove  = "remove"
	verdictRemoved = "removed"
	verdictKeep    = "keep"
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
	verdict := verdictRemoved
	if o.dryRun {
		verdict = verdictRemove
	}
	for i := range remove {
		if err := put(verdict, &remove[i].Holding, remove[i].Why); err != nil {
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

func (o *pruneOptions) summary(remove []archive.Removal, held []archive.Holding) string {
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
	done := "were removed"
	if o.dryRun {
		done = "would be removed"
	}
	return fmt.Sprintf("%d of %s %s, %d of %s; kept in any case: %d", len(remove), counted(len(held), "replay"), done, goes, counted(uint64(all), "byte"), kept)
}
