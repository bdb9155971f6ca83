package app

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"reprise/format"
)

func newArchive() *cobra.Command {
	o := archiveOptions{}
	cmd := &cobra.Command{
		Use:   "archive FILE|DIR...",
		Short: "Seal replays and rewrite them in the compact archive layout",
		Long: `archive writes each replay anew: the same session with the same content digest,
in fewer bytes. Every archive is read back and compared with its source, step by
step, before it gets its name (the source's, ending in .rply) and before the
source goes; both are on disk by then. With -o the archives go to that folder, and
sources stay.

--level fast takes the least time, default is small and quick to read, max is the
smallest, at a few MB of recorded steps a second. --hash-every N keeps one in N state
hashes, and the last: the archive says so, and its digest stays that of all.

"reprise convert ARCHIVE OUT.rply" goes back to the ordinary layout.

A live replay is archived only with -o, since it may still be written. A torn or
damaged one is not: repair it first. With --sizes nothing is written but a table of
what each level would come to.`,
		Example: `  reprise archive match.rply
  reprise archive replays/ --level max -o cold/
  reprise archive old-match.rply --hash-every 20
  reprise archive --sizes replays/`,
		Args: atLeastOne("FILE or DIR"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(args); err != nil {
				return err
			}
			if o.sizes {
				return o.printSizes(cmd, args)
			}
			return o.run(cmd, args)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.name, "level", "default", "fast, default or max")
	f.Uint64Var(&o.hashEvery, "hash-every", 1, "keep one in so many state hashes")
	f.StringVarP(&o.dir, "output", "o", "", "the folder for the archives; sources stay")
	f.BoolVar(&o.sizes, "sizes", false, "write nothing, print what each level comes to")
	f.BoolVar(&o.json, "json", false, "print one JSON document a replay")
	return cmd
}

type archiveOptions struct {
	name, dir   string
	level       format.ArchiveLevel
	hashEvery   uint64
	sizes, json bool
	archiver    *format.Archiver
}

func (o *archiveOptions) check(args []string) error {
	var err error
	if o.level, err = format.ParseArchiveLevel(o.name); err != nil {
		return usagef("--%v", err)
	}
	if o.hashEvery == 0 {
		return usagef("--hash-every 0 would keep no hash: use 1 for all, or more")
	}
	if slices.Contains(args, "-") && o.dir == "" && !o.sizes {
		return usagef("standard input has no file to replace: say where with -o DIR")
	}
	if o.sizes && (o.dir != "" || o.json) {
		return usagef("--sizes prints a table and writes nothing: leave out -o and --json")
	}
	o.archiver = format.NewArchiver()
	return nil
}

// archived is what became of one replay.
type archived struct {
	File       jsonText `json:"file"`
	Archive    jsonText `json:"archive"`
	Level      string   `json:"level"`
	Before     int64    `json:"bytes_before"`
	After      int64    `json:"bytes_after"`
	Ticks      uint64   `json:"ticks"`
	Steps      uint64   `json:"steps"`
	Hashes     uint64   `json:"hashes"`
	HashesLeft uint64   `json:"hashes_left_out"`
	Digest     string   `json:"digest"`
	// Already is set where the file was such an archive before.
	Already bool `json:"already"`
}

func (o *archiveOptions) run(cmd *cobra.Command, args []string) error {
	if o.dir != "" {
		if err := os.MkdirAll(o.dir, 0o777); err != nil {
			return cause(err)
		}
	}
	return eachReplay(cmd, searchFiles(args), func(path string, r *replay, err error) error {
		var a *archived
		if err == nil {
			a, err = o.archive(cmd, r)
		}
		if err == nil {
			err = o.print(cmd.OutOrStdout(), a)
		}
		if err != nil {
			say(cmd.ErrOrStderr(), "%s", atFile(path, err))
		}
		return err
	})
}

func (o *archiveOptions) print(w io.Writer, a *archived) error {
	if o.json {
		return writeJSON(w, a)
	}
	if a.Already {
		_, err := fmt.Fprintf(w, "%s: is such an archive already\n", printable(string(a.File)))
		return err
	}
	left := ""
	if a.HashesLeft > 0 {
		left = fmt.Sprintf(", %d of %s left out", a.HashesLeft, counted(a.Hashes+a.HashesLeft, "hash"))
	}
	_, err := fmt.Fprintf(w, "%s: %d bytes -> %s: %d bytes, %s, %s%s, compared\n", printable(string(a.File)), a.Before, printable(string(a.Archive)), a.After,
		counted(a.Ticks, "tick"), counted(a.Steps, "step"), left)
	return err
}

// archive archives one replay.
func (o *archiveOptions) archive(cmd *cobra.Command, r *replay) (*archived, error) {
	if err := o.takes(r); err != nil {
		return nil, err
	}
	target := o.target(r.path)
	a := &archived{File: jsonText(r.path), Archive: jsonText(target), Level: o.level.String(), Before: r.Bytes}
	if info := r.Summary().Archive; o.dir == "" && info != nil && info.Level == o.level && o.hashEvery == 1 {
		a.Already, a.After = true, r.Bytes
		return a, nil
	}
	var before os.FileInfo
	if o.dir == "" {
		var err error
		if before, err = os.Stat(r.path); err != nil {
			return nil, cause(err)
		}
	}
	temporary := filepath.Join(filepath.Dir(target), ".reprise-"+rand.Text()+".tmp")
	report, err := o.write(cmd, r, temporary, target)
	if err == nil {
		err = o.replace(r, before, temporary, target)
	}
	if err != nil {
		return nil, errors.Join(err, removeIfThere(temporary))
	}
	a.After, a.Ticks, a.Steps, a.Hashes, a.HashesLeft, a.Digest = report.Bytes, report.Ticks, report.Steps, report.Hashes, report.HashesLeft, report.Root.String()
	return a, nil
}

// takes refuses what must not be archived.
func (o *archiveOptions) takes(r *replay) error {
	if r.live && o.dir == "" {
		return &hintedError{errors.New("it has no end, and may still be written"), "-o DIR archives what is there, and leaves the file alone"}
	}
	return r.tornError()
}

// target is the name of the archive of path.
func (o *archiveOptions) target(path string) string {
	name := filepath.Base(path)
	if path == "-" {
		name = "stdin"
	}
	for _, ending := range []string{".zst", ".gz", ".rply", ".jsonl"} {
		name = strings.TrimSuffix(name, ending)
	}
	dir := o.dir
	if dir == "" {
		dir = filepath.Dir(path)
	}
	return filepath.Join(dir, name+".rply")
}

// write writes and syncs the archive, which is to be target, then reads it back
// and compares it.
func (o *archiveOptions) write(cmd *cobra.Command, r *replay, temporary, target string) (*format.ArchiveReport, error) {
	f, err := createTemporary(temporary, target)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	report, err := o.archiver.Archive(r.File, newFile{cmd.Context(), f}, format.ArchiveOptions{Level: o.level, HashEvery: o.hashEvery})
	if err != nil {
		return nil, err
	}
	if err := f.Sync(); err != nil {
		return nil, cause(err)
	}
	return report, compareArchive(r.File, f, report.Bytes)
}

// compareArchive proves that an archive is whole, and says what its source says.
func compareArchive(src *format.File, f *os.File, size int64) error {
	made, err := format.NewFile(f, size)
	if err == nil {
		_, err = made.Check()
	}
	if err == nil {
		err = format.SameContent(src, made)
	}
	if err != nil {
		return &exitError{exitFalse, fmt.Errorf("the archive does not hold what its source holds, and was not kept: %w", err)}
	}
	return nil
}

// replace gives the archive its name, and then removes the source, unless
// sources stay.
func (o *archiveOptions) replace(r *replay, before os.FileInfo, temporary, target string) error {
	if o.dir != "" {
		return named(temporary, target)
	}
	if now, err := os.Stat(r.path); err != nil || now.Size() != before.Size() || !now.ModTime().Equal(before.ModTime()) {
		return errors.Join(err, errors.New("it was changed while it was archived, and stays as it is"))
	}
	if err := r.Close(); err != nil {
		return err
	}
	if target == r.path {
		if err := os.Rename(temporary, target); err != nil {
			return cause(err)
		}
		return syncFolder(filepath.Dir(target))
	}
	if err := named(temporary, target); err != nil {
		return err
	}
	if err := os.Remove(r.path); err != nil {
		return cause(err)
	}
	return syncFolder(filepath.Dir(target))
}

// named gives a finished file its name for good.
func named(temporary, target string) error {
	if err := giveName(temporary, target); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(target))
}
