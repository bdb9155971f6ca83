package app

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"reprise/cmd/internal/ship"
)

func newShip() *cobra.Command {
	var o shipOptions
	cmd := &cobra.Command{
		Use:   "ship --server ADDR DIR",
		Short: "Send local replays, also growing ones, to a daemon: a sidecar for games that write files",
		Long: `ship sends the replays of a folder to a daemon, each file as one session. The id is
that of the file's metadata or, where it has none, is made from the file's name.
What the daemon seals has the content and the digest of the file.

With --follow it goes on, with files that grow and with new ones, until it is told
to stop. It can be killed at any moment: a record of each file, in DIR/.reprise-ship
or --state, lets the next start go on exactly where the daemon is. Keep that folder:
without it no session can be gone on with.

A file that was replaced, truncated or rewritten under its name is refused, never
mixed in. A damaged one is sent up to the damage; its session ends unfinished, with
a mark that says why. A file without an end mark that has not grown for --idle is
left unfinished, and goes on if it grows again. RPLY1, JSON lines and files inside
.zst or .gz are sent whole: with --follow once they have rested for --idle.

--move and --remove act only once the daemon's digest was found to be the file's.
The exit code is 0 only if every file is sealed at the daemon; with --follow, if
none was given up.`,
		Example: `  reprise ship --follow --server recorder.example:4433 --ca ca.pem --move replays/
  reprise ship --server 127.0.0.1:4433 --pin "$(cat data/tls/fingerprint)" replays/`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, args[0]) },
	}
	f := cmd.Flags()
	o.server.flags(f)
	f.BoolVar(&o.follow, "follow", false, "go on with files that grow, and with new ones")
	f.StringVar(&o.state, "state", "", "folder of the records (default DIR/"+ship.StateFolder+")")
	f.BoolVar(&o.move, "move", false, "move files that are sealed at the daemon into DIR/"+ship.SentFolder)
	f.BoolVar(&o.remove, "remove", false, "remove files that are sealed at the daemon, once its digest was compared")
	f.DurationVar(&o.idle, "idle", 10*time.Minute, "how long a file may not grow before it is left unfinished")
	return cmd
}

type shipOptions struct {
	server               serverOptions
	follow, move, remove bool
	state                string
	idle                 time.Duration
}

func (o *shipOptions) run(cmd *cobra.Command, dir string) error {
	client, err := o.server.config(cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	disposal := ship.Keep
	switch {
	case o.move && o.remove:
		return usagef("--move and --remove exclude each other")
	case o.move:
		disposal = ship.Move
	case o.remove:
		disposal = ship.Remove
	}
	out := cmd.OutOrStdout()
	var end ship.Summary
	err = ship.Run(cmd.Context(), ship.Config{Dir: dir, Follow: o.follow, State: o.state, Dispose: disposal, Idle: o.idle, Servers: o.server.servers,
		TLS: client.TLS, Token: client.Token, Agent: "reprise ship", OnEvent: func(e ship.Event) {
			fmt.Fprintln(out, printable(e.String()))
			if e.Summary != nil {
				end = *e.Summary
			}
		}})
	switch {
	case o.follow && cmd.Context().Err() != nil && end.Failed == 0:
		// It was told to stop: what is under way goes on at the next start.
		return nil
	case errors.Is(err, ship.ErrUnsealed):
		return &exitError{exitPartly, err}
	}
	return err
}
