package app

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reprise/format"
	"reprise/transport"
)

func newRecord() *cobra.Command {
	o := recordOptions{speed: 1}
	cmd := &cobra.Command{
		Use:   "record --server ADDR FILE",
		Short: "Stream a replay, or JSON lines, to a daemon as a game server would",
		Long: `record sends a replay tick by tick to a daemon: at its tick rate times --speed, or
as fast as the daemon makes it durable with --speed max. It ends when every tick is
durable and the session is sealed, and says under which name.

With --spool, what the daemon has not confirmed is also kept in a folder: after a
crash of this command the same --session with the same --spool goes on where the
spool ends.

The rest of a match whose session can no longer be gone on with is a session of its
own. --part-of names the first one, in the label part-of: by it "merge" knows the
parts of one match.`,
		Example: `  reprise record --server 127.0.0.1:4433 --pin "$(cat data/tls/fingerprint)" match.rply
  reprise record --server recorder.example:4433 --ca ca.pem --session cup-final --speed max match.jsonl
  reprise record --server recorder.example:4433 --ca ca.pem --part-of cup-final --session cup-final-2 rest.jsonl`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, args[0]) },
	}
	f := cmd.Flags()
	o.server.flags(f)
	f.StringVar(&o.session, "session", "", "id of the session, never used before (default: the file's name with a random ending)")
	f.StringVar(&o.partOf, "part-of", "", "id of the session that this is a later part of")
	f.StringVar(&o.game, "game", "", "name of the game, instead of the file's")
	f.Var(&o.speed, "speed", `times the tick rate, from 0.01 to 1000, or "max"`)
	f.StringVar(&o.spool, "spool", "", "folder that keeps what is not durable yet")
	f.BoolVar(&o.packLists, "pack-lists", false, "pack runs of integers into list parameters where a JSON line has more arguments than a step holds")
	f.BoolVar(&o.json, "json", false, "print the result as one JSON document")
	return cmd
}

type recordOptions struct {
	server        serverOptions
	session, game string
	partOf        string
	spool         string
	speed         speedFlag
	packLists     bool
	json          bool
}

// recordResult is what `record --json` prints.
type recordResult struct {
	File    jsonText `json:"file"`
	Session string   `json:"session"`
	Sealed  string   `json:"sealed_as"`
	Digest  string   `json:"digest"`
	Ticks   uint64   `json:"ticks"`
	Steps   uint64   `json:"steps"`
	Hashes  uint64   `json:"hashes"`
	Missed  uint64   `json:"missed_ticks"`
	Seconds float64  `json:"seconds"`
}

func (o *recordOptions) run(cmd *cobra.Command, path string) error {
	cfg, err := o.server.config(cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	if o.session == "" {
		o.session = inventSession(path)
	}
	if err := format.ValidSession(o.session); err != nil {
		return usagef("--session: %w", err)
	}
	if err := o.checkPart(cmd.Flags().Changed("part-of")); err != nil {
		return err
	}
	open := newOpener(cmd).open
	if o.packLists {
		open = newOpener(cmd).openPacked
	}
	shown := newProgress(cmd.ErrOrStderr())
	cfg.Agent, cfg.Spool, cfg.OnError = "reprise record", o.spool, changedWarnings(cmd.ErrOrStderr(), shown).hear
	return withReplay(path, open, func(r *replay) error {
		if err := r.tornError(); err != nil {
			return err
		}
		if lost := unsaid(r); len(lost) > 0 {
			say(cmd.ErrOrStderr(), "%s: the new session does not say: %s", printable(path), strings.Join(lost, ", "))
		}
		client, err := o.server.dial(cmd.Context(), cfg)
		if err != nil {
			return err
		}
		result, err := o.record(cmd, client, r, shown)
		shown.clear()
		if err != nil {
			return err
		}
		return o.print(cmd.OutOrStdout(), result)
	})
}

// checkPart refuses what names no other session.
func (o *recordOptions) checkPart(given bool) error {
	if !given {
		return nil
	}
	if err := format.ValidSession(o.partOf); err != nil {
		return usagef("--part-of: %w", err)
	}
	if strings.EqualFold(o.partOf, o.session) {
		return usagef("--part-of %s: a session is no part of itself, give this one another id with --session", o.partOf)
	}
	return nil
}

// inventSession makes an id of the file's name: its safe characters, and a
// random ending, for an id is never used twice.
func inventSession(path string) string {
	name := filepath.Base(path)
	for _, ending := range []string{".zst", ".gz", ".rply", ".jsonl"} {
		name = strings.TrimSuffix(name, ending)
	}
	safe := strings.Map(func(c rune) rune {
		if format.ValidSession(string(c)) == nil || c == '.' {
			return c
		}
		return '-'
	}, name)
	var ending [4]byte
	rand.Read(ending[:])
	return safe[:min(len(safe), format.MaxSessionID-9)] + "-" + hex.EncodeToString(ending[:])
}

// leaveTime is how long an interrupted command goes on sending.
const leaveTime = time.Second

// record streams the file and seals the session. After a failure, what was
// recorded stays at the daemon, and in the spool.
func (o *recordOptions) record(cmd *cobra.Command, client *transport.Client, r *replay, shown *progress) (*recordResult, error) {
	ctx, start := cmd.Context(), time.Now()
	match, sent, err := o.begin(ctx, client, r.File)
	if err == nil {
		s := &streamer{match: match, f: r.File, speed: float64(o.speed), shown: shown}
		err = s.run(ctx, sent)
	}
	if err == nil {
		err = match.Seal(ctx)
	}
	if err != nil {
		leave, cancel := context.WithTimeout(context.Background(), leaveTime)
		defer cancel()
		_ = client.Close(leave)
		return nil, o.explain(match, err)
	}
	digest, name, _ := match.Sealed()
	stats := match.Stats()
	result := &recordResult{File: jsonText(r.path), Session: match.ID(), Sealed: name, Digest: digest.String(), Ticks: stats.Ticks, Steps: stats.Steps,
		Hashes: stats.Hashes, Missed: stats.MissedTicks, Seconds: time.Since(start).Seconds()}
	return result, client.Close(ctx)
}

// explain says what is left of a recording that was interrupted.
func (o *recordOptions) explain(match *transport.Recording, err error) error {
	if match == nil || !errors.Is(err, context.Canceled) {
		return err
	}
	hint := fmt.Sprintf("session %s stays unfinished at the daemon, durable up to before tick %d", match.ID(), match.Durable())
	if o.spool != "" {
		hint += fmt.Sprintf("; the same command with --session %s goes on from there", match.ID())
	}
	return &hintedError{err, hint}
}

// begin opens the session, or goes on from the spool; sent tells what the
// recording has already.
func (o *recordOptions) begin(ctx context.Context, client *transport.Client, f *format.File) (*transport.Recording, *sentBefore, error) {
	spooled, err := client.Spooled()
	if err != nil {
		return nil, nil, err
	}
	if slices.Contains(spooled, o.session) {
		// Resume writes into the spool file what an earlier run left beside it.
		match, err := client.Resume(o.session)
		if err != nil {
			return match, nil, err
		}
		sent, err := readSpool(filepath.Join(o.spool, o.session+".rply"), f)
		if err != nil {
			return match, nil, fmt.Errorf("spool of session %s: %w", o.session, err)
		}
		return match, sent, o.catchUp(ctx, match)
	}
	meta := *f.Summary().Meta
	meta.Session = o.session
	if o.game != "" {
		meta.Game = o.game
	}
	if o.partOf != "" {
		meta.Labels = append(slices.Clone(meta.Labels), format.Label{Key: format.LabelPartOf, Value: o.partOf})
	}
	if meta.Env == nil {
		meta.Env = []format.Label{} // it was not played on this machine
	}
	players := f.Summary().Players
	early := slices.IndexFunc(players, func(e format.PlayerEvent) bool { return e.Leave || e.Tick > meta.FirstTick })
	if early < 0 {
		early = len(players)
	}
	match, err := client.Open(transport.Spec{Meta: meta, Book: f.Book(), Players: players[:early]})
	return match, &sentBefore{players: early}, err
}

// catchUp waits until the daemon has what the spool holds: whether it takes
// that has to be known before more is recorded.
func (o *recordOptions) catchUp(ctx context.Context, match *transport.Recording) error {
	if match.NextTick() == match.Durable() {
		return nil
	}
	err := match.Wait(ctx, match.NextTick()-1)
	if errors.Is(err, transport.ErrMissing) {
		return nil
	}
	return err
}

func (o *recordOptions) print(w io.Writer, r *recordResult) error {
	if o.json {
		return writeJSON(w, r)
	}
	_, err := fmt.Fprintf(w, "%s: session %s, %s, %s, %s: all durable, sealed as %s, digest %s, in %s\n", printable(string(r.File)), r.Session,
		counted(r.Ticks, "tick"), counted(r.Steps, "step"), counted(r.Hashes, "hash"), r.Sealed, r.Digest, duration(r.Seconds))
	return err
}
