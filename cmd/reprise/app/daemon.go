package app

import (
	"io"
	"os"

	"github.com/spf13/cobra"

	"reprise/cmd/internal/daemon"
)

// boundToStdin lets the daemon end with the program that started it, however
// that ends.
const boundToStdin = "--bound-to-stdin"

// newDaemon is the daemon inside this program, for the demo to start itself
// again. The daemon to install is reprised.
func newDaemon() *cobra.Command {
	return &cobra.Command{
		Use:                "daemon",
		Hidden:             true,
		DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && args[0] == boundToStdin {
				args = args[1:]
				go endWith(cmd.InOrStdin())
			}
			if code := daemon.Main(args, cmd.OutOrStdout(), cmd.ErrOrStderr()); code != exitOK {
				return &exitError{code: code}
			}
			return nil
		},
	}
}

// endWith ends the process when stdin ends: as in a crash, which a daemon
// survives.
func endWith(stdin io.Reader) {
	_, _ = io.Copy(io.Discard, stdin)
	os.Exit(exitNotTried)
}
