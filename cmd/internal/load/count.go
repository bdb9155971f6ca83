package load

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	"reprise/format"
)

// Promise is what a client knows of a session in the end: what must be in the
// daemon's file.
type Promise struct {
	Script
	// Durable is the first tick that the daemon has not acknowledged.
	Durable format.Tick
	// Next is the first tick that was not recorded.
	Next format.Tick
	// LeftOut are the ticks that the client left out, in order.
	LeftOut []format.Gap
	// Sealed is set where the daemon has said that the replay is finished.
	Sealed bool
}

// Recorded counts the ticks that were recorded.
func (p *Promise) Recorded() uint64 { return uint64(p.Next) - inGaps(p.LeftOut, p.Next) }

// Acknowledged counts those that were acknowledged as on disk.
func (p *Promise) Acknowledged() uint64 { return uint64(p.Durable) - inGaps(p.LeftOut, p.Durable) }

// lastRecorded is the last tick that was not left out.
func (p *Promise) lastRecorded() (format.Tick, bool) {
	end := p.Next
	if n := len(p.LeftOut); n > 0 && p.LeftOut[n-1].Last+1 >= end {
		end = p.LeftOut[n-1].First
	}
	return end - min(end, 1), end > 0
}

// inGaps counts the ticks before end that are in gaps.
func inGaps(gaps []format.Gap, end format.Tick) uint64 {
	n := uint64(0)
	for _, g := range gaps {
		if g.First < end {
			n += uint64(min(g.Last+1, end) - g.First)
		}
	}
	return n
}

// Found is what a replay holds.
type Found struct {
	// Ticks counts those with the content of the script, Next is the first
	// one after the last, in a gap or not.
	Ticks uint64
	Next  format.Tick
	// Gaps are the declared ones.
	Gaps []format.Gap
	// End is how the session ended; nil where it did not.
	End *format.End
}

// ErrWrongTick is matched by what Count returns for a tick that holds
// something else than was recorded, that stands twice, or that is missing
// without a declared gap.
var ErrWrongTick = errors.New("a tick is not what was recorded")

// Count reads the replay of a script from its first tick on. Every tick is
// there with its content, once, or in a declared gap; else the error matches
// ErrWrongTick, or says that the file is damaged.
func (s *Script) Count(path string) (Found, error) {
	f, err := format.Open(path)
	if err != nil {
		return Found{}, err
	}
	defer f.Close()
	found := Found{Gaps: f.Summary().Gaps, End: f.Summary().End}
	if got := f.Summary().Meta.Session; got != s.Session {
		return found, fmt.Errorf("the replay is of session %q, not %s", got, s.Session)
	}
	c := counter{found: &found, write: writer{script: s}}
	r, t := f.Reader(), format.TickRecord{}
	for {
		err := r.Next(&t)
		if err == io.EOF {
			return found, c.passGaps(f.Summary().NextTick)
		}
		if err != nil {
			return found, err
		}
		if err := c.take(&t); err != nil {
			return found, err
		}
	}
}

// counter follows the ticks of a replay.
type counter struct {
	found *Found
	write writer
	steps format.StepReader
	gap   int // the next of found.Gaps
}

func (c *counter) take(t *format.TickRecord) error {
	if err := c.passGaps(t.Tick); err != nil {
		return err
	}
	if !c.write.holds(t, &c.steps) {
		return fmt.Errorf("%w: tick %d of session %s has other contents", ErrWrongTick, t.Tick, c.write.script.Session)
	}
	c.found.Ticks++
	c.found.Next = t.Tick + 1
	return nil
}

// passGaps goes on to a tick, through declared gaps only.
func (c *counter) passGaps(to format.Tick) error {
	for gaps := c.found.Gaps; c.gap < len(gaps) && gaps[c.gap].First == c.found.Next && c.found.Next < to; c.gap++ {
		c.found.Next = gaps[c.gap].Last + 1
	}
	if c.found.Next != to {
		return fmt.Errorf("%w: tick %d stands where tick %d is due", ErrWrongTick, to, c.found.Next)
	}
	return nil
}

// Missing counts the acknowledged ticks that a replay lacks. The error says
// what else of the promise does not hold.
func (p *Promise) Missing(f *Found) (uint64, error) {
	missing := p.Acknowledged() - min(p.Acknowledged(), p.kept(f))
	switch {
	case p.Sealed && (f.End == nil || f.End.State != format.EndSealed):
		return missing, fmt.Errorf("session %s was acknowledged as sealed, its replay is not", p.Session)
	case p.Sealed && f.Next != p.Next:
		return missing, fmt.Errorf("session %s was sealed before tick %d, its replay ends before tick %d", p.Session, p.Next, f.Next)
	}
	for _, g := range p.LeftOut {
		if end := min(g.Last+1, f.Next); g.First < end && inRange(f.Gaps, g.First, end) != uint64(end-g.First) {
			return missing, fmt.Errorf("session %s: ticks %d to %d were left out, its replay does not declare all of them", p.Session, g.First, g.Last)
		}
	}
	return missing, nil
}

// kept counts the acknowledged ticks that are in the replay.
func (p *Promise) kept(f *Found) uint64 {
	end := min(p.Durable, f.Next)
	kept, at := uint64(0), format.Tick(0)
	for _, g := range append(p.LeftOut[:len(p.LeftOut):len(p.LeftOut)], format.Gap{First: end, Last: end}) {
		if from, to := at, min(g.First, end); from < to {
			kept += uint64(to-from) - inRange(f.Gaps, from, to)
		}
		at = g.Last + 1
	}
	return kept
}

// inRange counts the ticks from first (included) to end (not included) that
// are in gaps.
func inRange(gaps []format.Gap, first, end format.Tick) uint64 {
	return inGaps(gaps, end) - inGaps(gaps, min(first, end))
}

// Tally is what the files of a run hold.
type Tally struct {
	// Sessions counts those that have a replay.
	Sessions int
	// Acknowledged is what was promised, Missing what of it is not there.
	Acknowledged, Missing uint64
	// InFiles counts all ticks, Gaps those that are declared as missing.
	InFiles, Gaps uint64
}

// maxFaults bounds what an error lists.
const maxFaults = 10

// CountFiles holds the replays in a data folder to promises. The error tells
// of replays that are unreadable, wrong, missing or there twice; all ticks of
// those count as missing.
func CountFiles(data string, promises []Promise) (Tally, error) {
	replays, err := findReplays(data)
	if err != nil {
		return Tally{}, err
	}
	var tally Tally
	var faults []error
	for i := range promises {
		p := &promises[i]
		found, missing, err := p.find(replays[p.Session])
		if err != nil {
			faults = append(faults, err)
		}
		if len(replays[p.Session]) > 0 {
			tally.Sessions++
		}
		tally.Acknowledged += p.Acknowledged()
		tally.Missing += missing
		tally.InFiles += found.Ticks
		tally.Gaps += inGaps(found.Gaps, found.Next)
	}
	if n := len(faults); n > maxFaults {
		faults = append(faults[:maxFaults], fmt.Errorf("and %d more", n-maxFaults))
	}
	return tally, errors.Join(faults...)
}

// find counts the one replay of a session.
func (p *Promise) find(paths []string) (Found, uint64, error) {
	switch {
	case len(paths) == 0 && p.Durable == 0 && !p.Sealed:
		return Found{}, 0, nil
	case len(paths) != 1:
		return Found{}, p.Acknowledged(), fmt.Errorf("session %s has %d replays, want one: %v", p.Session, len(paths), paths)
	}
	f, err := p.Count(paths[0])
	if err != nil {
		return f, p.Acknowledged(), fmt.Errorf("%s: %w", paths[0], err)
	}
	missing, err := p.Missing(&f)
	return f, missing, err
}

// findReplays finds the replays of all sessions in a data folder, by id.
func findReplays(data string) (map[string][]string, error) {
	replays := map[string][]string{}
	err := filepath.WalkDir(data, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) && path != data {
			return nil // a running daemon moves files
		}
		if err != nil {
			return err
		}
		if id, ok := replayOf(d.Name()); ok && d.Type().IsRegular() {
			replays[id] = append(replays[id], path)
		}
		return nil
	})
	return replays, err
}

// replayOf takes the session's id from the name of a replay,
// room-ID-START.rply.
func replayOf(name string) (id string, ok bool) {
	name, prefix := strings.CutPrefix(name, "room-")
	name, suffix := strings.CutSuffix(name, ".rply")
	i := strings.LastIndexByte(name, '-')
	if !prefix || !suffix || i < 1 {
		return "", false
	}
	return name[:i], true
}
