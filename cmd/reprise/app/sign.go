package app

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"reprise/cmd/internal/keys"
	"reprise/format"
)

// signResult is what `sign --json` prints for one file.
type signResult struct {
	verdict
	Output  jsonText `json:"output,omitempty"`
	Digest  string   `json:"digest,omitempty"`
	Key     string   `json:"key"`
	Changed bool     `json:"changed"`
}

func newSign() *cobra.Command {
	var keyFile, out string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "sign --key FILE FILE...",
		Short: "Sign what a replay says",
		Long: `sign checks each replay as "check" does, and adds a signature over its content
digest, its end state and its metadata. Signatures by other keys stay, and one by
this key is not made twice. A file is replaced as a whole, or with -o left as it is.

A signature says that the holder of the key vouches for that content. It does not
say when the match was played, nor who sat at the keyboard.`,
		Example: `  reprise sign --key referee.key final.rply
  reprise sign --key referee.key -o signed.rply final.rply`,
		Args: atLeastOne("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if keyFile == "" {
				return usagef("say what to sign with: --key FILE, from \"reprise keygen\"")
			}
			if out != "" && len(args) > 1 {
				return usagef("-o takes one FILE; without it each is signed in place")
			}
			key, err := keys.ReadPrivate(keyFile)
			if err != nil {
				return usagef("--key: %w", err)
			}
			return eachReplay(cmd, namedFiles(args), func(path string, r *replay, err error) error {
				s := signReplay(cmd.Context(), path, r, err, key, out)
				if err := s.print(cmd.OutOrStdout(), asJSON); err != nil {
					return err
				}
				return s.err
			})
		},
	}
	cmd.Flags().StringVar(&keyFile, "key", "", "the private key")
	cmd.Flags().StringVarP(&out, "output", "o", "", "write the signed replay here, and leave FILE as it is")
	cmd.Flags().BoolVar(&asJSON, "json", false, "one JSON document a file, on a line of its own")
	return cmd
}

// signReplay signs one file, which err may have kept from opening.
func signReplay(ctx context.Context, path string, r *replay, err error, key ed25519.PrivateKey, out string) *signResult {
	s := &signResult{verdict: verdict{File: jsonText(path)}, Output: jsonText(out), Key: format.PublicKey(key.Public().(ed25519.PublicKey)).ID()}
	if err == nil {
		err = s.sign(ctx, r, key, out)
	}
	s.settle(err)
	return s
}

func (s *signResult) sign(ctx context.Context, r *replay, key ed25519.PrivateKey, out string) error {
	if r.live {
		return errors.New("a daemon is writing it: sign it when its session has ended")
	}
	if r.Torn != nil {
		return r.Torn
	}
	if r.path == "-" && out == "" {
		return usagef("standard input is not signed in place: use -o OUT")
	}
	if d := r.Summary().Digest; d != nil {
		s.Digest = d.String()
	}
	write := func(f newFile) error { return format.Sign(r.File, key, f) }
	if out != "" {
		s.Changed = true
		return writeNew(ctx, out, write)
	}
	if slices.ContainsFunc(r.Signatures(), func(g format.Signature) bool { return g.Key.ID() == s.Key }) {
		_, err := r.Check()
		return err
	}
	s.Changed = true
	return replaceFile(ctx, r.path, write)
}

func (s *signResult) print(w io.Writer, asJSON bool) error {
	if asJSON {
		return writeJSON(w, s)
	}
	facts := ""
	switch {
	case s.err != nil:
	case s.Changed:
		facts = "signed by key " + s.Key
	default:
		facts = "was signed by key " + s.Key + " before"
	}
	return s.verdict.print(w, facts, nil)
}

// replaceFile puts new content in the place of a file, at once: under a
// temporary name until it is whole and on the disk. It keeps the file's mode,
// and follows a link to the file. After a failure the file is as it was.
func replaceFile(ctx context.Context, path string, write func(newFile) error) error {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return cause(err)
	}
	before, err := os.Stat(path)
	if err != nil {
		return cause(err)
	}
	temporary := filepath.Join(filepath.Dir(path), ".reprise-"+rand.Text()+".tmp")
	f, err := os.OpenFile(temporary, os.O_RDWR|os.O_CREATE|os.O_EXCL, before.Mode().Perm())
	if err != nil {
		return fmt.Errorf("cannot be written: %w", cause(err))
	}
	err = write(newFile{ctx, f})
	if err == nil {
		err = errors.Join(f.Chmod(before.Mode().Perm()), f.Sync())
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = unchangedSince(path, before)
	}
	if err == nil {
		err = os.Rename(temporary, path)
	}
	if err != nil {
		return errors.Join(err, removeIfThere(temporary))
	}
	return syncFolder(filepath.Dir(path))
}

// unchangedSince refuses to replace what somebody else has written meanwhile.
func unchangedSince(path string, before os.FileInfo) error {
	now, err := os.Stat(path)
	if err != nil {
		return cause(err)
	}
	if !os.SameFile(before, now) || now.Size() != before.Size() || !now.ModTime().Equal(before.ModTime()) {
		return errors.New("it was changed meanwhile: try again")
	}
	return nil
}
