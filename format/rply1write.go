package format

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"reflect"
	"strconv"
	"strings"
)

// WriteRPLY1 writes a replay as RPLY1. One that was read from RPLY1 gives
// the same bytes. The error matches ErrLossy where RPLY1 cannot hold
// something, and names it; nothing was written then. That RPLY1 has no place
// for the end mark, nor for the digest, is no reason to refuse.
func WriteRPLY1(w io.Writer, f *File) error {
	lost, err := WriteRPLY1Lossy(io.Discard, f)
	if err != nil {
		return err
	}
	if len(lost) > 0 {
		return fmt.Errorf("%w: RPLY1 has no place for %s", ErrLossy, strings.Join(lost, ", "))
	}
	_, err = WriteRPLY1Lossy(w, f)
	return err
}

// WriteRPLY1Lossy writes what RPLY1 can hold and says what it left out. The
// error matches ErrLossy where the ticks themselves do not fit: nothing was
// written then.
func WriteRPLY1Lossy(w io.Writer, f *File) (lost []string, err error) {
	p := &rply1Plan{f: f, meta: f.sum.Meta}
	p.header = p.origin()
	p.checkMeta()
	p.checkNotes()
	if err := p.checkTicks(); err != nil {
		return nil, err
	}
	if err := p.takeKeyframe(); err != nil {
		return nil, err
	}
	return p.lost, p.write(w)
}

// rply1Plan is how a replay becomes RPLY1: the header, the snapshot, and what
// has no place.
type rply1Plan struct {
	f      *File
	meta   *Metadata
	header rply1Header
	state  []byte
	lost   []string
}

func (p *rply1Plan) lose(what string, args ...any) {
	p.lost = append(p.lost, fmt.Sprintf(what, args...))
}

// origin is the header that the replay came with, or a new one.
func (p *rply1Plan) origin() rply1Header {
	o := p.meta.Origin
	if o.Format == originRPLY1 && len(o.Header) == rply1HeaderSize && bytes.HasPrefix(o.Header, []byte(rply1Magic)) {
		return parseRPLY1Header(o.Header)
	}
	if o.Format != "" {
		p.lose("the %s header", o.Format)
	}
	return rply1Header{proto: 1}
}

// checkMeta fills the header from the metadata, which may have been edited
// since it was read.
func (p *rply1Plan) checkMeta() {
	m := p.meta
	as := p.header.metadata(m.FirstTick)
	as.Origin = m.Origin
	if reflect.DeepEqual(as, m) {
		return
	}
	for _, t := range [...]struct{ name, text string }{{"the session id", m.Session}, {"the game", m.Game}, {"the build", m.Build}, {"the data hash", m.Data}} {
		if t.text != "" {
			p.lose("%s %q", t.name, t.text)
		}
	}
	p.header.seed = m.Seed
	p.takeRate(m.TickRate)
	p.takeStart(m.StartedAt)
	p.takeMap(m.Map)
	p.takeLabels(m.Labels)
	if len(m.Env) > 0 {
		p.lose("%d environment facts", len(m.Env))
	}
	if len(m.Personal) > 0 {
		p.lose("%d personal keys", len(m.Personal))
	}
	if len(m.HashParts) > 0 {
		p.lose("the parts of the state hash")
	}
	if len(m.unknown) > 0 {
		p.lose("%s of newer metadata", plural(len(m.unknown), "byte"))
	}
}

func (p *rply1Plan) takeRate(r Rate) {
	p.header.rate = uint16(min(math.Round(r.Float()), math.MaxUint16))
	if uint64(r.Num) != uint64(p.header.rate)*uint64(r.Den) {
		p.lose("the tick rate %v: whole rates up to %d", r, math.MaxUint16)
	}
}

func (p *rply1Plan) takeStart(micros int64) {
	p.header.start = micros / 1_000_000
	if micros%1_000_000 != 0 {
		p.lose("the start time's %s", plural(micros%1_000_000, "microsecond"))
	}
}

// takeMap reads a map of the form 100x80.
func (p *rply1Plan) takeMap(name string) {
	w, h, _ := strings.Cut(name, "x")
	x, errW := strconv.ParseInt(w, 10, 32)
	y, errH := strconv.ParseInt(h, 10, 32)
	p.header.mapW, p.header.mapH = int32(x), int32(y)
	if name != "" && (errW != nil || errH != nil || fmt.Sprintf("%dx%d", x, y) != name) {
		p.header.mapW, p.header.mapH = 0, 0
		p.lose("the map %q: only WIDTHxHEIGHT", name)
	}
}

// takeLabels reads the number of players from the label that RPLY1's header
// becomes.
func (p *rply1Plan) takeLabels(labels []Label) {
	p.header.players = 0
	for i, l := range labels {
		n, err := strconv.ParseUint(l.Value, 10, 8)
		if i > 0 || l.Key != "players" || err != nil || strconv.Itoa(int(n)) != l.Value {
			p.lose("the label %q", l.Key)
			continue
		}
		p.header.players = uint8(n)
	}
}

// checkNotes lists what a session has besides its ticks.
func (p *rply1Plan) checkNotes() {
	s := p.f.sum
	if b := p.f.book; b != nil && !reflect.DeepEqual(b, rply1Book()) {
		p.lose("the names of the code book")
	}
	for _, n := range [...]struct {
		name  string
		count uint64
	}{{"marks", uint64(len(s.Marks))}, {"joins and leaves of players", uint64(len(s.Players))}, {"peers' reports", s.Reports}} {
		if n.count > 0 {
			p.lose("%d %s", n.count, n.name)
		}
	}
	for _, g := range s.Gaps {
		switch {
		case g.First == p.meta.FirstTick || g.Last+1 == s.NextTick:
			p.lose("the gap of ticks %d to %d before or after all others", g.First, g.Last)
		case g.Reason != rply1Gap || !g.ByRecorder:
			p.lose("the reason of the gap of ticks %d to %d", g.First, g.Last)
		}
	}
	if s.Ticks == 0 && p.meta.FirstTick != 0 {
		p.lose("the first tick %d of a replay without ticks", p.meta.FirstTick)
	}
}

// takeKeyframe takes the state before the first tick.
func (p *rply1Plan) takeKeyframe() error {
	for i, info := range p.f.sum.Keyframes {
		if p.state != nil || info.NextTick != p.meta.FirstTick {
			p.lose("the keyframe before tick %d", info.NextTick)
			continue
		}
		k, err := p.f.Keyframe(i)
		if err != nil {
			return err
		}
		p.state = k.State
	}
	p.header.snapshot = uint32(len(p.state))
	return nil
}

// checkTicks reads every tick and refuses what no record can hold.
func (p *rply1Plan) checkTicks() error {
	var t TickRecord
	var steps StepReader
	jump := rply1Jumps{}
	timed := false
	for r := p.f.Reader(); ; {
		err := r.Next(&t)
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		if err := checkRPLY1Tick(&t, &steps); err != nil {
			return err
		}
		if err := jump.tick(t.Tick); err != nil {
			return err
		}
		timed = timed || t.HasTime
	}
	if timed {
		p.lose("the times of ticks")
	}
	return jump.end()
}

// rply1Jumps finds the gaps that a reader of RPLY1 would take for damage.
type rply1Jumps struct {
	last  Tick
	count int
	proof int // ticks that must follow closely
	from  Tick
}

func (j *rply1Jumps) tick(t Tick) error {
	if j.count > 0 && t-j.last > rply1MaxJump {
		if err := j.end(); err != nil {
			return err
		}
		j.from, j.proof = t, rply1Chain
	}
	j.proof = max(0, j.proof-1)
	j.last = t
	j.count++
	return nil
}

func (j *rply1Jumps) end() error {
	if j.proof > 0 {
		return fmt.Errorf("%w: RPLY1 needs %d ticks in a row after a gap of more than %d ticks: at tick %d", ErrLossy, rply1Chain, rply1MaxJump, j.from)
	}
	return nil
}

func checkRPLY1Tick(t *TickRecord, steps *StepReader) error {
	switch {
	case t.Tick > math.MaxUint32:
		return fmt.Errorf("%w: RPLY1 ends at tick %d: tick %d", ErrLossy, uint32(math.MaxUint32), t.Tick)
	case len(t.Hash) != rply1HashBytes:
		return fmt.Errorf("%w: RPLY1 needs a hash of 8 bytes at every tick: tick %d has %d", ErrLossy, t.Tick, len(t.Hash))
	case t.Steps > math.MaxUint16:
		return fmt.Errorf("%w: RPLY1 holds %d commands a tick: tick %d has %d", ErrLossy, math.MaxUint16, t.Tick, t.Steps)
	}
	var s Step
	steps.Reset(t)
	for steps.Next(&s) {
		if _, err := appendRPLY1Command(nil, &s, t.Tick); err != nil {
			return fmt.Errorf("%w: tick %d, step %d: %w", ErrLossy, t.Tick, s.Index, err)
		}
	}
	return nil
}

// rply1Ranges are the least and the most of each parameter.
var rply1Ranges = [6][2]int64{
	{0, math.MaxUint8}, {0, math.MaxUint32}, {math.MinInt32, math.MaxInt32}, {math.MinInt32, math.MaxInt32}, {0, math.MaxUint32}, {0, math.MaxUint32},
}

// appendRPLY1Command appends a step as one command of a record of tick.
func appendRPLY1Command(dst []byte, s *Step, tick Tick) ([]byte, error) {
	if s.Code > math.MaxUint8 || len(s.Params) < len(rply1Params) || len(s.Params) > len(rply1Ranges) {
		return dst, fmt.Errorf("code %d with %s: RPLY1 has codes up to 255 with player, unit, tx, ty, target", s.Code, plural(len(s.Params), "parameter"))
	}
	v := [6]int64{5: int64(tick)}
	for i, p := range s.Params {
		x, ok := p.Int64()
		if !ok || x < rply1Ranges[i][0] || x > rply1Ranges[i][1] {
			return dst, fmt.Errorf("parameter %d is %.40s: RPLY1 takes an integer from %d to %d", i, p.String(), rply1Ranges[i][0], rply1Ranges[i][1])
		}
		v[i] = x
	}
	if len(s.Params) == 6 && v[5] == int64(tick) {
		return dst, fmt.Errorf("a tick of the command's own that is the record's: leave it out")
	}
	dst = append(dst, byte(v[0]), byte(s.Code))
	for _, x := range v[1:] {
		dst = binary.LittleEndian.AppendUint32(dst, uint32(x))
	}
	return dst, nil
}

func (p *rply1Plan) write(w io.Writer) error {
	out := bufio.NewWriterSize(w, 64<<10)
	out.Write(p.header.append(nil))
	out.Write(p.state)
	var t TickRecord
	var steps StepReader
	var b []byte
	for r := p.f.Reader(); ; {
		err := r.Next(&t)
		if err == io.EOF {
			return out.Flush()
		}
		if err != nil {
			return err
		}
		if b, err = appendRPLY1Record(b[:0], &t, &steps); err != nil {
			return err
		}
		if _, err := out.Write(b); err != nil {
			return err
		}
	}
}

func appendRPLY1Record(dst []byte, t *TickRecord, steps *StepReader) ([]byte, error) {
	le := binary.LittleEndian
	dst = le.AppendUint32(dst, uint32(t.Tick))
	dst = le.AppendUint16(dst, uint16(t.Steps))
	var s Step
	steps.Reset(t)
	for steps.Next(&s) {
		var err error
		if dst, err = appendRPLY1Command(dst, &s, t.Tick); err != nil {
			return dst, err
		}
	}
	return le.AppendUint64(dst, binary.BigEndian.Uint64(t.Hash)), nil
}
