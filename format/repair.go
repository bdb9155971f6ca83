package format

import (
	"errors"
	"fmt"
	"io"
)

// Loss is one stretch of a file that Repair could not keep.
type Loss struct {
	Offset, Bytes int64
	Why           string
}

// RepairReport says what Repair kept and what is lost.
type RepairReport struct {
	// Whole is set where the input was finished and undamaged; the output is
	// then the same bytes.
	Whole bool
	// Chunks, Ticks and Steps count what was kept.
	Chunks       int
	Ticks, Steps uint64
	Losses       []Loss
	// Gaps are the ranges of ticks that are lost for good: those the file
	// declared, and those that Repair had to declare.
	Gaps []Gap
}

// Repair reads an RPLY2 file of size bytes, and writes a finished file with
// every intact chunk that can follow the ones before it. Ticks that are
// lost become declared gaps. Nothing is written to src. The output depends
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
	head := make([]byte, min(size, HeaderSize))
	if err := readFull(src, head, 0); err != nil {
		return nil, err
	}
	if err := CheckHeader(head); err != nil {
		return nil, err
	}
	r := &repairer{scan: scanner{src: src, size: size, at: HeaderSize}, out: out, t: NewTracker(), report: &RepairReport{}}
	r.write(AppendHeader(nil))
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
	seq    uint64
	lost   error // the first loss
	report *RepairReport
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
	r.scan.at = at + 1
	second, err := r.scan.header(at)
	if err != nil {
		return err
	}
	if second {
		r.scan.at = r.scan.size
		r.lose(at, r.scan.at-at, errors.New("a second file begins here"))
		return nil
	}
	found, err := r.scan.hunt()
	if err != nil {
		return err
	}
	if !found {
		r.scan.at = r.scan.size
	}
	r.lose(at, r.scan.at-at, why)
	return nil
}

func (r *repairer) lose(at, bytes int64, why error) {
	if r.lost == nil {
		r.lost = why
	}
	r.report.Losses = append(r.report.Losses, Loss{Offset: at, Bytes: bytes, Why: why.Error()})
}

// keep writes c if it can follow, with a gap in front where ticks are
// missing.
func (r *repairer) keep(c Chunk, at int64) error {
	if c.Type == ChunkEnd || c.Type >= ChunkDigest && c.Type <= ChunkTrailer {
		return nil
	}
	if r.t.meta == nil && c.Type != ChunkMeta {
		return fmt.Errorf("the opening is lost: %w", r.opening(at))
	}
	if r.t.meta != nil && c.Type == ChunkMeta {
		r.scan.at = r.scan.size
		r.lose(at, r.scan.at-at, errors.New("a second session begins here"))
		return nil
	}
	if c.Seq != 0 {
		c.Seq = r.seq + 1
	}
	p, err := r.t.Check(c)
	var order *OrderError
	if errors.As(err, &order) && (c.Type == ChunkTicks || c.Type == ChunkGap) && order.Got > order.Want {
		r.declare(Tick(order.Want), Tick(order.Got)-1)
		p, err = r.t.Check(c)
	}
	if err != nil {
		r.lose(at, r.scan.at-at, err)
		return nil
	}
	r.put(p)
	return nil
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
	r.report.Chunks++
}

func (r *repairer) declare(first, last Tick) {
	g := Gap{First: first, Last: last, ByRecorder: true, Reason: "lost to damage"}
	if p, err := r.t.Check(Chunk{Type: ChunkGap, Body: AppendGap(nil, g)}); err == nil {
		r.put(p)
	}
}

func (r *repairer) finish() (*RepairReport, error) {
	if r.t.meta == nil {
		return nil, fmt.Errorf("the opening is lost: %w", r.opening(r.scan.size))
	}
	footer, err := r.t.Footer(r.out, r.at, EndUnfinished, "repaired: the end, or what was before it, is lost")
	if err != nil {
		return nil, err
	}
	r.write(footer)
	s := r.t.Summary()
	r.report.Ticks, r.report.Steps, r.report.Gaps = s.Ticks, s.Steps, s.Gaps
	return r.report, r.err
}
