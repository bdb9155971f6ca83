package format

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
)

// JSON lines: a header line, code lines, then one line for each step and for
// whatever else a replay holds, in tick order. SPEC.md has the grammar.

// JSONLOptions say how JSON lines are read.
type JSONLOptions struct {
	// PackLists packs, in a line with more arguments than a step holds,
	// every run of two or more integers into one integer list. Without it
	// such a line is an error.
	PackLists bool
	// Width is the width of command codes; 0 means the header's, or 16.
	Width Width
	// Salt stands before the players where the header has none. Nil means
	// one derived from the header, which anyone can guess: give random
	// bytes where redacted names are to stay hidden.
	Salt []byte
}

// JSONLReader reads JSON lines one by one and checks that their ticks
// ascend. A reader that failed stays failed.
type JSONLReader struct {
	lines  lineSource
	parser lineParser
	header *jsonlHeader
	book   *CodeBook
	opts   JSONLOptions

	// named holds the codes that the book has, first those whose first
	// parameter is the player.
	named, first codeSet

	line    Line
	open    Tick   // the tick that is due
	steps   int    // of the open tick
	ticks   uint64 // closed
	ended   bool
	key     *Keyframe // whose lines are being joined
	keySize uint64
	err     error
}

// codeSet is a set of command codes.
type codeSet [1 << 16 / 64]uint64

func (s *codeSet) add(c uint16)      { s[c/64] |= 1 << (c % 64) }
func (s *codeSet) has(c uint16) bool { return s[c/64]>>(c%64)&1 == 1 }

// NewJSONLReader reads the header and the code book. Where the header does
// not say how many code lines follow, or how wide hashes are, all lines are
// looked through first: src is read twice if it can seek, and else kept in
// memory, up to MaxUnwrapped bytes.
func NewJSONLReader(src io.Reader, o JSONLOptions) (*JSONLReader, error) {
	r := &JSONLReader{lines: lineSource{src: src}, opts: o}
	if err := r.readHeader(); err != nil {
		return nil, err
	}
	if err := r.readBook(); err != nil {
		return nil, err
	}
	if r.header.codes == jsonlUnknown || !r.header.hashes {
		if err := r.lookAhead(); err != nil {
			return nil, err
		}
	}
	if o.Width != 0 {
		r.header.meta.Width = o.Width
	}
	if err := r.header.meta.Validate(); err != nil {
		return nil, err
	}
	r.open = r.header.meta.FirstTick
	return r, nil
}

// Meta is what the header says.
func (r *JSONLReader) Meta() *Metadata { return r.header.meta }

// Book is the code book: as the code lines say, or made from the codes that
// the lines use where any has a player; nil where there is none.
func (r *JSONLReader) Book() *CodeBook { return r.book }

// NextTick is the tick behind the lines read so far; after io.EOF, behind
// the last tick.
func (r *JSONLReader) NextTick() Tick {
	if r.steps > 0 {
		return r.open + 1
	}
	return r.open
}

// Salt is what stands before the players.
func (r *JSONLReader) Salt() []byte {
	switch {
	case r.header.salt != nil:
		return r.header.salt
	case r.opts.Salt != nil:
		return r.opts.Salt
	}
	sum := sha256.Sum256(r.header.append(nil))
	return sum[:SaltBytes]
}

func (r *JSONLReader) readHeader() error {
	b, whole, err := r.lines.next()
	if err == io.EOF {
		return notReplay(nil)
	}
	if err != nil {
		return err
	}
	if r.header, err = parseJSONLHeader(b); err == nil {
		return nil
	}
	if !whole && isCut(b) {
		return &TornError{Size: r.lines.size}
	}
	if errors.Is(err, ErrLimit) {
		return fmt.Errorf("line 1: %w", err)
	}
	return fmt.Errorf("%w: line 1 at offset 0: %w", ErrNotReplay, err)
}

// isCut tells whether a header that could not be read only ends too early.
func isCut(b []byte) bool {
	j := jsonText{b: b}
	j.pass(maxJSONDepth)
	return j.cut
}

// readBook reads the code lines behind the header.
func (r *JSONLReader) readBook() error {
	declared := r.header.codes
	if declared >= 0 {
		r.book = &CodeBook{}
	}
	for n := 0; n != declared && declared != noCodes; n++ {
		err := r.parse()
		switch {
		case err == nil && r.parser.have == keyCode:
			r.addCode(r.parser.code)
		case declared < 0 && err != io.EOF:
			r.lines.back()
			return nil
		case declared < 0:
			return nil
		case err != nil && err != io.EOF:
			return err
		default:
			return r.damage("code line %d of %d is due", n+1, declared)
		}
	}
	return nil
}

func (r *JSONLReader) addCode(c CodeInfo) {
	if r.book == nil {
		r.book = &CodeBook{}
	}
	r.book.Codes = append(r.book.Codes, c)
	r.named.add(c.Code)
	if c.PlayerFirst() {
		r.first.add(c.Code)
	}
}

// parse reads the next line that is not empty. io.EOF comes after the last;
// other errors have their place.
func (r *JSONLReader) parse() error {
	for {
		b, whole, err := r.lines.next()
		if err != nil {
			return err
		}
		r.line.Number, r.line.Offset = r.lines.number, r.lines.at
		if len(bytes.TrimSpace(b)) == 0 {
			continue
		}
		err = r.parser.parse(b, &r.line, r.header.meta.HashBytes)
		if err != nil && !whole && r.parser.j.cut {
			return &TornError{Offset: r.line.Offset, Size: r.lines.size, NextTick: r.open, Ticks: r.ticks}
		}
		if err != nil {
			return r.damage("%w", err)
		}
		return nil
	}
}

// damage is an error at the present line. An error among args that says
// more than damage keeps its kind.
func (r *JSONLReader) damage(what string, args ...any) error {
	err := fmt.Errorf(what, args...)
	if errors.Is(err, ErrStep) || errors.Is(err, ErrTickSize) || errors.Is(err, ErrLimit) || errors.Is(err, ErrTotals) {
		return fmt.Errorf("line %d at offset %d: %w", r.line.Number, r.line.Offset, err)
	}
	return &CorruptError{Offset: r.line.Offset, What: fmt.Sprintf("line %d: %v", r.line.Number, err)}
}

// lookAhead finds out from the lines what the header does not say, and goes
// back.
func (r *JSONLReader) lookAhead() error {
	src, at, err := r.rewindable()
	if err != nil {
		return err
	}
	var use jsonlUse
	lines := lineSource{src: io.MultiReader(bytes.NewReader(r.lines.buf[r.lines.start:r.lines.end]), src)}
	if err := use.read(&lines); err != nil {
		return err
	}
	if _, err := src.Seek(at, io.SeekStart); err != nil {
		return err
	}
	if !r.header.hashes {
		r.header.meta.HashBytes = use.hashBytes
	}
	if r.header.codes == jsonlUnknown {
		r.guessCodes(&use)
	}
	return nil
}

// rewindable gives the source as one that can seek, and its place.
func (r *JSONLReader) rewindable() (io.ReadSeeker, int64, error) {
	if s, ok := r.lines.src.(io.ReadSeeker); ok {
		if at, err := s.Seek(0, io.SeekCurrent); err == nil {
			return s, at, nil
		}
	}
	rest, err := io.ReadAll(io.LimitReader(r.lines.src, MaxUnwrapped+1))
	if err != nil {
		return nil, 0, err
	}
	if len(rest) > MaxUnwrapped {
		return nil, 0, fmt.Errorf("%w: more than %d bytes of JSON lines from a pipe: give the header the keys codes and hash_bytes, or read a file", ErrLimit, MaxUnwrapped)
	}
	s := bytes.NewReader(rest)
	r.lines.src = s
	return s, 0, nil
}

// guessCodes makes entries for the codes that have none: their first
// parameter is the player where a line with the code has one.
func (r *JSONLReader) guessCodes(use *jsonlUse) {
	if r.book == nil && use.players == (codeSet{}) {
		return
	}
	for c := range 1 << 16 {
		code := uint16(c)
		if !use.codes.has(code) || r.named.has(code) {
			continue
		}
		info := CodeInfo{Code: code}
		if use.players.has(code) {
			info.Params = []ParamInfo{{Name: playerParam}}
		}
		r.addCode(info)
	}
}

// jsonlUse is what lines show by their use.
type jsonlUse struct {
	codes, players codeSet
	hashBytes      int
}

// read looks through all lines. Those that cannot be read are left to the
// reader.
func (u *jsonlUse) read(lines *lineSource) error {
	var p lineParser
	var l Line
	for {
		b, _, err := lines.next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if p.parse(b, &l, 0) != nil {
			continue
		}
		switch l.Kind {
		case LineStep:
			u.codes.add(l.Step.Code)
			if p.have&keyP != 0 {
				u.players.add(l.Step.Code)
			}
		case LineTick:
			if u.hashBytes == 0 {
				u.hashBytes = len(l.Hash)
			}
		}
	}
}

// Next gives the next line; io.EOF after the last one, a TornError where the
// last one is cut, and else an error that names the line.
func (r *JSONLReader) Next() (*Line, error) {
	for r.err == nil {
		if r.err = r.parse(); r.err != nil {
			break
		}
		var give bool
		if give, r.err = r.accept(); give && r.err == nil {
			return &r.line, nil
		}
	}
	switch {
	case r.err == io.EOF:
		r.err = r.finish()
	case errors.Is(r.err, ErrTorn):
		r.steps = 0 // the open tick may have had more
	}
	return nil, r.err
}

// accept checks that the line can stand here; false keeps it back.
func (r *JSONLReader) accept() (bool, error) {
	l := &r.line
	switch {
	case r.parser.have == keyCode:
		return false, r.damage("a code line stands behind other lines")
	case r.ended:
		return false, r.damage("a line stands behind the end")
	case r.key != nil && l.Kind != LineKeyframe:
		return false, r.damage("the keyframe before tick %d is not whole: its lines must stand together", r.key.NextTick)
	}
	switch l.Kind {
	case LineStep:
		return true, r.step()
	case LineTick:
		return true, r.tick()
	case LineGap:
		return true, r.gap()
	case LineKeyframe:
		return r.keyframe()
	case LineEnd:
		return true, r.end()
	}
	return true, nil
}

// most is how many ticks there can be.
func (r *JSONLReader) most() uint64 {
	if r.header.known {
		return r.header.ticks
	}
	return MaxJSONLTicks
}

// move closes every tick before t, which becomes the open one.
func (r *JSONLReader) move(t Tick) error {
	if t < r.open {
		return r.damage("tick %d out of order: tick %d is due", t, r.open)
	}
	if t > r.open {
		r.ticks += uint64(t - r.open)
		r.open, r.steps = t, 0
	}
	if r.ticks > r.most() {
		return r.pastLast(t)
	}
	return nil
}

func (r *JSONLReader) pastLast(t Tick) error {
	if r.header.known {
		return r.damage("tick %d lies behind the %d ticks of the header", t, r.header.ticks)
	}
	return r.damage("%w: tick %d makes more than %d ticks", ErrLimit, t, MaxJSONLTicks)
}

// enter opens tick t.
func (r *JSONLReader) enter(t Tick) error {
	if err := r.move(t); err != nil {
		return err
	}
	if r.ticks == r.most() {
		return r.pastLast(t)
	}
	return nil
}

func (r *JSONLReader) step() error {
	l := &r.line
	if err := r.enter(l.Tick); err != nil {
		return err
	}
	params, err := r.params()
	if err != nil {
		return err
	}
	r.steps++
	l.Step.Params = params
	return nil
}

// params puts the player in front of the arguments. A code whose first
// parameter is the player has false there where the line has none, and no
// parameter at all where it has no arguments either.
func (r *JSONLReader) params() ([]Value, error) {
	p := &r.parser
	hasPlayer, hasArgs := p.have&keyP != 0, p.have&keyA != 0
	code := r.line.Step.Code
	switch {
	case hasPlayer && !r.first.has(code):
		return nil, r.damage("code %d has p, but its code line has no first parameter named %s", code, playerParam)
	case !r.first.has(code) || !hasPlayer && !hasArgs:
		return r.fit(p.args[1:], 0)
	case !hasPlayer:
		p.player = Bool(false)
	}
	p.args[0] = p.player
	return r.fit(p.args, 1)
}

// fit packs the arguments, which begin at from, where there are too many.
func (r *JSONLReader) fit(params []Value, from int) ([]Value, error) {
	if len(params) <= MaxParams {
		return params, nil
	}
	if !r.opts.PackLists {
		return nil, r.damage("%w: %d parameters, the most is %d: pack runs of integers into lists (--pack-lists)", ErrStep, len(params), MaxParams)
	}
	packed := append(params[:from:from], packLists(params[from:])...)
	if len(packed) > MaxParams {
		return nil, r.damage("%w: %d parameters, %d with runs of integers packed into lists, the most is %d", ErrStep, len(params), len(packed), MaxParams)
	}
	return packed, nil
}

// packLists packs every run of two or more integers into one list.
func packLists(args []Value) []Value {
	var packed []Value
	for i := 0; i < len(args); {
		var run []int64
		for n := i; n < len(args); n++ {
			x, ok := args[n].Int64()
			if !ok {
				break
			}
			run = append(run, x)
		}
		if len(run) < 2 {
			packed = append(packed, args[i])
			i++
			continue
		}
		packed = append(packed, Ints(run))
		i += len(run)
	}
	return packed
}

func (r *JSONLReader) tick() error {
	l := &r.line
	if l.Tick < r.open && l.Hash != nil && !l.HasTime {
		return nil
	}
	if err := r.enter(l.Tick); err != nil {
		return err
	}
	r.open, r.steps = r.open+1, 0
	r.ticks++
	return nil
}

func (r *JSONLReader) gap() error {
	g := r.line.Gap
	if err := r.move(g.First); err != nil {
		return err
	}
	if r.steps > 0 {
		return r.damage("gap from tick %d, which has steps", g.First)
	}
	r.open = g.Last + 1
	return nil
}

// keyframe joins the lines of one keyframe and gives the last of them.
func (r *JSONLReader) keyframe() (bool, error) {
	p := r.parser.part
	if r.key == nil {
		r.key = &Keyframe{NextTick: p.NextTick, State: []byte{}}
		r.keySize = p.Total
	}
	k := r.key
	if p.NextTick != k.NextTick || p.Total != r.keySize || p.Offset != uint64(len(k.State)) || uint64(len(p.Data)) > p.Total-p.Offset {
		return false, r.damage("keyframe of %d bytes at %d of %d before tick %d, due is byte %d of %d before tick %d",
			len(p.Data), p.Offset, p.Total, p.NextTick, len(k.State), r.keySize, k.NextTick)
	}
	k.State = append(k.State, p.Data...)
	if uint64(len(k.State)) < r.keySize {
		if len(p.Data) == 0 {
			return false, r.damage("a keyframe's line without state")
		}
		return false, nil
	}
	r.line.Keyframe, r.key = *k, nil
	return true, nil
}

func (r *JSONLReader) end() error {
	e := r.line.End
	if e.NextTick < r.NextTick() {
		return r.damage("the end before tick %d, but tick %d has lines", e.NextTick, r.NextTick()-1)
	}
	if err := r.move(e.NextTick); err != nil {
		return err
	}
	if e.Ticks != r.ticks || r.header.known && e.Ticks != r.header.ticks {
		return r.damage("%w: ticks: declared %d, there are %d", ErrTotals, e.Ticks, r.ticks)
	}
	r.ended = true
	return nil
}

// finish closes the last tick, and those that only the header knows.
func (r *JSONLReader) finish() error {
	if r.key != nil {
		return r.damage("the keyframe before tick %d is not whole", r.key.NextTick)
	}
	if r.steps > 0 {
		if err := r.move(r.open + 1); err != nil {
			return err
		}
	}
	if r.header.known {
		if err := r.move(r.open + Tick(r.header.ticks-r.ticks)); err != nil {
			return err
		}
	}
	return io.EOF
}
