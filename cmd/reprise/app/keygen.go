package app

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"reprise/cmd/internal/keys"
)

func newKeygen() *cobra.Command {
	var out, name string
	cmd := &cobra.Command{
		Use:   "keygen [-o FILE] [--name NAME]",
		Short: "Make a key to sign replays with",
		Long: `keygen makes an ed25519 key. FILE gets the private key (PEM, PKCS #8), for its
owner alone to read; FILE.pub gets a line with the public key and NAME. Whoever is
to trust the key's signatures appends that line to the file that "check --trust"
reads. Neither file is ever overwritten.

The daemon signs what it records with the key that signing_key names.`,
		Example: `  reprise keygen -o daemon.key --name 'daemon eu-west'
  cat daemon.key.pub >> trusted
  reprise sign --key daemon.key match.rply
  reprise check --trust trusted match.rply`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if name == "" {
				name = strings.TrimSuffix(filepath.Base(out), filepath.Ext(out))
			}
			public, err := keys.Generate(out, name)
			if errors.Is(err, fs.ErrExist) {
				return usagef("%w: remove it, or use another name", err)
			}
			if err != nil {
				return err
			}
			say(cmd.ErrOrStderr(), "private key in %s, keep it secret; public key in %s.pub", out, out)
			_, err = fmt.Fprintln(cmd.OutOrStdout(), printable(public.String()))
			return err
		},
	}
	cmd.Flags().StringVarP(&out, "output", "o", "reprise.key", "the file of the private key")
	cmd.Flags().StringVar(&name, "name", "", "whose key it is; without, the name of FILE")
	return cmd
}
