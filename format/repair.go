package format

import (
	"errors"
	"fmt"
	"io"
	"strings"
)

// Loss is one stretch of a file that Repair could not keep.
type Loss struct {
	Offset, Bytes int64
	Why           string
}

// RepairReport says what Repair kept and what is lost.
type RepairReport struct {
	// Whole is set where nothing is lost of the content of a session that had
	// ended: the output is what its writer left, or meant to leave where only
	// the footer or the file header was hurt.
	Whole bool
	// Unproven is set for a format without checksums and an end mark: whole
	// then only means that nothing wrong was found.
	Unproven bool
	// Chunks, Ticks and Steps count what was kept.
	Chunks       int
	Ticks, Steps uint64
	Losses       []Loss
	// Mended says what was put right without a loss.
	Mended []string
	// Gaps are the ranges of ticks that are lost for good: those the file
	// declared, and those that Repair had to declare.
	Gaps []Gap
}

// Repair reads an RPLY2 file of size bytes, and writes a finished file with
// every intact chunk that can follow the ones before it. Ticks that are
// lost become declared gaps. What had been sealed is sealed again only where
// its digest, or where that is lost its counts, agree. Nothing is written to
// src. The output depends
// on the input's bytes alone, and repairs to itself.
//
// An error means that nothing could be kept, for the file's opening is
// lost; it matches ErrNotReplay, ErrNewer, ErrTorn or ErrCorrupt, or comes
// from reading or writing.
func Repair(src io.ReaderAt, size int64, out ReplayFile) (*RepairReport, error) {
	if f, err := whole(src, size); err == nil {
		_, err := io.Copy(out, io.NewSectionReader(src, 0, size))
		s := f.sum
		return &RepairReport{Whole: true, Ticks: s.Ticks, Steps: s.Steps, Gaps: s.Gaps}, err
	}
	r := &repairer{scan: scanner{src: src, size: size, at: HeaderSize}, out: out, t: NewTracker(), report: &RepairReport{}}
	r.t.archives = &archiveReader{}
	r.t.listLeaves()
	if err := r.header(); err != nil {
		return nil, err
	}
	if err := r.run(); err != nil {
		return nil, err
	}
	return r.finish()
}

// whole opens a finished file and checks all of it.
func whole(src io.ReaderAt, size int64) (*File, error) {
	f, err := NewFile(src, size)
	if err != nil {
		return nil, err
	}
	if f.Source != "rply2" || f.Wrapping != "" || f.sum.End == nil {
		return nil, errors.New("not a finished RPLY2 file")
	}
	_, err = f.Check()
	return f, err
}

type repairer struct {
	scan   scanner
	out    ReplayFile
	at     int64
	err    error
	t      *Tracker
	seq    uint64 // of the last stream chunk written
	input  uint64 // the same chunk's in the input
	lost   error  // the first loss
	part   bool   // something before the end is lost
	report *RepairReport

	// end and sealed are what the input says about the whole session.
	end        *End
	sealed     *sealedDigest
	sealedAt   int64
	leaves     bool // it has a leaves chunk
	signatures []signaturePlace
}

// signaturePlace is a signature of the input, and its chunk.
type signaturePlace struct {
	Signature
	at, bytes int64
}

// header writes a new file header. A damaged one is no loss of content, if
// its magic is there.
func (r *repairer) header() error {
	head := make([]byte, min(r.scan.size, HeaderSize))
	if err := readFull(r.scan.src, head, 0); err != nil {
		return err
	}
	if err := CheckHeader(head); errors.Is(err, ErrCorrupt) {
		r.lose(0, HeaderSize, err)
		r.part = false
	} else if err != nil {
		return err
	}
	r.write(AppendHeader(nil))
	return r.err
}

func (r *repairer) write(b []byte) {
	if r.err != nil {
		return
	}
	if _, r.err = r.out.Write(b); r.err == nil {
		r.at += int64(len(b))
	}
}

// run keeps what it can, chunk by chunk. The input's own footer is not
// copied: finish makes a new one.
func (r *repairer) run() error {
	for r.err == nil {
		c, at, err := r.scan.next()
		switch {
		case err == io.EOF:
			return r.err
		case err != nil && !IsDamage(err):
			return err
		case errors.Is(err, ErrNewer):
			return err
		case err != nil:
			if err := r.skip(at, err); err != nil {
				return err
			}
		default:
			if err := r.keep(c, at); err != nil {
				return err
			}
		}
	}
	return r.err
}

// skip passes over damage to the next whole chunk, or the end.
func (r *repairer) skip(at int64, why error) error {
	second, err := r.scan.header(at)
	if err != nil {
		return err
	}
	if second {
		r.scan.at = r.scan.size
		r.lose(at, r.scan.at-at, errors.New("a second file begins here"))
		return nil
	}
	if err := r.scan.resync(why); err != nil {
		return err
	}
	r.lose(at, r.scan.at-at, why)
	return nil
}

func (r *repairer) lose(at, bytes int64, why error) {
	if r.lost == nil {
		r.lost = why
	}
	r.part = r.part || r.end == nil
	r.report.Losses = append(r.report.Losses, Loss{Offset: at, Bytes: bytes, Why: why.Error()})
}

// keep writes c if it can follow, with a gap in front where ticks are
// missing.
func (r *repairer) keep(c Chunk, at int64) error {
	size := r.scan.at - at
	if r.t.meta == nil && c.Type != ChunkMeta {
		r.restoreMeta()
	}
	switch {
	case r.t.meta == nil && c.Type != ChunkMeta:
		return fmt.Errorf("the opening is lost: %w", r.opening(at))
	case r.t.meta != nil && c.Type == ChunkMeta:
		r.scan.at = r.scan.size
		r.lose(at, r.scan.at-at, errors.New("a second session begins here"))
	case r.end != nil && c.Type < ChunkDigest:
		r.lose(at, size, fmt.Errorf("%w: %v chunk after the end", ErrOrder, c.Type))
	case c.Type == ChunkEnd:
		r.keepEnd(c, at)
	case c.Type == ChunkDigest, c.Type == ChunkSparse:
		r.keepDigest(c, at)
	case c.Type == ChunkSignature:
		r.keepSignature(c, at)
	case c.Type.ofFooter():
		r.leaves = r.leaves || c.Type == ChunkLeaves
	case !c.Type.holdsTicks() && c.Seq != 0 && c.Seq <= r.input:
		r.lose(at, size, &OrderError{What: "chunk", Want: r.input + 1, Got: c.Seq})
	default:
		r.keepContent(c, at)
	}
	return nil
}

// keepContent keeps a chunk of the content. Chunks that were lost before it
// leave no hole in the sequence numbers.
func (r *repairer) keepContent(c Chunk, at int64) {
	input := c.Seq
	if c.Seq != 0 {
		c.Seq = r.seq + 1
	}
	p, err := r.t.Check(c)
	var order *OrderError
	if errors.As(err, &order) && (c.Type.holdsTicks() || c.Type == ChunkGap) && order.Got > order.Want {
		r.declare(Tick(order.Got) - 1)
		p, err = r.t.Check(c)
	}
	if err != nil {
		r.lose(at, r.scan.at-at, err)
		if c.Type == ChunkHashes {
			r.keepHashes(c)
		}
		return
	}
	r.put(p)
	r.report.Chunks++
	r.input = max(r.input, input)
}

// keepEnd takes the input's word for how the session ended, and for ticks
// that are missing before the end. Whether the rest of it holds is for
// finish to decide.
func (r *repairer) keepEnd(c Chunk, at int64) {
	end, err := ParseEnd(c.Body)
	if err != nil {
		r.lose(at, r.scan.at-at, err)
		return
	}
	if end.NextTick > r.t.totals.NextTick {
		r.declare(end.NextTick - 1)
	}
	r.end = &end
}

// keepDigest remembers the digest that the input was sealed with.
func (r *repairer) keepDigest(c Chunk, at int64) {
	if d, err := sealedBy(c); err == nil && r.sealed == nil && r.end != nil {
		r.sealed, r.sealedAt = &d, at
	}
}

// keepSignature remembers a signature. Whether it still holds is for finish to
// decide.
func (r *repairer) keepSignature(c Chunk, at int64) {
	g, err := parseSignature(c.Body)
	if err != nil {
		r.lose(at, r.scan.at-at, err)
		return
	}
	if len(r.signatures) < MaxSignatures {
		r.signatures = append(r.signatures, signaturePlace{g, at, r.scan.at - at})
	}
}

// restoreMeta takes the metadata from the summary, which repeats them.
func (r *repairer) restoreMeta() {
	f := File{src: r.scan.src, size: r.scan.size}
	if f.readFooter() != nil {
		return
	}
	if p, err := r.t.Check(Chunk{Type: ChunkMeta, Body: AppendMeta(nil, f.sum.Meta)}); err == nil {
		r.put(p)
		r.report.Mended = append(r.report.Mended, "metadata: taken from the summary")
	}
}

// keepHashes keeps those of a chunk's late hashes whose ticks are there.
func (r *repairer) keepHashes(c Chunk) {
	hashes, err := ParseHashes(c.Body, r.t.meta.HashBytes)
	if err != nil {
		return
	}
	var kept []TickHash
	for _, h := range hashes {
		one := Chunk{Type: ChunkHashes, Seq: c.Seq, Body: AppendHashes(nil, []TickHash{h})}
		if _, err := r.t.Check(one); err == nil {
			kept = append(kept, h)
		}
	}
	if len(kept) == 0 {
		return
	}
	c.Body = AppendHashes(nil, kept)
	if p, err := r.t.Check(c); err == nil {
		r.put(p)
		r.report.Chunks++
	}
}

// opening says why nothing could be kept.
func (r *repairer) opening(at int64) error {
	if r.lost != nil {
		return r.lost
	}
	return &CorruptError{Offset: at, What: "the metadata is missing"}
}

func (r *repairer) put(p Parsed) {
	if p.Chunk.Seq != 0 {
		r.seq = p.Chunk.Seq
	}
	r.t.Apply(p, r.at)
	r.write(AppendChunk(nil, p.Chunk.Type, p.Chunk.Seq, p.Chunk.Body))
}

// declare fills the ticks from the due one up to last with a gap.
func (r *repairer) declare(last Tick) {
	g := Gap{First: r.t.totals.NextTick, Last: last, ByRecorder: true, Reason: "lost to damage"}
	if p, err := r.t.Check(Chunk{Type: ChunkGap, Body: AppendGap(nil, g)}); err == nil {
		r.put(p)
	}
}

func (r *repairer) finish() (*RepairReport, error) {
	if r.t.meta == nil {
		return nil, fmt.Errorf("the opening is lost: %w", r.opening(r.scan.size))
	}
	root, err := r.t.contentDigest(r.out, r.at)
	if err != nil {
		return nil, err
	}
	end := End{State: EndUnfinished, Reason: "repaired: the end, or what was before it, is lost"}
	r.restoreEnd(root)
	if r.report.Whole = r.whole(root); r.report.Whole {
		end = *r.end
	}
	footer, err := r.t.FooterWith(r.out, r.at, end.State, end.Reason,
		FooterOptions{Leaves: r.leaves, Signatures: r.holding(NewStatement(end.State, root, r.t.meta))})
	if err != nil {
		return nil, err
	}
	r.write(footer)
	s := r.t.Summary()
	r.report.Ticks, r.report.Steps, r.report.Gaps = s.Ticks, s.Steps, s.Gaps
	return r.report, r.err
}

// restoreEnd takes the end from a signature, which covers counts and state:
// where one holds over what was kept, all is there.
func (r *repairer) restoreEnd(root Digest) {
	for _, g := range r.signatures {
		for _, state := range [...]EndState{EndSealed, EndUnfinished} {
			if r.end == nil && NewStatement(state, root, r.t.meta).Holds(g.Signature) {
				r.end, r.part = &End{State: state, Totals: r.t.totals}, false
				r.report.Mended = append(r.report.Mended, "end: taken from what was signed, but for its reason")
			}
		}
	}
}

// holding gives the signatures over s. The others are lost: they are over what
// there was before the damage.
func (r *repairer) holding(s Statement) (list []Signature) {
	for _, g := range r.signatures {
		if s.Holds(g.Signature) {
			list = append(list, g.Signature)
			continue
		}
		r.report.Losses = append(r.report.Losses, Loss{Offset: g.at, Bytes: g.bytes,
			Why: fmt.Sprintf("signature by key %s: it is not over what could be kept", g.Key.ID())})
	}
	return list
}

// whole tells whether the output has all that the session had at its end:
// its digest says so, or where that is lost, its counts.
func (r *repairer) whole(root Digest) bool {
	if r.end == nil || r.t.CheckTotals(r.end.Totals) != nil {
		return false
	}
	if r.sealed == nil {
		return !r.part
	}
	why := r.t.content.differs(*r.sealed, root)
	if why != "" && !r.part {
		r.lose(r.sealedAt, 0, errors.New(why))
	}
	return why == ""
}

// RepairAny repairs a file of either binary format: Repair or RepairRPLY1. A
// wrapped file has to be unpacked first, since its damage is that of the
// wrapping.
func RepairAny(src io.ReaderAt, size int64, out ReplayFile) (*RepairReport, error) {
	head := make([]byte, min(size, HeaderSize))
	if err := readFull(src, head, 0); err != nil {
		return nil, err
	}
	if name := wrapping(head); name != "" {
		return nil, fmt.Errorf("%w: it is wrapped in %s: unpack it, then repair what is inside", ErrNotReplay, name)
	}
	if len(head) > 0 && strings.HasPrefix(rply1Magic, string(head[:min(len(head), len(rply1Magic))])) {
		return RepairRPLY1(src, size, out)
	}
	return Repair(src, size, out)
}
