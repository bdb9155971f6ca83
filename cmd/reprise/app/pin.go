package app

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"reprise/format"
	"reprise/recorder/archive"
)

func newPin() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "pin FILE...",
		Short: "Keep replays of a data folder from being removed",
		Long: `pin keeps replays in the data folder of a daemon from being removed, whatever its
retention says; it may run meanwhile. A pin is the session's, not the file's: it
holds before and after the file is archived. The file's session must be in a data
folder: one of the folders above the file has the ledger.

"reprise ls --pinned DIR" lists what is pinned, "reprise unpin" takes a pin back.`,
		Example: `  reprise pin --reason "cup final" /var/lib/reprise/archive/2026/11/29/room-m-42-20261129T190259Z.rply`,
		Args:    atLeastOne("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(reason) > format.MaxText {
				return usagef("--reason: %d bytes, the most is %d", len(reason), format.MaxText)
			}
			return eachSession(cmd, args, func(p archive.Pins, id, path string) error {
				pin := archive.Pin{Session: id, Kind: archive.PinByHand, Reason: reason, Since: time.Now().UTC().Truncate(time.Second)}
				if err := p.Set(pin); err != nil {
					return err
				}
				_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s: session %s is pinned\n", printable(path), id)
				return err
			})
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for people")
	return cmd
}

func newUnpin() *cobra.Command {
	return &cobra.Command{
		Use:   "unpin FILE...",
		Short: "Take pins of replays back",
		Long: `unpin lets replays be removed again that were pinned: by hand, or by the daemon
for a desync, a mark or a clip. The daemon does not pin them again by itself.`,
		Example: `  reprise unpin /var/lib/reprise/archive/2026/11/29/room-m-42-20261129T190259Z.rply`,
		Args:    atLeastOne("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return eachSession(cmd, args, func(p archive.Pins, id, path string) error {
				was, err := p.Release(id)
				if err != nil {
					return err
				}
				said := "is no longer pinned"
				if !was {
					said = "was not pinned"
				}
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: session %s %s\n", printable(path), id, said)
				return err
			})
		},
	}
}

// eachSession finds the sessions of files in data folders, and goes on after
// one that fails.
func eachSession(cmd *cobra.Command, paths []string, do func(p archive.Pins, id, path string) error) error {
	opener := newOpener(cmd)
	var folders dataFolders
	var worst outcome
	for _, path := range paths {
		err := inDataFolder(opener, &folders, path, do)
		if err != nil {
			say(cmd.ErrOrStderr(), "%s", atFile(path, err))
		}
		worst.add(err)
	}
	return worst.err()
}

func inDataFolder(opener *opener, folders *dataFolders, path string, do func(p archive.Pins, id, path string) error) error {
	r, err := opener.open(path)
	if err != nil {
		return err
	}
	own := r.Summary().Meta.Session
	r.Close()
	return withPins(folders, path, own, func(p archive.Pins, id string) error { return do(p, id, path) })
}

// withPins finds the session of a file in a data folder, and the folder's pins.
// The error matches errNoData for a file that is in none, and errNoSession for
// one of no session.
func withPins(folders *dataFolders, path, own string, do func(p archive.Pins, id string) error) error {
	data, name, err := folders.find(path)
	if err != nil {
		return err
	}
	id, err := folders.session(data, name, own)
	if err != nil {
		return err
	}
	if err := format.ValidSession(id); err != nil {
		return fmt.Errorf("%w: %w", errNoSession, err)
	}
	pins, err := archive.OpenPins(data)
	if err != nil {
		return err
	}
	defer pins.Close()
	return do(pins, id)
}

// errNoSession is returned for a file of a data folder that has no session
// there.
var errNoSession = errors.New("the replay is of no session in the ledger")
