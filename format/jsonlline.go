package format

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"math/bits"
)

// LineKind says what a line of JSON lines holds.
type LineKind uint8

// The kinds of lines behind the header and the code book.
const (
	// LineStep is a step of tick Tick.
	LineStep LineKind = 1
	// LineTick closes tick Tick, and may carry its Hash and its Time; or it
	// carries the late hash of an earlier tick.
	LineTick LineKind = 2
	// LineMark, LineReport, LineGap and LinePlayer carry what is named so.
	LineMark   LineKind = 3
	LineReport LineKind = 4
	LineGap    LineKind = 5
	LinePlayer LineKind = 6
	// LineKeyframe carries a whole keyframe, joined from its lines.
	LineKeyframe LineKind = 7
	// LineEnd ends the session.
	LineEnd LineKind = 8
)

// Line is one line of JSON lines. Its slices are valid until the next one.
type Line struct {
	Kind LineKind
	// Number counts lines from 1, Offset is the place of the line's first
	// byte.
	Number, Offset int64

	Tick     Tick
	Step     Step
	Hash     []byte
	Time     int64
	HasTime  bool
	Mark     Mark
	Report   Report
	Gap      Gap
	Player   PlayerEvent
	Keyframe Keyframe
	End      End
}

// lineKey is a set of keys of one line.
type lineKey uint32

const (
	keyT lineKey = 1 << iota
	keyP
	keyC
	keyA
	keyHash
	keyTime
	keyMark
	keyPlayer
	keyText
	keyOf
	keyH
	keyJoin
	keyLeave
	keyName
	keyTeam
	keyObserver
	keyGap
	keyReason
	keyByRecorder
	keyKeyframe
	keySize
	keyOffset
	keyState
	keyEnd
	keyNextTick
	keyTicks
	keySteps
	keyHashes

	// keyCode is the whole of a code line, which is read by itself.
	keyCode
)

var lineKeys = [...]string{"t", "p", "c", "a", "hash", "time", "mark", "player", "text", "of", "h", "join", "leave", "name", "team", "observer",
	"gap", "reason", "by_recorder", "keyframe", "size", "offset", "state", "end", "next_tick", "ticks", "steps", "hashes"}

// lineForms tell the kinds of lines apart: by a key that only they have, the
// keys that must be there and those that may.
var lineForms = [...]struct {
	kind           LineKind
	has, must, may lineKey
}{
	{LineStep, keyC, keyT | keyC, keyP | keyA},
	{LineReport, keyH, keyT | keyP | keyOf | keyH, 0},
	{LineMark, keyMark, keyT | keyMark, keyPlayer | keyText},
	{LinePlayer, keyJoin, keyT | keyJoin, keyName | keyTeam | keyObserver},
	{LinePlayer, keyLeave, keyT | keyLeave, 0},
	{LineGap, keyGap, keyGap, keyReason | keyByRecorder},
	{LineKeyframe, keyKeyframe, keyKeyframe | keyState, keySize | keyOffset},
	{LineEnd, keyEnd, keyEnd | keyNextTick | keyTicks | keySteps | keyHashes, keyReason},
	{LineTick, keyT, keyT, keyHash | keyTime},
}

// lineParser reads the keys of one line into its fields.
type lineParser struct {
	j    jsonText
	have lineKey
	line *Line

	player Value
	args   []Value // behind one free place for the player
	part   KeyframePart
	code   CodeInfo
}

// parse reads one line; hashBytes is the width of the session's hashes.
func (p *lineParser) parse(b []byte, line *Line, hashBytes int) error {
	*line = Line{Number: line.Number, Offset: line.Offset}
	p.j, p.have, p.line = jsonText{b: b}, 0, line
	p.args = append(p.args[:0], Value{})
	p.part = KeyframePart{}
	j := &p.j
	j.need('{')
	for first := true; j.more('}', first); first = false {
		at := j.at
		key := j.key()
		if first && key == "code" {
			j.at = 0
			p.code, p.have = j.codeLine(), keyCode
			break
		}
		if !p.member(key, hashBytes) {
			j.at = at
			j.fail("key %.40q: no line has it", key)
		}
	}
	if err := j.end(); err != nil {
		return err
	}
	return p.classify()
}

// member reads the value of one key; false where no line has the key.
func (p *lineParser) member(key string, hashBytes int) bool {
	bit := keyBit(key)
	if bit == 0 {
		return false
	}
	if p.have&bit != 0 {
		p.j.fail("key %q stands twice", key)
	}
	p.have |= bit
	j, l := &p.j, p.line
	switch bit {
	case keyT:
		l.Tick = j.tick(key)
	case keyP:
		p.player = j.value()
	case keyC:
		l.Step.Code = uint16(j.uint(key, math.MaxUint16))
	case keyA:
		p.arguments()
	case keyHash:
		l.Hash = j.hex(key, hashBytes)
	case keyTime:
		l.Time, l.HasTime = int64(j.uint(key, maxTime)), true
	default:
		p.rare(bit, key)
	}
	return true
}

// rare reads the keys of lines that are no steps and no hashes.
func (p *lineParser) rare(bit lineKey, key string) {
	j, l := &p.j, p.line
	switch bit {
	case keyMark:
		l.Mark.Kind = j.text(key)
	case keyPlayer:
		l.Mark.Player = j.uint(key, math.MaxUint64)
	case keyText:
		l.Mark.Text = j.text(key)
	case keyOf:
		l.Report.Of = j.tick(key)
	case keyH:
		l.Report.Hash = j.hex(key, 0)
	case keyJoin, keyLeave:
		l.Player.ID, l.Player.Leave = j.uint(key, math.MaxUint64), bit == keyLeave
	case keyName:
		l.Player.Name = j.text(key)
	case keyTeam:
		l.Player.Team = j.text(key)
	case keyObserver:
		l.Player.Observer = j.bool()
	case keyGap:
		p.gap()
	case keyByRecorder:
		l.Gap.ByRecorder = j.bool()
	case keyReason:
		l.Gap.Reason = j.text(key)
		l.End.Reason = l.Gap.Reason
	case keyKeyframe:
		p.part.NextTick = j.tick(key)
	case keySize:
		p.part.Total = j.uint(key, MaxKeyframe)
	case keyOffset:
		p.part.Offset = j.uint(key, MaxKeyframe)
	case keyState:
		p.part.Data = j.base64()
	case keyEnd:
		p.end()
	case keyNextTick:
		l.End.NextTick = j.tick(key)
	case keyTicks:
		l.End.Ticks = j.uint(key, math.MaxUint64)
	case keySteps:
		l.End.Steps = j.uint(key, math.MaxUint64)
	case keyHashes:
		l.End.Hashes = j.uint(key, math.MaxUint64)
	}
}

// keyBit finds a key.
func keyBit(key string) lineKey {
	if len(key) == 1 {
		switch key[0] {
		case 't':
			return keyT
		case 'p':
			return keyP
		case 'c':
			return keyC
		case 'a':
			return keyA
		}
	}
	for i, k := range lineKeys {
		if k == key {
			return 1 << i
		}
	}
	return 0
}

func (p *lineParser) arguments() {
	j := &p.j
	j.need('[')
	for first := true; j.more(']', first); first = false {
		p.args = append(p.args, j.value())
	}
}

func (p *lineParser) gap() {
	j, g := &p.j, &p.line.Gap
	j.need('[')
	g.First = j.tick("a gap's first tick")
	j.need(',')
	g.Last = j.tick("a gap's last tick")
	j.need(']')
	if g.Last < g.First {
		j.fail("gap from tick %d to %d", g.First, g.Last)
	}
}

func (p *lineParser) end() {
	switch s := p.j.str(); s {
	case EndSealed.String():
		p.line.End.State = EndSealed
	case EndUnfinished.String():
		p.line.End.State = EndUnfinished
	default:
		p.j.fail("end %.40q: use %v or %v", s, EndSealed, EndUnfinished)
	}
}

// classify decides what the line is by its keys.
func (p *lineParser) classify() error {
	if p.have == keyCode {
		return nil
	}
	for _, form := range lineForms {
		if p.have&form.has == 0 {
			continue
		}
		if missing := form.must &^ p.have; missing != 0 {
			return fmt.Errorf("key %q is missing", missing.first())
		}
		if extra := p.have &^ (form.must | form.may); extra != 0 {
			return fmt.Errorf("key %q does not go with %q", extra.first(), form.has.first())
		}
		p.line.Kind = form.kind
		return p.complete()
	}
	return fmt.Errorf("no key says what the line is")
}

func (k lineKey) first() string { return lineKeys[bits.TrailingZeros32(uint32(k))] }

// complete fills in what more than one key gives.
func (p *lineParser) complete() error {
	l := p.line
	switch l.Kind {
	case LineMark:
		l.Mark.Tick = l.Tick
	case LinePlayer:
		l.Player.Tick = l.Tick
	case LineReport:
		l.Report.At = l.Tick
		peer, ok := p.player.Uint64()
		if !ok {
			return fmt.Errorf("p is %.40s: a report's peer is an integer from 0 on", p.player.String())
		}
		l.Report.Peer = peer
	case LineGap:
		l.Tick = l.Gap.First
	case LineKeyframe:
		l.Tick = p.part.NextTick
		if p.have&(keySize|keyOffset) == 0 {
			p.part.Total = uint64(len(p.part.Data))
		}
	}
	return nil
}

// lineSource reads lines of bounded length.
type lineSource struct {
	src        io.Reader
	buf        []byte
	start, end int
	eof        bool

	at, number int64 // of the last line: its place, and its number from 1
	size       int64 // bytes up to and with the last line
}

// next gives the next line without its end, and whether it had one. io.EOF
// comes after the last one.
func (s *lineSource) next() (line []byte, whole bool, err error) {
	for scanned := 0; ; {
		if i := bytes.IndexByte(s.buf[s.start+scanned:s.end], '\n'); i >= 0 {
			if scanned+i > MaxJSONLine {
				return nil, false, s.tooLong()
			}
			return s.take(scanned + i + 1), true, nil
		}
		if scanned = s.end - s.start; scanned > MaxJSONLine {
			return nil, false, s.tooLong()
		}
		if s.eof {
			break
		}
		if err := s.fill(); err != nil {
			return nil, false, err
		}
	}
	if s.start == s.end {
		return nil, false, io.EOF
	}
	return s.take(s.end - s.start), false, nil
}

func (s *lineSource) tooLong() error {
	return fmt.Errorf("%w: line %d at offset %d has more than %d bytes", ErrLimit, s.number+1, s.size, MaxJSONLine)
}

// take moves over the next n bytes, which are one line.
func (s *lineSource) take(n int) []byte {
	line := s.buf[s.start : s.start+n]
	s.start += n
	s.at, s.number, s.size = s.size, s.number+1, s.size+int64(n)
	return bytes.TrimSuffix(line, []byte("\n"))
}

// back puts the last line back, once.
func (s *lineSource) back() {
	n := s.size - s.at
	s.start -= int(n)
	s.number, s.size = s.number-1, s.at
}

// fill reads more behind what is there.
func (s *lineSource) fill() error {
	if s.start > 0 {
		copy(s.buf, s.buf[s.start:s.end])
		s.start, s.end = 0, s.end-s.start
	}
	if s.end == len(s.buf) {
		grown := make([]byte, max(64<<10, 2*len(s.buf)))
		copy(grown, s.buf[:s.end])
		s.buf = grown
	}
	n, err := s.src.Read(s.buf[s.end:])
	s.end += n
	if err == io.EOF {
		s.eof = true
		return nil
	}
	return err
}
