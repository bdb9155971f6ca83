package table

import (
	"encoding/base64"
	"encoding/csv"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"reprise/format"
)

// csvColumns are the first line of each kind of table. They stand in tables and
// must not change.
var csvColumns = map[Kind][]string{
	All:   {"kind", "tick", "step", "code", "name", "player", "params", "hash", "time_us", "other", "text", "flag", "offset", "size", "data"},
	Steps: {"tick", "step", "code", "name", "player", "params"},
	Ticks: {"tick", "steps", "hash", "time_us"},
}

type csvWriter struct {
	w      *csv.Writer
	kind   Kind
	record []string
	text   []byte
}

func newCSVWriter(w io.Writer, kind Kind) (*csvWriter, error) {
	c := &csvWriter{w: csv.NewWriter(w), kind: kind}
	return c, c.w.Write(csvColumns[kind])
}

func (c *csvWriter) write(r *Row) error {
	switch c.kind {
	case Steps:
		c.record = append(c.record[:0], number(r.Tick), cellOf(r.Step), cellOf(r.Code), r.Name, cellOf(r.Player), c.params(r))
	case Ticks:
		c.record = append(c.record[:0], number(r.Tick), cellOf(r.Step), hex.EncodeToString(r.Hash), cellOf(r.TimeUS))
	default:
		flag := ""
		if r.Flag != nil && *r.Flag {
			flag = "1"
		}
		c.record = append(c.record[:0], r.Kind, number(r.Tick), cellOf(r.Step), cellOf(r.Code), r.Name, cellOf(r.Player), c.params(r),
			hex.EncodeToString(r.Hash), cellOf(r.TimeUS), cellOf(r.Other), r.Text, flag, cellOf(r.Offset), cellOf(r.Size), base64.StdEncoding.EncodeToString(r.Data))
	}
	return c.w.Write(c.record)
}

func number(n uint64) string { return strconv.FormatUint(n, 10) }

// cellOf prints a number that may be missing.
func cellOf[N int32 | int64 | uint64](n *N) string {
	if n == nil {
		return ""
	}
	return fmt.Sprint(*n)
}

// params prints a step's parameters as in JSON lines.
func (c *csvWriter) params(r *Row) string {
	if r.Kind != rowStep {
		return ""
	}
	c.text = append(c.text[:0], '[')
	for i := range r.Params {
		if i > 0 {
			c.text = append(c.text, ',')
		}
		v, _ := r.Params[i].value()
		c.text = format.AppendJSON(c.text, v)
	}
	return string(append(c.text, ']'))
}

func (c *csvWriter) close() error {
	c.w.Flush()
	return c.w.Error()
}

// value gives a parameter back; the error says what is wrong with its cell.
func (p *Param) value() (format.Value, error) {
	switch {
	case p.Kind == format.KindBool.String() && p.Int != nil && *p.Int&^1 == 0:
		return format.Bool(*p.Int == 1), nil
	case p.Kind == format.KindInt.String() && p.Int != nil:
		return format.Int(*p.Int), nil
	case p.Kind == format.KindInt.String():
		return wideInteger(p.Text)
	case p.Kind == format.KindFloat.String() && p.Float != nil:
		return format.Float(*p.Float), nil
	case p.Kind == format.KindBig.String():
		return format.ParseJSON([]byte(`{"bigint":"` + p.Text + `"}`))
	case p.Kind == format.KindString.String() && len(p.Bytes) > 0:
		return format.String(string(p.Bytes)), nil
	case p.Kind == format.KindString.String():
		return format.String(p.Text), nil
	case p.Kind == format.KindBytes.String():
		return format.Bytes(p.Bytes), nil
	case p.Kind == format.KindInts.String():
		return format.Ints(p.Ints), nil
	}
	return format.Value{}, fmt.Errorf("a parameter of kind %.20q without its value", p.Kind)
}

func wideInteger(text string) (format.Value, error) {
	if _, ok := new(big.Int).SetString(text, 10); !ok {
		return format.Value{}, fmt.Errorf("%.40q is no integer", text)
	}
	return format.ParseJSON([]byte(text))
}

// rowReader gives the rows of a whole table; io.EOF behind the last. A row is
// valid until the next call.
type rowReader interface {
	read(*Row) error
}

type csvReader struct {
	r   *csv.Reader
	row int
}

func newCSVReader(src io.Reader) (*csvReader, error) {
	c := &csvReader{r: csv.NewReader(src)}
	c.r.ReuseRecord = true
	head, err := c.r.Read()
	if err != nil {
		return nil, csvError(err)
	}
	if !slices.Equal(head, csvColumns[All]) {
		return nil, fmt.Errorf("%w: a table whose columns are not those of --table all: %.80s", format.ErrNotReplay, strings.Join(head, ","))
	}
	return c, nil
}

// csvError tells a table that is wrong from one that could not be read.
func csvError(err error) error {
	var parse *csv.ParseError
	if errors.As(err, &parse) {
		return fmt.Errorf("%w: %v", format.ErrCorrupt, err)
	}
	return err
}

func (c *csvReader) read(r *Row) error {
	record, err := c.r.Read()
	if err != nil {
		return csvError(err)
	}
	c.row++
	*r = Row{Kind: record[0], Name: record[4], Text: record[10]}
	p := cellParser{row: c.row}
	if tick := p.number("tick", record[1], 64); tick != nil {
		r.Tick = *tick
	} else {
		p.fail("tick", "")
	}
	r.Step, r.Code = narrow[int32](p.number("step", record[2], 31)), narrow[int32](p.number("code", record[3], 16))
	r.Player = p.number("player", record[5], 64)
	r.TimeUS, r.Other = narrow[int64](p.number("time_us", record[8], 63)), p.number("other", record[9], 64)
	r.Offset, r.Size = p.number("offset", record[12], 64), p.number("size", record[13], 64)
	r.Hash, r.Data = p.bytes("hash", record[7], hex.DecodeString), p.bytes("data", record[14], base64.StdEncoding.DecodeString)
	r.Flag = p.flag(record[11])
	if r.Kind == rowStep {
		p.params(r, record[6])
	} else if record[6] != "" {
		p.fail("params", record[6])
	}
	return p.err
}

// cellParser reads cells. Its first failure stays.
type cellParser struct {
	row int
	err error
}

func (p *cellParser) fail(column, text string) {
	if p.err == nil {
		p.err = damaged(p.row, "column %s is %.60q", column, text)
	}
}

// number reads a number of at most so many bits; nil for an empty cell.
func (p *cellParser) number(column, text string, bits int) *uint64 {
	if text == "" {
		return nil
	}
	n, err := strconv.ParseUint(text, 10, bits)
	if err != nil || number(n) != text {
		p.fail(column, text)
	}
	return &n
}

func narrow[N int32 | int64](n *uint64) *N {
	if n == nil {
		return nil
	}
	x := N(*n)
	return &x
}

func (p *cellParser) bytes(column, text string, decode func(string) ([]byte, error)) []byte {
	if text == "" {
		return nil
	}
	b, err := decode(text)
	if err != nil {
		p.fail(column, text)
	}
	return b
}

func (p *cellParser) flag(text string) *bool {
	switch text {
	case "":
		return nil
	case "1":
	default:
		p.fail("flag", text)
	}
	yes := true
	return &yes
}

func (p *cellParser) params(r *Row, text string) {
	list, err := format.ParseJSONList([]byte(text))
	if err != nil {
		if p.err == nil {
			p.err = damaged(p.row, "column params: %v", err)
		}
		return
	}
	for _, v := range list {
		r.Params = append(r.Params, param(v))
	}
}
