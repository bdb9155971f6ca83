package app

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"reprise/format"
	"reprise/player/games/skirmish"
	"reprise/player/games/tower"
)

// sample describes a replay that a sample game makes, and what is wrong with
// it. The zero value is 200 ticks of skirmish, sealed.
type sample struct {
	tower    bool
	seed     uint64
	ticks    int
	noHashes bool
	// hashesBefore leaves out the hashes of later ticks; 0 leaves out none.
	hashesBefore format.Tick
	// game, build, data and session stand in the metadata instead of the true
	// ones.
	game, build, data, session string
	env                        []format.Label
	players                    []format.PlayerEvent
	marks                      []format.Mark
	labels                     []format.Label
	// flip is a tick whose hash has one wrong bit, change one whose first
	// step, or the next tick's that has any, has another parameter. 0 is none.
	flip, change format.Tick
	// gapFirst to gapLast are missing; restart puts a keyframe behind them.
	gapFirst, gapLast format.Tick
	restart           bool
	// frames is how many ticks lie between two keyframes, from the first
	// one on; the one before tick badFrame has one wrong byte. 0 is none.
	frames   int
	badFrame format.Tick
	// live leaves the end out.
	live bool
}

const sampleTicks = 200

// play gives the sample's metadata, code book and game.
func (s sample) play() (*format.Metadata, *format.CodeBook, demoGame, error) {
	if s.tower {
		run, err := tower.NewRun(10+s.seed, "tower-10")
		return tower.Metadata("sample", 10+s.seed, "tower-10"), tower.CodeBook(), &towerDemo{run: run}, err
	}
	match, err := skirmish.NewMatch(1+s.seed, 2, "plains-100")
	if err != nil {
		return nil, nil, nil, err
	}
	return match.Metadata(), skirmish.CodeBook(), &skirmishDemo{match: match}, nil
}

// bytes is the replay's file.
func (s sample) bytes() ([]byte, error) {
	meta, book, game, err := s.play()
	if err != nil {
		return nil, err
	}
	meta.Session = "sample"
	for _, x := range []struct {
		set string
		at  *string
	}{{s.game, &meta.Game}, {s.build, &meta.Build}, {s.data, &meta.Data}, {s.session, &meta.Session}} {
		if x.set != "" {
			*x.at = x.set
		}
	}
	if s.noHashes {
		meta.HashBytes, meta.HashParts = 0, nil
	}
	meta.Labels, meta.Env = append(meta.Labels, s.labels...), s.env
	out := new(format.Buffer)
	w, err := format.NewWriter(out, meta, book)
	if err != nil {
		return nil, err
	}
	p := &samplePlay{sample: s, w: w, game: game}
	if err := p.run(); err != nil {
		return nil, err
	}
	end := func() error { return w.Finish(format.EndSealed, "") }
	if s.live {
		end = w.Flush
	}
	if err := end(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// samplePlay writes a game while it plays it.
type samplePlay struct {
	sample
	w       *format.Writer
	game    demoGame
	changed bool
}

func (p *samplePlay) run() error {
	if err := p.w.Keyframe(format.Keyframe{State: p.game.keyframe()}); err != nil {
		return err
	}
	if len(p.players) > 0 {
		if err := p.w.Players(make([]byte, format.SaltBytes), p.players); err != nil {
			return err
		}
	}
	if p.ticks == 0 {
		p.ticks = sampleTicks
	}
	for tick := range format.Tick(p.ticks) {
		if err := p.before(tick); err != nil {
			return err
		}
		going, err := p.game.inputs(func(code uint16, params ...format.Value) error { return p.step(tick, code, params) })
		if err != nil {
			return err
		}
		if going && !p.missing(tick) {
			if err := p.w.EndTick(); err != nil {
				return err
			}
		}
		if err := p.game.simulate(p.hash); err != nil || !going {
			return err
		}
	}
	return nil
}

// before writes what stands before a tick.
func (p *samplePlay) before(tick format.Tick) error {
	var err error
	switch {
	case p.gapLast == 0:
	case tick == p.gapFirst:
		err = p.w.Gap(format.Gap{First: p.gapFirst, Last: p.gapLast, Reason: "lost\x1b[31m on the way"})
	case tick == p.gapLast+1 && p.restart:
		err = p.w.Keyframe(format.Keyframe{NextTick: tick, State: p.game.keyframe()})
	}
	if p.frames > 0 && tick > 0 && int(tick)%p.frames == 0 {
		state := p.game.keyframe()
		if tick == p.badFrame {
			state[len(state)/2] ^= 1
		}
		err = errors.Join(err, p.w.Keyframe(format.Keyframe{NextTick: tick, State: state}))
	}
	for _, m := range p.marks {
		if m.Tick == tick {
			err = errors.Join(err, p.w.Mark(m))
		}
	}
	return err
}

func (p *samplePlay) missing(tick format.Tick) bool {
	return p.gapLast > 0 && tick >= p.gapFirst && tick <= p.gapLast
}

func (p *samplePlay) step(tick format.Tick, code uint16, params []format.Value) error {
	if p.missing(tick) {
		return nil
	}
	if p.change > 0 && tick >= p.change && !p.changed {
		p.changed = true
		params = append([]format.Value(nil), params...)
		last := len(params) - 1
		n, _ := params[last].Int64()
		params[last] = format.Int(n + 1)
	}
	return p.w.Step(code, params...)
}

func (p *samplePlay) hash(tick format.Tick, hash []byte) error {
	if p.noHashes || p.missing(tick) || p.hashesBefore > 0 && tick >= p.hashesBefore {
		return nil
	}
	if p.flip > 0 && tick == p.flip {
		hash = bytes.Clone(hash)
		hash[len(hash)-1] ^= 1
	}
	return p.w.Hash(tick, hash)
}

// write puts the replay into a file of a new folder and returns its path.
func (s sample) write(t testing.TB) string {
	t.Helper()
	b, err := s.bytes()
	if err != nil {
		t.Fatal(err)
	}
	return writeFile(t, "match.rply", b)
}

// writeFile writes a file into a new folder.
func writeFile(t testing.TB, name string, b []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// result is what one call of the program gave.
type result struct {
	code           int
	stdout, stderr string
}

// reprise runs the program in this process.
func reprise(args ...string) result { return repriseWith(nil, args...) }

func repriseWith(stdin []byte, args ...string) result {
	var stdout, stderr bytes.Buffer
	var in io.Reader = bytes.NewReader(stdin)
	code := run(args, in, &stdout, &stderr)
	return result{code, stdout.String(), stderr.String()}
}
