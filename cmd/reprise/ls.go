package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
)

func newLs() *cobra.Command {
	var o lsOptions
	cmd := &cobra.Command{
		Use:   "ls FILE|DIR...",
		Short: "List replays with game, length, players and state",
		Long: `ls lists the replays in folders, and in their folders, by their names (.rply,
.jsonl, also with .zst or .gz behind). A file that cannot be read is named once,
with its reason, on standard error, and does not keep the others from being
listed. A torn replay is listed, with "+torn" behind its state.`,
		Example: `  reprise ls replays/
  reprise ls --game skirmish --state unfinished --json replays/`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, args) },
	}
	f := cmd.Flags()
	f.StringVar(&o.game, "game", "", "only replays of this game")
	f.StringVar(&o.session, "session", "", "only sessions whose id begins with this")
	f.StringVar(&o.state, "state", "", "only replays in this state: live, unfinished, sealed or unproven")
	f.StringVar(&o.player, "player", "", "only replays with a player of this name")
	f.BoolVar(&o.json, "json", false, "one JSON document a file, as info prints it, on a line of its own")
	return cmd
}

type lsOptions struct {
	game, session, state, player string
	json                         bool
}

func (o *lsOptions) run(cmd *cobra.Command, args []string) error {
	switch o.state {
	case "", "live", "unfinished", "sealed", "unproven":
	default:
		return usagef("--state %s: use live, unfinished, sealed or unproven", o.state)
	}
	table := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	if !o.json {
		fmt.Fprintln(table, "STATE\tGAME\tTICKS\tSTEPS\tLENGTH\tPLAYERS\tSTARTED\tBYTES\tFILE")
	}
	worst := eachReplay(cmd, searchFiles(args), func(path string, r *replay, err error) error {
		if err == nil {
			if i := describe(r); o.wants(i) {
				err = o.print(table, cmd.OutOrStdout(), i)
			}
		}
		if err != nil {
			say(cmd.ErrOrStderr(), "%s", atFile(path, err))
		}
		return err
	})
	if err := table.Flush(); err != nil {
		return err
	}
	return worst
}

func (o *lsOptions) wants(i *fileInfo) bool {
	if o.game != "" && string(i.Game) != o.game || o.state != "" && i.State != o.state || !strings.HasPrefix(string(i.Session), o.session) {
		return false
	}
	if o.player == "" {
		return true
	}
	for _, p := range i.Players {
		if string(p.Name) == o.player {
			return true
		}
	}
	return false
}

func (o *lsOptions) print(table, out io.Writer, i *fileInfo) error {
	if o.json {
		return writeJSON(out, i)
	}
	length := ""
	if i.GameSeconds != nil {
		length = duration(*i.GameSeconds)
	}
	state := i.State
	if len(i.Gaps) > 0 {
		state += "+gaps"
	}
	if i.Torn != nil {
		state += "+torn"
	}
	players := ""
	if i.PlayerCount != nil {
		players = strconv.Itoa(*i.PlayerCount)
	}
	_, err := fmt.Fprintf(table, "%s\t%s\t%d\t%d\t%s\t%s\t%s\t%d\t%s\n", state, dash(printable(string(i.Game))), i.Ticks, i.Steps,
		dash(length), dash(players), dash(i.StartedAt), i.Bytes, printable(string(i.File)))
	return err
}

// dash keeps an empty cell visible.
func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
