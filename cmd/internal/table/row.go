package table

import (
	"encoding/base64"
	"strings"
	"unicode/utf8"

	"reprise/format"
)

// Row is a row of the whole table. A nil pointer is an empty cell.
type Row struct {
	Kind   string  `parquet:"kind,dict"`
	Tick   uint64  `parquet:"tick,delta"`
	Step   *int32  `parquet:"step,optional"`
	Code   *int32  `parquet:"code,optional"`
	Name   string  `parquet:"name,optional,dict"`
	Player *uint64 `parquet:"player,optional"`
	Params []Param `parquet:"params,list"`
	Hash   []byte  `parquet:"hash,optional"`
	TimeUS *int64  `parquet:"time_us,optional"`
	Other  *uint64 `parquet:"other,optional"`
	Text   string  `parquet:"text,optional"`
	Flag   *bool   `parquet:"flag,optional"`
	Offset *uint64 `parquet:"offset,optional"`
	Size   *uint64 `parquet:"size,optional"`
	Data   []byte  `parquet:"data,optional"`
}

// Param is one parameter of a step.
type Param struct {
	Kind  string   `parquet:"kind,dict"`
	Int   *int64   `parquet:"int,optional"`
	Float *float64 `parquet:"float,optional"`
	Text  string   `parquet:"text,optional"`
	Bytes []byte   `parquet:"bytes,optional"`
	Ints  []int64  `parquet:"ints,list"`
}

// Kinds of rows. They stand in tables and must not change.
const (
	rowHead     = "head"
	rowCode     = "code"
	rowStep     = "step"
	rowTick     = "tick"
	rowGap      = "gap"
	rowKeyframe = "keyframe"
	rowJoin     = "join"
	rowLeave    = "leave"
	rowMark     = "mark"
	rowReport   = "report"
	rowEnd      = "end"
)

// encoded stands before a text that no cell could hold as it is.
const encoded = "base64:"

// cell makes free text fit for every reader of tables.
func cell(s string) string {
	control := func(r rune) bool { return r < 0x20 || r == 0x7f }
	if utf8.ValidString(s) && !strings.ContainsFunc(s, control) && !strings.HasPrefix(s, encoded) {
		return s
	}
	return encoded + base64.StdEncoding.EncodeToString([]byte(s))
}

// uncell gives the text back.
func uncell(s string) (string, error) {
	rest, ok := strings.CutPrefix(s, encoded)
	if !ok {
		return s, nil
	}
	b, err := base64.StdEncoding.DecodeString(rest)
	return string(b), err
}

// param makes a cell of a value. Integers beyond 64 bits with a sign, and
// bigints, are decimal text.
func param(v format.Value) Param {
	p := Param{Kind: v.Kind().String()}
	switch v.Kind() {
	case format.KindBool:
		p.Int = new(int64)
		if v.Bool() {
			*p.Int = 1
		}
	case format.KindInt:
		if i, ok := v.Int64(); ok {
			p.Int = &i
		} else {
			p.Text = v.BigInt().String()
		}
	case format.KindFloat:
		x, _ := v.Float64()
		p.Float = &x
	case format.KindBig:
		p.Text = v.BigInt().String()
	case format.KindString:
		if s := v.Str(); utf8.ValidString(s) {
			p.Text = s
		} else {
			p.Bytes = []byte(s)
		}
	case format.KindBytes:
		p.Bytes = v.ByteSlice()
	case format.KindInts:
		p.Ints = v.Int64s()
	}
	return p
}
