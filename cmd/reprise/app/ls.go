package app

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync/atomic"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
)

func newLs() *cobra.Command {
	var o lsOptions
	cmd := &cobra.Command{
		Use:   "ls FILE|DIR... | --server ADDR",
		Short: "List replays, or a daemon's sessions, with game, length and state",
		Long: `ls lists the replays in folders, and in their folders, by their names (.rply,
.jsonl, also with .zst or .gz behind). A file that cannot be read is named once,
with its reason, on standard error, and does not keep the others from being
listed. A torn replay is listed, with "+torn" behind its state.

With --server it lists the sessions of a daemon that have not ended, as far as the
token allows: live ones, those whose producer is away (detached), and those whose
file is being finished (ending) or cannot be trusted (quarantined).`,
		Example: `  reprise ls replays/
  reprise ls --game skirmish --state unfinished --json replays/
  reprise ls --since 2026-11-01 --until 7d --pinned /var/lib/reprise
  reprise ls --server recorder.example:4433 --ca ca.pem --token-file token --state live`,
		Args: func(_ *cobra.Command, args []string) error { return o.checkArgs(args) },
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, args) },
	}
	f := cmd.Flags()
	o.server.flags(f)
	f.StringVar(&o.game, "game", "", "only replays of this game")
	f.StringVar(&o.session, "session", "", "only sessions whose id begins with this")
	f.StringVar(&o.state, "state", "", "only replays in this state: live, unfinished, sealed (archived ones, too), archived or unproven; with --server live, detached, ending or quarantined")
	f.StringVar(&o.player, "player", "", "only replays with a player of this name")
	o.filters.flags(f)
	f.BoolVar(&o.json, "json", false, "one JSON document a file, as info prints it, on a line of its own")
	return cmd
}

type lsOptions struct {
	game, session, state, player string
	json                         bool
	filters                      lsFilters
	server                       serverOptions
}

// checkArgs: a listing is of files or of a daemon.
func (o *lsOptions) checkArgs(args []string) error {
	switch remote := len(o.server.servers) > 0; {
	case remote && len(args) > 0:
		return usagef("--server lists a daemon's sessions: name no files with it")
	case !remote && len(args) == 0:
		return usagef("name files or folders, or a daemon with --server")
	case !remote && o.server.named():
		return usagef("--pin, --ca, --insecure, --token-file, --cert and --key go with --server")
	}
	return nil
}

func (o *lsOptions) run(cmd *cobra.Command, args []string) error {
	if len(o.server.servers) > 0 {
		return o.listServer(cmd)
	}
	switch o.state {
	case "", "live", "unfinished", "sealed", "archived", "unproven":
	default:
		return usagef("--state %s: use live, unfinished, sealed, archived or unproven", o.state)
	}
	if err := o.filters.parse(time.Now()); err != nil {
		return err
	}
	// A table writes its cells one by one.
	out := bufio.NewWriterSize(cmd.OutOrStdout(), 64<<10)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	if !o.json {
		fmt.Fprintln(table, "STATE\tGAME\tTICKS\tSTEPS\tLENGTH\tPLAYERS\tSTARTED\tBYTES\tFILE")
	}
	worst := o.list(cmd, searchFiles(args), func(i *fileInfo) error { return o.print(table, out, i) })
	if err := errors.Join(table.Flush(), out.Flush()); err != nil {
		return err
	}
	return worst
}

// list looks at replays side by side, and prints those that are wanted in
// their order. The error is that of the worst one.
func (o *lsOptions) list(cmd *cobra.Command, entries []replayEntry, print func(*fileInfo) error) error {
	opener := newOpener(cmd)
	var worst outcome
	eachInOrder(entries, func(e replayEntry) (*fileInfo, error) { return o.look(opener, e) }, func(e replayEntry, i *fileInfo, err error) {
		if i != nil && err == nil {
			err = print(i)
		}
		if err != nil {
			say(cmd.ErrOrStderr(), "%s", atFile(e.path, err))
		}
		worst.add(err)
	})
	return worst.err()
}

// look describes one replay; nil where it is not wanted.
func (o *lsOptions) look(opener *opener, e replayEntry) (*fileInfo, error) {
	r, err := e.open(opener)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	i := describe(r)
	if !o.wants(i) {
		return nil, nil
	}
	wanted, err := o.filters.want(r)
	if err != nil || !wanted {
		return nil, err
	}
	return i, nil
}

// lookers is how many files are looked at side by side: more than there are
// processors, for some wait for the disk.
const lookers = 16

// eachInOrder does look for all entries side by side, and tell with what it
// gave for one after the other.
func eachInOrder[T any](entries []replayEntry, look func(replayEntry) (T, error), tell func(replayEntry, T, error)) {
	type seen struct {
		what T
		err  error
		done chan struct{}
	}
	all := make([]seen, len(entries))
	for i := range all {
		all[i].done = make(chan struct{})
	}
	var next atomic.Int64
	for range min(lookers, len(entries)) {
		go func() {
			for i := int(next.Add(1)) - 1; i < len(entries); i = int(next.Add(1)) - 1 {
				all[i].what, all[i].err = look(entries[i])
				close(all[i].done)
			}
		}()
	}
	for i := range all {
		<-all[i].done
		tell(entries[i], all[i].what, all[i].err)
		all[i] = seen{}
	}
}

func (o *lsOptions) wants(i *fileInfo) bool {
	if o.game != "" && string(i.Game) != o.game || !o.inState(i) || !strings.HasPrefix(string(i.Session), o.session) {
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

// inState: an archive is sealed as well.
func (o *lsOptions) inState(i *fileInfo) bool {
	return o.state == "" || i.State == o.state || o.state == stateSealed && i.State == stateArchived
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
