package format

import (
	"bytes"
	"errors"
	"io"
)

const (
	jsonlNoEnd = "the JSON lines have no end line"
	jsonlTorn  = "the JSON lines end inside a line"
	// jsonlReports is how many reports go into one chunk.
	jsonlReports = 512
)

// ReadJSONL turns JSON lines into a finished RPLY2 file. Without an end line
// the session counts as unfinished. Where the last line is cut, the ticks
// before it are kept, and the error is a TornError.
func ReadJSONL(src io.Reader, out ReplayFile, o JSONLOptions) error {
	r, err := NewJSONLReader(src, o)
	if err != nil {
		return err
	}
	w, err := NewWriter(out, r.Meta(), r.Book())
	if err != nil {
		return err
	}
	c := &jsonlConverter{r: r, w: w, end: End{State: EndUnfinished, Reason: jsonlNoEnd}}
	return c.run()
}

func readJSONL(src *io.SectionReader, out *Buffer) error { return ReadJSONL(src, out, JSONLOptions{}) }

// jsonlConverter writes what lines hold.
type jsonlConverter struct {
	r       *JSONLReader
	w       *Writer
	reports []Report
	salted  bool
	end     End
}

func (c *jsonlConverter) run() error {
	if salt := c.r.header.salt; salt != nil {
		if err := c.players(nil); err != nil {
			return err
		}
	}
	var cut error
	for {
		l, err := c.r.Next()
		if err == io.EOF {
			break
		}
		if errors.Is(err, ErrTorn) {
			cut, c.end.Reason = err, jsonlTorn
			c.w.DropTick()
			break
		}
		if err != nil {
			return err
		}
		if err := c.write(l); err != nil {
			return c.r.damage("%w", err)
		}
	}
	if err := c.finish(); err != nil {
		return err
	}
	return cut
}

// advance closes the ticks before t.
func (c *jsonlConverter) advance(t Tick) error {
	for c.w.NextTick() < t {
		if err := c.w.EndTick(); err != nil {
			return err
		}
	}
	return nil
}

func (c *jsonlConverter) write(l *Line) error {
	switch l.Kind {
	case LineStep:
		if err := c.advance(l.Tick); err != nil {
			return err
		}
		return c.w.Step(l.Step.Code, l.Step.Params...)
	case LineTick:
		return c.tick(l)
	case LineMark:
		return c.w.Mark(l.Mark)
	case LineReport:
		l.Report.Hash = bytes.Clone(l.Report.Hash)
		c.reports = append(c.reports, l.Report)
		return c.flushReports(jsonlReports)
	case LineGap:
		if err := c.advance(l.Gap.First); err != nil {
			return err
		}
		return c.w.Gap(l.Gap)
	case LinePlayer:
		return c.players([]PlayerEvent{l.Player})
	case LineKeyframe:
		return c.w.Keyframe(l.Keyframe)
	case LineEnd:
		c.end = l.End
	}
	return nil
}

func (c *jsonlConverter) tick(l *Line) error {
	if err := c.advance(l.Tick); err != nil {
		return err
	}
	if l.Tick == c.w.NextTick() {
		end := c.w.EndTick
		if l.HasTime {
			end = func() error { return c.w.EndTickAt(l.Time) }
		}
		if err := end(); err != nil {
			return err
		}
	}
	if l.Hash == nil {
		return nil
	}
	return c.w.Hash(l.Tick, l.Hash)
}

func (c *jsonlConverter) players(events []PlayerEvent) error {
	var salt []byte
	if !c.salted {
		salt, c.salted = c.r.Salt(), true
	}
	return c.w.Players(salt, events)
}

func (c *jsonlConverter) flushReports(least int) error {
	if len(c.reports) < least {
		return nil
	}
	err := c.w.Reports(c.reports)
	c.reports = c.reports[:0]
	return err
}

func (c *jsonlConverter) finish() error {
	if err := c.flushReports(1); err != nil {
		return err
	}
	if err := c.advance(c.r.NextTick()); err != nil {
		return err
	}
	if err := c.w.Flush(); err != nil {
		return err
	}
	if c.r.ended {
		if err := c.w.t.CheckTotals(c.end.Totals); err != nil {
			return c.r.damage("%w", err)
		}
	}
	return c.w.Finish(c.end.State, c.end.Reason)
}
