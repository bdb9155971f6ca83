// Package table writes replays as tables, CSV or Parquet, and reads back the
// tables that it wrote.
//
// # Rows
//
// The whole table has a row for everything that a replay holds, in the order of
// its ticks; the column kind says what a row is, and so what its other columns
// mean:
//
//	kind      columns
//	head      text: the header of JSON lines; other: bytes of a state hash
//	code      text: the code line of JSON lines
//	step      tick, step, code, name, player, params
//	tick      tick, hash, time_us: it closes the tick, behind its steps
//	gap       tick to other are missing; text: the reason; flag: by the recorder
//	keyframe  tick: the next one; data from offset on, of size bytes
//	join      tick, player, name, text: the team; flag: an observer
//	leave     tick, player
//	mark      tick, player, name: the kind; text
//	report    tick: at; other: of; player: the peer; hash
//	end       tick: the next one; name: the state; text: the reason
//
// A table of steps, or one of ticks, has only those rows and their columns. It
// leaves out all else and cannot be read back.
//
// Both ways stream: of a replay, or of a table, only a part is in memory.
package table

import (
	"bytes"
	"fmt"

	"reprise/format"
)

// Format is how a table is stored.
type Format string

// The formats.
const (
	CSV     Format = "csv"
	Parquet Format = "parquet"
)

// Kind is what a table holds.
type Kind string

// The kinds of tables.
const (
	// All holds the whole replay, and can be read back.
	All   Kind = "all"
	Steps Kind = "steps"
	Ticks Kind = "ticks"
)

// Columns describes the columns, for people.
const Columns = `  kind     what the row is: head, code, step, tick, gap, keyframe, join, leave, mark,
           report or end
  tick     number of the tick; in seconds it is tick / tick rate
  step     place of a step in its tick, from 0 on
  code     command code
  name     the command's name by the code book; a player's name; a mark's kind
  player   who acts, joins, leaves, is marked or reports
  params   the step's parameters in order, the player among them. CSV: an array as
           in JSON lines. Parquet: a list of kind (bool, int, float, bigint, string,
           bytes, ints) and the value in int, float, text, bytes or ints
  hash     state hash after the tick. CSV: hexadecimal. Parquet: bytes
  time_us  time of the tick, microseconds since the session's start
  other    last tick of a gap, or the tick that a report is of
  text     a reason, a team, a mark's text, or a line of JSON
  flag     1: a gap declared by the recorder, or an observer
  offset, size, data
           part of a keyframe; CSV: base64`

// Left says what a kind of table leaves out; empty for All.
func (k Kind) Left() string {
	switch k {
	case Steps:
		return "empty ticks, state hashes, times, gaps, keyframes, players, marks, reports and the end"
	case Ticks:
		return "the steps, gaps, keyframes, players, marks, reports and the end"
	}
	return ""
}

// Is tells whether a file begins like a whole table, and of which format.
func Is(head []byte) (Format, bool) {
	switch {
	case bytes.HasPrefix(head, []byte(parquetMagic)):
		return Parquet, true
	case bytes.HasPrefix(head, []byte("kind,tick,")):
		return CSV, true
	}
	return "", false
}

// damaged is the error of a table that is not as it was written.
func damaged(row int, what string, args ...any) error {
	return fmt.Errorf("%w: row %d of the table: %s", format.ErrCorrupt, row, fmt.Sprintf(what, args...))
}
