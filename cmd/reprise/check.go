package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"reprise/format"
)

// checkResult is what `check --json` prints for one file.
type checkResult struct {
	verdict
	State  string     `json:"state"`
	Ticks  uint64     `json:"ticks"`
	Steps  uint64     `json:"steps"`
	Chunks int        `json:"chunks"`
	Gaps   []jsonGap  `json:"gaps"`
	Digest string     `json:"digest"`
	Notes  []jsonText `json:"notes"`
}

func newCheck() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "check FILE...",
		Short: "Prove that a replay is structurally sound, without any game",
		Long: `check reads every byte of a replay: checksums, the order of ticks and chunks,
the final counts, the content digest, and that summary and seek table agree
with the content. It needs no game and compares no state hash: see verify.

A live or unfinished file, and one with declared gaps, passes and says so. RPLY1
has neither checksums nor an end mark, and JSON lines have neither: check then
proves structure and tick order only, and says so; a tick that is missing there
ends with exit code 4.`,
		Example: `  reprise check match.rply
  reprise check --json replays/*.rply`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			out := cmd.OutOrStdout()
			var sum tally
			worst := eachReplay(cmd, namedFiles(args), func(path string, r *replay, err error) error {
				c := checkReplay(path, r, err)
				sum.add(&c.verdict)
				if err := c.print(out, asJSON); err != nil {
					return err
				}
				return c.err
			})
			if !asJSON {
				if err := sum.print(out); err != nil {
					return err
				}
			}
			return worst
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "one JSON document a file, on a line of its own")
	return cmd
}

// checkReplay checks one file, which err may have kept from opening.
func checkReplay(path string, r *replay, err error) *checkResult {
	c := &checkResult{verdict: verdict{File: jsonText(path)}, Gaps: []jsonGap{}, Notes: []jsonText{}}
	if err == nil {
		err = c.check(r)
	}
	c.settle(err)
	return c
}

func (c *checkResult) check(r *replay) error {
	i := describe(r)
	c.State, c.Ticks, c.Steps, c.Gaps, c.Digest = i.State, i.Ticks, i.Steps, i.Gaps, i.Digest
	report, err := r.Check()
	c.Chunks = report.Chunks
	for _, notice := range report.Notices {
		c.Notes = append(c.Notes, jsonText(notice))
	}
	if i.Note != "" {
		c.Notes = append(c.Notes, jsonText(i.Note))
	}
	if r.live && errors.Is(err, format.ErrTorn) {
		c.Notes, err = append(c.Notes, "its last record is being written"), nil
	}
	if err == nil && r.Unproven() && len(i.Gaps) > 0 {
		return &exitError{exitPartly, missingError(i.Gaps)}
	}
	return err
}

// missingError names the ticks that are missing.
func missingError(gaps []jsonGap) error {
	var ranges []string
	for _, g := range gaps {
		ranges = append(ranges, g.ticks())
	}
	return fmt.Errorf("missing: %s", strings.Join(ranges, ", "))
}

func (c *checkResult) print(w io.Writer, asJSON bool) error {
	if asJSON {
		return writeJSON(w, c)
	}
	return c.verdict.print(w, c.facts(), c.Notes)
}

// facts is what is known of a file that opened.
func (c *checkResult) facts() string {
	if c.State == "" {
		return ""
	}
	s := fmt.Sprintf("%s, %s, %s", c.State, counted(c.Ticks, "tick"), counted(c.Steps, "step"))
	if len(c.Gaps) > 0 && c.err == nil {
		s += fmt.Sprintf(", with %s (%v)", counted(len(c.Gaps), "gap"), missingError(c.Gaps))
	}
	return s
}
