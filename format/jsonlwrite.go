package format

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"io"
	"reflect"
	"slices"
	"strconv"
)

// jsonlPart is how much of a keyframe stands in one line.
const jsonlPart = 256 << 10

// JSONLWriteOptions say what WriteJSONL writes. The zero value means all of
// the replay.
type JSONLWriteOptions struct {
	// From and To are the first and the last tick; a nil To means the last
	// one there is. A part has a header of its own, and no end line: read
	// back it is a shorter replay. Of marks, reports and keyframes it has
	// those of its ticks, of players all that came up to its end.
	From Tick
	To   *Tick
}

// WriteJSONL writes a replay as JSON lines. ReadJSONL turns them into a
// replay with the same content; the content digest is the same too, where
// all parameters are in their shortest form and the header is not a foreign
// one.
func WriteJSONL(w io.Writer, f *File, o JSONLWriteOptions) error {
	p := &jsonlPrinter{f: f, out: bufio.NewWriterSize(w, 64<<10), notes: noteFeed{f: f}}
	p.cut(o)
	return p.run()
}

// jsonlPrinter prints one replay, or a part of it.
type jsonlPrinter struct {
	f     *File
	out   *bufio.Writer
	b     []byte
	part  bool
	first Tick
	next  Tick // behind the last tick of the part
	gaps  []Gap
	// keyframes are the places of the keyframes by tick: the order in which
	// they came is not part of the content.
	keyframes []int
	notes     noteFeed

	player codeSet // the codes whose first parameter is the player
	steps  StepReader
}

// cut finds the range of ticks.
func (p *jsonlPrinter) cut(o JSONLWriteOptions) {
	s := p.f.sum
	p.first, p.next = max(o.From, s.Meta.FirstTick), s.NextTick
	if o.To != nil && *o.To < p.next {
		p.next = *o.To + 1
	}
	p.next = max(p.next, p.first)
	p.part = p.first != s.Meta.FirstTick || p.next != s.NextTick
	for i := range s.Keyframes {
		p.keyframes = append(p.keyframes, i)
	}
	slices.SortFunc(p.keyframes, func(a, b int) int { return cmp.Compare(s.Keyframes[a].NextTick, s.Keyframes[b].NextTick) })
	for _, g := range s.Gaps {
		g.First, g.Last = max(g.First, p.first), min(g.Last, p.next-1)
		if g.First <= g.Last && p.next > p.first {
			p.gaps = append(p.gaps, g)
		}
	}
}

func (p *jsonlPrinter) run() error {
	if err := p.opening(); err != nil {
		return err
	}
	if err := p.ticks(); err != nil {
		return err
	}
	for _, g := range p.gaps {
		p.gap(g)
	}
	if err := p.notesUntil(p.next, true); err != nil {
		return err
	}
	if e := p.f.sum.End; e != nil && !p.part {
		p.end(e)
	}
	return p.out.Flush()
}

// line writes p.b as one line; a failure stays in p.out.
func (p *jsonlPrinter) line() {
	p.out.Write(append(p.b, '\n'))
	p.b = p.b[:0]
}

func (p *jsonlPrinter) opening() error {
	salt, err := p.f.salt()
	if err != nil {
		return err
	}
	p.b = append(p.b, p.header(salt)...)
	p.line()
	if p.f.book == nil {
		return nil
	}
	for i := range p.f.book.Codes {
		c := &p.f.book.Codes[i]
		if c.PlayerFirst() {
			p.player.add(c.Code)
		}
		p.b = appendCodeLine(p.b, c)
		p.line()
	}
	return nil
}

// header is the line that the replay came with, where that still says what
// the replay holds, and else a new one.
func (p *jsonlPrinter) header(salt []byte) []byte {
	if line := p.f.sum.Meta.Origin; line.Format == originJSONL && !p.part && p.says(line.Header, salt) {
		return line.Header
	}
	meta := *p.f.sum.Meta
	meta.FirstTick = p.first
	h := &jsonlHeader{meta: &meta, known: true, ticks: uint64(p.next - p.first), codes: noCodes, hashes: true, salt: salt}
	for _, g := range p.gaps {
		h.ticks -= uint64(g.Last-g.First) + 1
	}
	if p.f.book != nil {
		h.codes = len(p.f.book.Codes)
	}
	return h.append(nil)
}

// says tells whether a foreign header, read again in front of what is
// printed, gives this replay.
func (p *jsonlPrinter) says(line, salt []byte) bool {
	h, err := parseJSONLHeader(line)
	if err != nil || bytes.ContainsRune(line, '\n') {
		return false
	}
	s := p.f.sum
	if !h.hashes && s.Hashes > 0 {
		h.meta.HashBytes = s.Meta.HashBytes
	}
	codes := noCodes
	if p.f.book != nil {
		codes = len(p.f.book.Codes)
	}
	return reflect.DeepEqual(h.meta, s.Meta) && (h.known && h.ticks == s.Ticks || !h.known && s.End != nil) && (h.codes == codes || h.codes == jsonlUnknown && codes != 0) &&
		bytes.Equal(h.salt, salt)
}

// ticks prints every tick of the range with what stands in front of it.
func (p *jsonlPrinter) ticks() error {
	r := p.f.Reader()
	r.Seek(p.first)
	var t TickRecord
	for {
		err := r.Next(&t)
		if err == io.EOF || err == nil && t.Tick >= p.next {
			return nil
		}
		if err != nil {
			return err
		}
		for len(p.gaps) > 0 && p.gaps[0].Last < t.Tick {
			p.gap(p.gaps[0])
			p.gaps = p.gaps[1:]
		}
		if err := p.notesUntil(t.Tick, false); err != nil {
			return err
		}
		p.tick(&t)
	}
}

func (p *jsonlPrinter) tick(t *TickRecord) {
	var s Step
	p.steps.Reset(t)
	for p.steps.Next(&s) {
		p.step(t.Tick, &s)
	}
	if t.Hash == nil && !t.HasTime {
		return
	}
	p.number(`{"t":`, uint64(t.Tick))
	if t.Hash != nil {
		p.b = appendHex(append(p.b, `,"hash":`...), t.Hash)
	}
	if t.HasTime {
		p.number(`,"time":`, uint64(t.Time))
	}
	p.b = append(p.b, '}')
	p.line()
}

func (p *jsonlPrinter) number(key string, v uint64) {
	p.b = strconv.AppendUint(append(p.b, key...), v, 10)
}

func (p *jsonlPrinter) text(key, s string) {
	p.b = appendJSONString(append(p.b, key...), s)
}

func (p *jsonlPrinter) step(t Tick, s *Step) {
	args := s.Params
	p.number(`{"t":`, uint64(t))
	if p.player.has(s.Code) && len(args) > 0 {
		if !args[0].Equal(Bool(false)) {
			p.b = appendJSONValue(append(p.b, `,"p":`...), args[0])
		}
		args = args[1:]
	}
	p.number(`,"c":`, uint64(s.Code))
	if !p.player.has(s.Code) || len(s.Params) > 0 {
		p.b = append(p.b, `,"a":[`...)
		for i, v := range args {
			if i > 0 {
				p.b = append(p.b, ',')
			}
			p.b = appendJSONValue(p.b, v)
		}
		p.b = append(p.b, ']')
	}
	p.b = append(p.b, '}')
	p.line()
}

func (p *jsonlPrinter) gap(g Gap) {
	p.number(`{"gap":[`, uint64(g.First))
	p.number(",", uint64(g.Last))
	p.b = append(p.b, ']')
	if g.Reason != "" {
		p.text(`,"reason":`, g.Reason)
	}
	if g.ByRecorder {
		p.b = append(p.b, `,"by_recorder":true`...)
	}
	p.b = append(p.b, '}')
	p.line()
}

func (p *jsonlPrinter) end(e *End) {
	p.text(`{"end":`, e.State.String())
	p.number(`,"next_tick":`, uint64(e.NextTick))
	p.number(`,"ticks":`, e.Ticks)
	p.number(`,"steps":`, e.Steps)
	p.number(`,"hashes":`, e.Hashes)
	if e.Reason != "" {
		p.text(`,"reason":`, e.Reason)
	}
	p.b = append(p.b, '}')
	p.line()
}

// notesUntil prints the keyframes, players, marks and reports up to tick t,
// all that are left where last is set.
func (p *jsonlPrinter) notesUntil(t Tick, last bool) error {
	s, n := p.f.sum, &p.notes
	in := func(tick Tick) bool { return !p.part || tick >= p.first && tick < p.next }
	for ; len(p.keyframes) > 0 && (last || s.Keyframes[p.keyframes[0]].NextTick <= t); p.keyframes = p.keyframes[1:] {
		i := p.keyframes[0]
		if next := s.Keyframes[i].NextTick; !in(next) && next != p.next {
			continue
		}
		if err := p.keyframe(i); err != nil {
			return err
		}
	}
	for ; n.player < len(s.Players) && (last || s.Players[n.player].Tick <= t); n.player++ {
		if e := &s.Players[n.player]; !p.part || e.Tick < p.next {
			p.playerEvent(e)
		}
	}
	for ; n.mark < len(s.Marks) && (last || s.Marks[n.mark].Tick <= t); n.mark++ {
		if m := &s.Marks[n.mark]; in(m.Tick) {
			p.mark(m)
		}
	}
	for {
		r, err := n.report()
		if err != nil {
			return err
		}
		if r == nil || !last && r.At > t {
			return nil
		}
		if in(r.At) {
			p.report(r)
		}
		n.reports = n.reports[1:]
	}
}

// noteFeed knows what was printed of a session's lists.
type noteFeed struct {
	f            *File
	player, mark int
	scan         *scanner
	reports      []Report
}

// report gives the next report; nil behind the last one.
func (n *noteFeed) report() (*Report, error) {
	f := n.f
	if n.scan == nil {
		n.scan = &scanner{src: f.src, size: f.data, at: HeaderSize}
		if f.sum.Reports == 0 {
			n.scan.at = f.data
		}
	}
	for len(n.reports) == 0 {
		c, _, err := n.scan.next()
		if err == io.EOF {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		if c.Type != ChunkReports {
			continue
		}
		if n.reports, err = ParseReports(c.Body); err != nil {
			return nil, shift(err, n.scan.at-int64(len(c.Body)))
		}
	}
	return &n.reports[0], nil
}

func (p *jsonlPrinter) keyframe(i int) error {
	k, err := p.f.Keyframe(i)
	if err != nil {
		return err
	}
	for off := 0; off == 0 || off < len(k.State); off += jsonlPart {
		data := k.State[off:min(off+jsonlPart, len(k.State))]
		p.number(`{"keyframe":`, uint64(k.NextTick))
		if len(data) < len(k.State) {
			p.number(`,"size":`, uint64(len(k.State)))
			p.number(`,"offset":`, uint64(off))
		}
		p.b = append(appendBase64(append(p.b, `,"state":`...), data), '}')
		p.line()
	}
	return nil
}

func (p *jsonlPrinter) playerEvent(e *PlayerEvent) {
	if e.Leave {
		p.number(`{"leave":`, e.ID)
		p.number(`,"t":`, uint64(e.Tick))
		p.b = append(p.b, '}')
		p.line()
		return
	}
	p.number(`{"join":`, e.ID)
	p.number(`,"t":`, uint64(e.Tick))
	p.text(`,"name":`, e.Name)
	if e.Team != "" {
		p.text(`,"team":`, e.Team)
	}
	if e.Observer {
		p.b = append(p.b, `,"observer":true`...)
	}
	p.b = append(p.b, '}')
	p.line()
}

func (p *jsonlPrinter) mark(m *Mark) {
	p.text(`{"mark":`, m.Kind)
	p.number(`,"t":`, uint64(m.Tick))
	if m.Player != 0 {
		p.number(`,"player":`, m.Player)
	}
	if m.Text != "" {
		p.text(`,"text":`, m.Text)
	}
	p.b = append(p.b, '}')
	p.line()
}

func (p *jsonlPrinter) report(r *Report) {
	p.number(`{"t":`, uint64(r.At))
	p.number(`,"p":`, r.Peer)
	p.number(`,"of":`, uint64(r.Of))
	p.b = appendHex(append(p.b, `,"h":`...), r.Hash)
	p.b = append(p.b, '}')
	p.line()
}

// salt finds what stands before the players; nil where there are none.
func (f *File) salt() ([]byte, error) {
	s := scanner{src: f.src, size: f.data, at: HeaderSize}
	for {
		c, _, err := s.next()
		if errors.Is(err, io.EOF) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		if c.Type == ChunkPlayers {
			salt, _, err := ParsePlayers(c.Body)
			return bytes.Clone(salt), err
		}
	}
}
