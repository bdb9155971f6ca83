package app

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"reprise/cmd/internal/access"
)

// tokenOptions are the flags of the command token.
type tokenOptions struct {
	name, sessions, expires, file string
}

func newToken() *cobra.Command {
	var o tokenOptions
	cmd := &cobra.Command{
		Use:   "token --name NAME [--append FILE]",
		Short: "Make an access token for a game server",
		Long: `token makes a token and prints it, once: it is kept nowhere. The daemon's file of
tokens has a line for each, with the token's SHA-256 instead of the token. That
line is appended to FILE, or printed on standard error. A daemon that runs with
tokens = "FILE" takes it into use by itself. To take a token back, remove its line.

--expires is a time span from now (720h), or a time (2027-01-31, which is midnight
UTC, or 2027-01-31T18:00:00Z).`,
		Example: `  reprise token --name eu-west --append tokens > eu-west.token
  reprise token --name cup --sessions 'cup-*' --expires 720h --append tokens > cup.token
  reprise record --server host:4433 --pin SHA256 --token-file cup.token --session cup-1 match.rply`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.run(cmd.OutOrStdout(), cmd.ErrOrStderr(), time.Now())
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.name, "name", "", "whose token it is; it stands in the daemon's log")
	f.StringVar(&o.sessions, "sessions", "*", "pattern of the session ids that it may record: * any characters, ? one")
	f.StringVar(&o.expires, "expires", "", "when it ends to be valid; without, never")
	f.StringVar(&o.file, "append", "", "file of tokens to append the line to; it is made where it is missing")
	return cmd
}

func (o *tokenOptions) run(stdout, stderr io.Writer, now time.Time) error {
	expires, err := parseExpiry(o.expires, now)
	if err != nil {
		return usagef("--expires %s: %w", printable(o.expires), err)
	}
	token, line, err := access.New(o.name, o.sessions, expires)
	if err != nil {
		return usagef("%w", err)
	}
	if o.file == "" {
		fmt.Fprintln(stderr, line)
	} else if err := appendToken(o.file, line); err != nil {
		return err
	}
	_, err = fmt.Fprintln(stdout, token)
	return err
}

// parseExpiry reads a time span from now, a day or a time; zero for none.
func parseExpiry(s string, now time.Time) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	span, err := time.ParseDuration(s)
	expires := now.Add(span)
	if err != nil {
		expires, err = time.Parse(time.DateOnly, s)
	}
	if err != nil {
		expires, err = time.Parse(time.RFC3339, s)
	}
	switch {
	case err != nil:
		return time.Time{}, errors.New("use a time span such as 720h, or a time such as 2027-01-31 or 2027-01-31T18:00:00Z")
	case !expires.After(now):
		return time.Time{}, errors.New("that is over already")
	}
	return expires, nil
}

// tokenFileMode keeps names and patterns to the owner; the tokens themselves
// are not in the file.
const tokenFileMode = 0o600

// appendToken adds a line to a file of tokens. A file that is anything else
// is left alone.
func appendToken(path, line string) (err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE, tokenFileMode)
	if err != nil {
		return fmt.Errorf("%s: %w", printable(path), cause(err))
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	b, err := io.ReadAll(f)
	if err != nil {
		return fmt.Errorf("%s: %w", printable(path), cause(err))
	}
	if _, err := access.Parse(bytes.NewReader(b)); err != nil {
		return usagef("%s is no file of tokens: %w", printable(path), err)
	}
	if len(b) > 0 && b[len(b)-1] != '\n' {
		line = "\n" + line
	}
	// One write, so that a daemon that reads meanwhile sees all of it or none.
	_, err = f.WriteString(line + "\n")
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		// The token is not given out: its line should not stay.
		return fmt.Errorf("%s: %w", printable(path), cause(errors.Join(err, f.Truncate(int64(len(b))))))
	}
	return syncFolder(filepath.Dir(path))
}
