package app

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os/exec"
	"path/filepath"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"reprise/format"
)

// sizes compares what the ticks of replays take. Plain rows are the command area
// (codes of 16 bits), the parameter area, and for each tick with steps its
// distance and its number of steps.
type sizes struct {
	name       string
	rows       int
	zstd19     int // the zstd program's; 0 where there is none
	own        int // this program's zstd at its best
	levels     [3]int64
	wholeBytes [3]int64
}

var sizedLevels = [...]format.ArchiveLevel{format.ArchiveFast, format.ArchiveDefault, format.ArchiveMax}

// printSizes prints a table of what replays come to, and what plain rows come to.
func (o *archiveOptions) printSizes(cmd *cobra.Command, args []string) error {
	var all []sizes
	err := eachReplayOf(cmd, args, func(path string, r *replay) error {
		s, err := o.measure(cmd, path, r)
		if err == nil {
			all = append(all, s)
		}
		return err
	})
	if len(all) == 0 {
		return err
	}
	return errors.Join(writeSizes(cmd.OutOrStdout(), all), err)
}

// eachReplayOf opens every replay, JSON lines with long argument lists packed.
func eachReplayOf(cmd *cobra.Command, args []string, each func(path string, r *replay) error) error {
	o := newOpener(cmd)
	var worst outcome
	for _, entry := range searchFiles(args) {
		r, err := entry.open(o)
		if err != nil && entry.err == nil {
			if packed, again := o.openPacked(entry.path); again == nil {
				r, err = packed, nil
			}
		}
		if err == nil {
			err = each(entry.path, r)
			r.Close()
		}
		if err != nil {
			say(cmd.ErrOrStderr(), "%s", atFile(entry.path, err))
		}
		worst.add(err)
	}
	return worst.err()
}

func (o *archiveOptions) measure(cmd *cobra.Command, path string, r *replay) (sizes, error) {
	s := sizes{name: filepath.Base(path)}
	rows, err := format.PlainRows(r.File)
	if err != nil {
		return s, err
	}
	s.rows, s.own = len(rows), len(format.CompressRows(rows))
	if s.zstd19, err = zstd19(rows); err != nil {
		return s, err
	}
	for i, level := range sizedLevels {
		report, err := o.archiver.Archive(r.File, io.Discard, format.ArchiveOptions{Level: level, HashEvery: o.hashEvery})
		if err != nil {
			return s, err
		}
		s.levels[i], s.wholeBytes[i] = report.ArchivedBytes, report.Bytes
	}
	return s, cmd.Context().Err()
}

// zstd19 gives what the zstd program makes of b at level 19; 0 without the
// program.
func zstd19(b []byte) (int, error) {
	program, err := exec.LookPath("zstd")
	if err != nil {
		return 0, nil
	}
	cmd := exec.Command(program, "-19", "-q", "-c")
	cmd.Stdin = bytes.NewReader(b)
	out, err := cmd.Output()
	if err != nil {
		return 0, fmt.Errorf("the zstd program: %w", err)
	}
	return len(out), nil
}

func writeSizes(w io.Writer, all []sizes) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "plain rows\tzstd -19\town zstd\tfast\tdefault\tmax\tfast/19\tdefault/19\tmax/19\tdefault/own\tmax/own\tfile, max\t  replay")
	var logs [5]float64
	for _, s := range all {
		base := s.zstd19
		ratios := [5]float64{ratio(s.levels[0], base), ratio(s.levels[1], base), ratio(s.levels[2], base), ratio(s.levels[1], s.own), ratio(s.levels[2], s.own)}
		fmt.Fprintf(t, "%d\t%d\t%d\t%d\t%d\t%d\t", s.rows, s.zstd19, s.own, s.levels[0], s.levels[1], s.levels[2])
		for i, x := range ratios {
			fmt.Fprintf(t, "%.3f\t", x)
			logs[i] += math.Log(x)
		}
		fmt.Fprintf(t, "%d\t  %s\n", s.wholeBytes[2], printable(s.name))
	}
	fmt.Fprint(t, "\t\t\t\t\t\t")
	for _, l := range logs {
		fmt.Fprintf(t, "%.3f\t", math.Exp(l/float64(len(all))))
	}
	fmt.Fprint(t, "\t  geometric mean\n")
	return t.Flush()
}

// ratio is 0 where there is nothing to compare with.
func ratio(size int64, base int) float64 {
	if base == 0 {
		return 0
	}
	return float64(size) / float64(base)
}
