package table

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"reprise/format"
)

// Read makes a replay of a whole table of size bytes. Damage names the row,
// counted from 1 behind the line of columns.
func Read(src io.ReaderAt, size int64, as Format, out format.ReplayFile) error {
	var rows rowReader
	var err error
	if as == Parquet {
		rows, err = newParquetReader(src, size)
	} else {
		rows, err = newCSVReader(io.NewSectionReader(src, 0, size))
	}
	if err != nil {
		return err
	}
	i := &importer{rows: rows}
	if err := i.open(out); err != nil {
		return err
	}
	return i.run()
}

// importer makes a replay of rows.
type importer struct {
	rows rowReader
	row  Row
	n    int // of the row, from 1 on
	w    *format.Writer

	salt    []byte
	salted  bool
	step    int32 // that is due
	key     *format.Keyframe
	keySize uint64
	reports []format.Report
	params  []format.Value
}

func (i *importer) damaged(what string, args ...any) error { return damaged(i.n, what, args...) }

// next reads a row; its texts are as they were.
func (i *importer) next() error {
	if err := i.rows.read(&i.row); err != nil {
		return err
	}
	i.n++
	var err error
	if i.row.Name, err = uncell(i.row.Name); err == nil {
		i.row.Text, err = uncell(i.row.Text)
	}
	if err != nil {
		return i.damaged("a text is not base64: %v", err)
	}
	return nil
}

// open reads the head and the codes as the lines of JSON that they are.
func (i *importer) open(out format.ReplayFile) error {
	if err := i.next(); err != nil {
		return i.early(err)
	}
	if i.row.Kind != rowHead || i.row.Other == nil || *i.row.Other > format.MaxHashBytes {
		return i.damaged("the head is due, with the bytes of a state hash from 0 to %d", format.MaxHashBytes)
	}
	lines, width, codes := i.row.Text+"\n", int(*i.row.Other), 0
	err := i.next()
	for ; err == nil && i.row.Kind == rowCode; err = i.next() {
		lines += i.row.Text + "\n"
		codes++
		if len(lines) > format.MaxOpening*8 {
			return i.damaged("the code lines have more than %d bytes", format.MaxOpening*8)
		}
	}
	if err != nil && err != io.EOF {
		return err
	}
	if err == io.EOF {
		i.row.Kind = ""
	}
	// A foreign header may leave it to the lines how wide hashes are.
	if width > 0 {
		lines += fmt.Sprintf("{\"t\":%d,\"hash\":%q}\n", format.MaxTick-1, strings.Repeat("00", width))
	}
	head, err := format.NewJSONLReader(strings.NewReader(lines), format.JSONLOptions{})
	if err != nil {
		return i.damaged("the head or the codes: %v", err)
	}
	switch book := head.Book(); {
	case head.Meta().HashBytes != width:
		return i.damaged("the head says that hashes have %d bytes and %d", head.Meta().HashBytes, width)
	case book == nil && codes > 0, book != nil && len(book.Codes) != codes:
		return i.damaged("%d code rows, which are not as many code lines", codes)
	}
	i.salt = head.Salt()
	if i.w, err = format.NewWriter(out, head.Meta(), head.Book()); err != nil {
		return err
	}
	if hasSalt(lines) {
		return i.players(nil)
	}
	return nil
}

// hasSalt tells whether the header names a salt, which stands there also
// without players.
func hasSalt(lines string) bool {
	header, _, _ := strings.Cut(lines, "\n")
	var keys map[string]json.RawMessage
	return json.Unmarshal([]byte(header), &keys) == nil && keys["salt"] != nil
}

// early is the error of a table that ends too soon.
func (i *importer) early(err error) error {
	if err == io.EOF {
		return fmt.Errorf("%w: the table ends before its head", format.ErrTorn)
	}
	return err
}

// run writes what the rows say, the first of which has been read.
func (i *importer) run() error {
	for i.row.Kind != "" {
		if i.row.Kind == rowEnd {
			return i.end()
		}
		if err := i.write(); err != nil {
			return err
		}
		switch err := i.next(); {
		case err == io.EOF:
			i.row.Kind = ""
		case err != nil:
			return err
		}
	}
	return i.finish(format.EndUnfinished, "the table has no end row")
}

// write writes one row; what the Writer refuses is damage.
func (i *importer) write() error {
	if i.key != nil && i.row.Kind != rowKeyframe {
		return i.damaged("the keyframe before tick %d is not whole: its rows must stand together", i.key.NextTick)
	}
	if err := i.writeRow(); err != nil {
		return i.damaged("%v", err)
	}
	return nil
}

func (i *importer) writeRow() error {
	r := &i.row
	if i.step > 0 && r.Kind != rowStep && r.Kind != rowTick {
		return fmt.Errorf("a %s stands inside of tick %d", r.Kind, i.w.NextTick())
	}
	switch r.Kind {
	case rowStep:
		return i.writeStep()
	case rowTick:
		return i.writeTick()
	case rowGap:
		return i.w.Gap(format.Gap{First: format.Tick(r.Tick), Last: format.Tick(value(r.Other)), Reason: r.Text, ByRecorder: r.Flag != nil && *r.Flag})
	case rowKeyframe:
		return i.keyframe()
	case rowJoin, rowLeave:
		e := format.PlayerEvent{Tick: format.Tick(r.Tick), ID: value(r.Player), Leave: r.Kind == rowLeave}
		if !e.Leave {
			e.Name, e.Team, e.Observer = r.Name, r.Text, r.Flag != nil && *r.Flag
		}
		return i.players([]format.PlayerEvent{e})
	case rowMark:
		return i.w.Mark(format.Mark{Tick: format.Tick(r.Tick), Kind: r.Name, Player: value(r.Player), Text: r.Text})
	case rowReport:
		i.reports = append(i.reports, format.Report{At: format.Tick(r.Tick), Of: format.Tick(value(r.Other)), Peer: value(r.Player), Hash: bytes.Clone(r.Hash)})
		return i.flushReports(reportsPerChunk)
	}
	return fmt.Errorf("no row is a %.20q here", r.Kind)
}

// value is 0 for an empty cell.
func value[N int32 | int64 | uint64](n *N) N {
	if n == nil {
		return 0
	}
	return *n
}

func (i *importer) due() error {
	if r := &i.row; format.Tick(r.Tick) != i.w.NextTick() {
		return fmt.Errorf("tick %d stands where tick %d is due", r.Tick, i.w.NextTick())
	}
	return nil
}

func (i *importer) writeStep() error {
	r := &i.row
	if err := i.due(); err != nil {
		return err
	}
	if r.Step == nil || *r.Step != i.step || r.Code == nil || *r.Code < 0 || *r.Code > 1<<16-1 {
		return fmt.Errorf("step %d with code %d stands where step %d is due", value(r.Step), value(r.Code), i.step)
	}
	i.params = i.params[:0]
	for n := range r.Params {
		v, err := r.Params[n].value()
		if err != nil {
			return err
		}
		i.params = append(i.params, v)
	}
	i.step++
	return i.w.Step(uint16(*r.Code), i.params...)
}

func (i *importer) writeTick() error {
	r := &i.row
	if err := i.due(); err != nil {
		return err
	}
	i.step = 0
	end := i.w.EndTick
	if r.TimeUS != nil {
		end = func() error { return i.w.EndTickAt(*r.TimeUS) }
	}
	if err := end(); err != nil || len(r.Hash) == 0 {
		return err
	}
	return i.w.Hash(format.Tick(r.Tick), r.Hash)
}

// keyframe joins the rows of one keyframe.
func (i *importer) keyframe() error {
	r := &i.row
	if i.key == nil {
		i.key, i.keySize = &format.Keyframe{NextTick: format.Tick(r.Tick), State: []byte{}}, value(r.Size)
		if i.keySize > format.MaxKeyframe {
			return fmt.Errorf("a keyframe of %d bytes, the most is %d", i.keySize, format.MaxKeyframe)
		}
	}
	k := i.key
	have := uint64(len(k.State))
	if format.Tick(r.Tick) != k.NextTick || value(r.Size) != i.keySize || value(r.Offset) != have || uint64(len(r.Data)) > i.keySize-have || len(r.Data) == 0 && i.keySize > 0 {
		return fmt.Errorf("keyframe of %d bytes at %d of %d before tick %d, due is byte %d of %d before tick %d",
			len(r.Data), value(r.Offset), value(r.Size), r.Tick, have, i.keySize, k.NextTick)
	}
	if k.State = append(k.State, r.Data...); uint64(len(k.State)) < i.keySize {
		return nil
	}
	i.key = nil
	return i.w.Keyframe(*k)
}

func (i *importer) players(events []format.PlayerEvent) error {
	var salt []byte
	if !i.salted {
		salt, i.salted = i.salt, true
	}
	return i.w.Players(salt, events)
}

// reportsPerChunk is how many reports go into one chunk.
const reportsPerChunk = 512

func (i *importer) flushReports(least int) error {
	if len(i.reports) < least {
		return nil
	}
	err := i.w.Reports(i.reports)
	i.reports = i.reports[:0]
	return err
}

// end ends the replay as its row says; nothing may follow.
func (i *importer) end() error {
	r := &i.row
	if format.Tick(r.Tick) != i.w.NextTick() {
		return i.damaged("the end before tick %d, but tick %d is due", r.Tick, i.w.NextTick())
	}
	state := format.EndUnfinished
	switch r.Name {
	case format.EndSealed.String():
		state = format.EndSealed
	case format.EndUnfinished.String():
	default:
		return i.damaged("the end is %.20q: sealed or unfinished", r.Name)
	}
	reason := r.Text
	if err := i.next(); err != io.EOF {
		if err == nil {
			err = i.damaged("a row stands behind the end")
		}
		return err
	}
	return i.finish(state, reason)
}

func (i *importer) finish(state format.EndState, reason string) error {
	if i.key != nil {
		return i.damaged("the keyframe before tick %d is not whole", i.key.NextTick)
	}
	if err := i.flushReports(1); err != nil {
		return i.damaged("%v", err)
	}
	if i.step > 0 {
		return i.damaged("tick %d has steps, but no row that closes it", i.w.NextTick())
	}
	return i.w.Finish(state, reason)
}
