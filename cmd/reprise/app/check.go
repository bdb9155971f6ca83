package app

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"reprise/cmd/internal/keys"
	"reprise/format"
)

// checkResult is what `check --json` prints for one file.
type checkResult struct {
	verdict
	State  string    `json:"state"`
	Ticks  uint64    `json:"ticks"`
	Steps  uint64    `json:"steps"`
	Chunks int       `json:"chunks"`
	Gaps   []jsonGap `json:"gaps"`
	Digest string    `json:"digest"`
	// SignedBy has the signatures, all of which hold; Unproven what is there
	// without being covered by digest and signatures.
	SignedBy []jsonSigner `json:"signed_by"`
	Unproven []jsonText   `json:"unproven"`
	Notes    []jsonText   `json:"notes"`
}

func newCheck() *cobra.Command {
	var asJSON bool
	var trustFile string
	cmd := &cobra.Command{
		Use:   "check FILE...",
		Short: "Prove that a replay is structurally sound, without any game",
		Long: `check reads every byte of a replay: checksums, the order of ticks and chunks,
the final counts, the content digest, the signatures, and that summary and seek
table agree with the content. It needs no game and compares no state hash: see
verify. Where the checksums hold but the content is not what was sealed, it names
the first segment, or the part, that was changed, and ends with exit code 1.

With --trust it asks for a signature by one of the keys in FILE (lines of "reprise
keygen", or PEM): an unsigned file, or one by another key, ends with exit code 1, and
one of which redaction or thinning left parts that the signature no longer proves,
with 4.

A live or unfinished file, and one with declared gaps, passes and says so. What a
clip, or another replay that was made of some, says of those is printed, as what
is not proven.

RPLY1 has neither checksums nor an end mark, and JSON lines have neither: check
then proves structure and tick order only, and says so; a tick that is missing
there ends with exit code 4.`,
		Example: `  reprise check match.rply
  reprise check --json replays/*.rply
  reprise check --trust trusted final.rply`,
		Args: atLeastOne("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			out := cmd.OutOrStdout()
			trust, err := readTrust(trustFile)
			if err != nil {
				return err
			}
			var sum tally
			worst := eachReplay(cmd, namedFiles(args), func(path string, r *replay, err error) error {
				c := checkReplay(path, r, err, trust)
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
	cmd.Flags().StringVar(&trustFile, "trust", "", "ask for a signature by one of the keys in this file")
	cmd.Flags().BoolVar(&asJSON, "json", false, "one JSON document a file, on a line of its own")
	return cmd
}

// checkReplay checks one file, which err may have kept from opening.
func checkReplay(path string, r *replay, err error, trust keys.Trust) *checkResult {
	c := &checkResult{verdict: verdict{File: jsonText(path)}, Gaps: []jsonGap{}, SignedBy: []jsonSigner{}, Unproven: []jsonText{}, Notes: []jsonText{}}
	if err == nil {
		err = c.check(r, trust)
	}
	if err == nil && trust != nil {
		err = c.judge()
	}
	c.settle(err)
	return c
}

// judge decides about a file that is sound whether it is to be trusted.
func (c *checkResult) judge() error {
	if err := judge(c.SignedBy); err != nil {
		return err
	}
	if len(c.Unproven) > 0 {
		return &unprovenError{c.Unproven}
	}
	return nil
}

func (c *checkResult) check(r *replay, trust keys.Trust) error {
	i := describe(r)
	c.State, c.Ticks, c.Steps, c.Gaps, c.Digest = i.State, i.Ticks, i.Steps, i.Gaps, i.Digest
	report, err := r.Check()
	c.Chunks, c.SignedBy = report.Chunks, signers(report.Signatures, trust)
	for _, part := range unprovenParts(r.Summary()) {
		c.Unproven = append(c.Unproven, jsonText(part))
	}
	if redaction := r.Summary().Redaction; redaction != nil && redaction.Players {
		c.Notes = append(c.Notes, "the players were erased")
	}
	if trust == nil {
		for _, part := range c.Unproven {
			c.Notes = append(c.Notes, "not proven by the digest: "+part)
		}
	}
	for _, claim := range claims(r.Summary().Meta) {
		c.Notes = append(c.Notes, jsonText(claim))
	}
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

// madeFrom are the labels of what was made of other replays.
var madeFrom = map[string]string{format.LabelClipOf: "a clip of", format.LabelEditedFrom: "edited from", format.LabelMergedFrom: "merged from",
	format.LabelRebasedFrom: "rebased from"}

// claims are what a replay says of those that it was made of.
func claims(m *format.Metadata) (list []string) {
	for _, l := range m.Labels {
		if what, ok := madeFrom[l.Key]; ok {
			list = append(list, fmt.Sprintf("says without proof: %s %q", what, l.Value))
		}
	}
	return list
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
	if len(c.SignedBy) > 0 {
		s += ", signed by " + signerText(c.SignedBy)
	}
	return s
}
