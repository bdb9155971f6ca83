package table

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"reprise/format"
)

// keyframePart is how much of a keyframe stands in one row.
const keyframePart = 256 << 10

// rowWriter stores rows. A row is valid during the call.
type rowWriter interface {
	write(*Row) error
	close() error
}

// Write writes a replay as a table.
func Write(w io.Writer, f *format.File, as Format, kind Kind) error {
	var rows rowWriter
	var err error
	switch {
	case as == CSV:
		rows, err = newCSVWriter(w, kind)
	case as == Parquet:
		rows = newParquetWriter(w, kind)
	default:
		err = fmt.Errorf("no table format %q", as)
	}
	if err != nil {
		return err
	}
	x := &exporter{f: f, out: rows, kind: kind}
	if kind == All {
		err = x.head()
	}
	if err == nil {
		err = f.Walk(x)
	}
	if err == nil && kind == All {
		err = x.end()
	}
	return errors.Join(err, rows.close())
}

// exporter makes the rows of a replay.
type exporter struct {
	f     *format.File
	out   rowWriter
	kind  Kind
	steps format.StepReader

	row    Row
	step   int32
	code   int32
	player uint64
	time   int64
	params []Param
}

// errFull ends the writing of JSON lines behind the opening.
var errFull = errors.New("enough lines")

// lineSink keeps the first lines of what is written to it.
type lineSink struct {
	b     []byte
	lines int
}

func (s *lineSink) Write(b []byte) (int, error) {
	s.b = append(s.b, b...)
	if bytes.Count(s.b, []byte("\n")) >= s.lines {
		return 0, errFull
	}
	return len(b), nil
}

// head writes the header and the code lines.
func (x *exporter) head() error {
	sink := &lineSink{lines: 1}
	if book := x.f.Book(); book != nil {
		sink.lines += len(book.Codes)
	}
	if err := format.WriteJSONL(sink, x.f, format.JSONLWriteOptions{}); err != nil && !errors.Is(err, errFull) {
		return err
	}
	for i := range sink.lines {
		line, rest, _ := bytes.Cut(sink.b, []byte("\n"))
		sink.b = rest
		x.row = Row{Kind: rowCode, Text: cell(string(line))}
		if i == 0 {
			width := uint64(x.f.Summary().Meta.HashBytes)
			x.row.Kind, x.row.Other = rowHead, &width
		}
		if err := x.out.write(&x.row); err != nil {
			return err
		}
	}
	return nil
}

func (x *exporter) end() error {
	s := x.f.Summary()
	if s.End == nil {
		return nil
	}
	x.row = Row{Kind: rowEnd, Tick: uint64(s.NextTick), Name: s.End.State.String(), Text: cell(s.End.Reason)}
	return x.out.write(&x.row)
}

// Tick writes the steps of a tick, then the tick.
func (x *exporter) Tick(t *format.TickRecord) error {
	if x.kind != Ticks {
		if err := x.tickSteps(t); err != nil {
			return err
		}
	}
	if x.kind == Steps {
		return nil
	}
	x.row = Row{Kind: rowTick, Tick: uint64(t.Tick), Hash: t.Hash}
	if t.HasTime {
		x.time = t.Time
		x.row.TimeUS = &x.time
	}
	if x.kind == Ticks {
		x.step = int32(t.Steps)
		x.row.Step = &x.step
	}
	return x.out.write(&x.row)
}

func (x *exporter) tickSteps(t *format.TickRecord) error {
	x.steps.Reset(t)
	for s := (format.Step{}); x.steps.Next(&s); {
		x.step, x.code = int32(s.Index), int32(s.Code)
		x.row = Row{Kind: rowStep, Tick: uint64(t.Tick), Step: &x.step, Code: &x.code}
		if info := x.f.Book().Lookup(s.Code); info != nil {
			x.row.Name = cell(info.Name)
			x.playerOf(info, s.Params)
		}
		x.params = x.params[:0]
		for _, v := range s.Params {
			x.params = append(x.params, param(v))
		}
		x.row.Params = x.params
		if err := x.out.write(&x.row); err != nil {
			return err
		}
	}
	return nil
}

// playerOf fills in who acts, where the code book says that the first parameter
// is the player and it is a number.
func (x *exporter) playerOf(info *format.CodeInfo, params []format.Value) {
	if !info.PlayerFirst() || len(params) == 0 {
		return
	}
	if id, ok := params[0].Uint64(); ok {
		x.player = id
		x.row.Player = &x.player
	}
}

// note writes a row that only the whole table has.
func (x *exporter) note(r Row) error {
	if x.kind != All {
		return nil
	}
	x.row = r
	return x.out.write(&x.row)
}

// Gap writes a gap.
func (x *exporter) Gap(g format.Gap) error {
	last := uint64(g.Last)
	return x.note(Row{Kind: rowGap, Tick: uint64(g.First), Other: &last, Text: cell(g.Reason), Flag: set(g.ByRecorder)})
}

// set is an empty cell for false.
func set(flag bool) *bool {
	if !flag {
		return nil
	}
	return &flag
}

// Keyframe writes a keyframe in parts.
func (x *exporter) Keyframe(k *format.Keyframe) error {
	size := uint64(len(k.State))
	for off := uint64(0); off == 0 || off < size; off += keyframePart {
		at := off
		r := Row{Kind: rowKeyframe, Tick: uint64(k.NextTick), Offset: &at, Size: &size, Data: k.State[off:min(off+keyframePart, size)]}
		if err := x.note(r); err != nil {
			return err
		}
	}
	return nil
}

// Player writes a join or a leave.
func (x *exporter) Player(e format.PlayerEvent) error {
	r := Row{Kind: rowJoin, Tick: uint64(e.Tick), Player: &e.ID, Name: cell(e.Name), Text: cell(e.Team), Flag: set(e.Observer)}
	if e.Leave {
		r = Row{Kind: rowLeave, Tick: r.Tick, Player: r.Player}
	}
	return x.note(r)
}

// Mark writes a mark.
func (x *exporter) Mark(m format.Mark) error {
	return x.note(Row{Kind: rowMark, Tick: uint64(m.Tick), Player: &m.Player, Name: cell(m.Kind), Text: cell(m.Text)})
}

// Report writes a peer's report.
func (x *exporter) Report(r format.Report) error {
	of := uint64(r.Of)
	return x.note(Row{Kind: rowReport, Tick: uint64(r.At), Player: &r.Peer, Other: &of, Hash: r.Hash})
}
