package format

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
)

// RepairRPLY1 reads an RPLY1 file of size bytes and writes one that reads
// without an error. The rules, since RPLY1 proves nothing:
//
//   - Ticks before damage are kept, and ticks behind it where rply1Chain
//     consecutive ticks stand in a row. What a lost write blanked is dropped
//     with the tick that it began in.
//   - Two neighbours in each other's place are put back in order. Of the
//     rest, the most ticks that ascend are kept: a second record of a tick
//     goes, and so does one whose tick number was hit.
//   - A snapshot whose length cannot be right ends where the ticks begin.
//   - A second file that was appended is left out.
//
// The output depends on the input's bytes alone, and repairs to itself.
// Nothing is written to src. An error means that nothing could be kept.
func RepairRPLY1(src io.ReaderAt, size int64, w io.Writer) (*RepairReport, error) {
	f, err := loadRPLY1(src, size)
	if err != nil {
		return nil, err
	}
	r := &rply1Repair{f: f, report: &RepairReport{}}
	if err := r.snapshot(); err != nil {
		return nil, err
	}
	r.collect()
	r.settle()
	return r.report, r.write(w)
}

type rply1Repair struct {
	f       *rply1
	records []rply1Record
	report  *RepairReport
}

func (r *rply1Repair) lose(at, end int, why string, args ...any) {
	r.report.Losses = append(r.report.Losses, Loss{Offset: int64(at), Bytes: int64(end - at), Why: fmt.Sprintf(why, args...)})
}

// snapshot finds the first record where the snapshot's length is wrong.
func (r *rply1Repair) snapshot() error {
	f := r.f
	err := f.checkSnapshot()
	if err == nil {
		return nil
	}
	at, found := f.hunt(rply1HeaderSize)
	if !found {
		return err
	}
	r.lose(rply1StateAt, rply1HeaderSize, "snapshot length %d: taken as %d, up to where the ticks begin", f.header.snapshot, at-rply1HeaderSize)
	f.first, f.header.snapshot = at, uint32(at-rply1HeaderSize)
	return nil
}

// collect reads the records of every stretch that can be trusted.
func (r *rply1Repair) collect() {
	f := r.f
	at := f.first
	for at < len(f.b) {
		start := len(r.records)
		at = r.stretch(at)
		if at == len(f.b) {
			return
		}
		if f.secondHeader(at) {
			r.lose(at, len(f.b), "a second file begins here")
			return
		}
		at = r.resume(at, r.records[start:])
	}
}

// stretch takes records from offset at on and returns where they end to
// follow each other.
func (r *rply1Repair) stretch(at int) int {
	var last rply1Record
	for first := true; ; first = false {
		next, fits := r.f.record(at)
		if !fits || !first && !r.f.follows(at, next.tick, last.tick) {
			return at
		}
		r.records = append(r.records, next)
		last, at = next, next.end
	}
}

// resume passes over what stands at offset at, behind the records of
// stretch, and returns where records begin again. The last record may be
// part of the damage.
func (r *rply1Repair) resume(at int, stretch []rply1Record) int {
	f := r.f
	why, lost := f.verdict(r.records, at), at
	if len(stretch) == 0 {
		to, _ := f.hunt(at + 1)
		r.lose(lost, to, "%v", why)
		return to
	}
	last := stretch[len(stretch)-1]
	blanked := f.blankFrom(last, at) < at || len(stretch) == 1 && f.blank(last.at)
	if !blanked && f.readable(at) {
		return at
	}
	to, _ := f.hunt(last.at + rply1RecordSize)
	if blanked || to < at {
		r.records = r.records[:len(r.records)-1]
		lost = last.at
	}
	r.lose(lost, to, "%v", why)
	return to
}

// readable tells whether records stand at offset at, though they do not
// follow: a chain, or all that is left of the file.
func (f *rply1) readable(at int) bool {
	r, ok := f.record(at)
	for i := 1; ok && i < rply1Chain && r.end < len(f.b); i++ {
		next, fits := f.record(r.end)
		ok = fits && next.tick > r.tick && next.tick-r.tick <= rply1MaxJump
		r = next
	}
	return ok
}

// settle picks the records that are written, in order, and counts them.
func (r *rply1Repair) settle() {
	r.unswap()
	keep := ascending(r.records)
	r.proveJumps(keep)
	kept := r.records[:0]
	var lost []rply1Record
	for i, rec := range r.records {
		if keep[i] {
			kept = append(kept, rec)
		} else {
			lost = append(lost, rec)
		}
	}
	r.records = kept
	r.loseRecords(lost)
	slices.SortStableFunc(r.report.Losses, func(a, b Loss) int { return cmp.Compare(a.Offset, b.Offset) })
	r.count()
}

// unswap puts two neighbours in order that stand in each other's place.
func (r *rply1Repair) unswap() {
	list := r.records
	for i := 0; i+1 < len(list); i++ {
		a, b := list[i], list[i+1]
		if a.tick == b.tick+1 && (i == 0 || list[i-1].tick < b.tick) && (i+2 == len(list) || list[i+2].tick > a.tick) {
			list[i], list[i+1] = b, a
			r.report.Mended = append(r.report.Mended, fmt.Sprintf("tick %d stood behind tick %d at offset %d: put in order", b.tick, a.tick, a.at))
		}
	}
}

// ascending marks a longest run of records whose ticks ascend; of equal
// ticks the first.
func ascending(list []rply1Record) []bool {
	keep := make([]bool, len(list))
	before := make([]int, len(list)) // the record before it in its run
	var ends []int                   // of the runs by length: the smallest last tick
	for i, rec := range list {
		n, equal := slices.BinarySearchFunc(ends, rec.tick, func(e int, tick uint32) int { return cmp.Compare(list[e].tick, tick) })
		switch {
		case equal:
			continue
		case n == len(ends):
			ends = append(ends, i)
		default:
			ends[n] = i
		}
		before[i] = -1
		if n > 0 {
			before[i] = ends[n-1]
		}
	}
	if len(ends) == 0 {
		return keep
	}
	for i := ends[len(ends)-1]; i >= 0; i = before[i] {
		keep[i] = true
	}
	return keep
}

// proveJumps drops the records that a reader would take for damage: behind a
// long jump without a chain.
func (r *rply1Repair) proveJumps(keep []bool) {
	var at []int
	for i := range keep {
		if keep[i] {
			at = append(at, i)
		}
	}
	last := -1
	for n, i := range at {
		if last >= 0 && r.records[i].tick-r.records[last].tick > rply1MaxJump && !r.proven(at[n:]) {
			keep[i] = false
			continue
		}
		last = i
	}
}

// proven tells whether the first of the records, by their places in the
// list, begins a chain.
func (r *rply1Repair) proven(at []int) bool {
	if len(at) < rply1Chain {
		return false
	}
	for i := 1; i < rply1Chain; i++ {
		if r.records[at[i]].tick-r.records[at[i-1]].tick > rply1MaxJump {
			return false
		}
	}
	return true
}

// loseRecords reports records that were read but not kept, one loss for each
// stretch of neighbours.
func (r *rply1Repair) loseRecords(lost []rply1Record) {
	for i := 0; i < len(lost); {
		first := lost[i]
		last := first
		for i++; i < len(lost) && lost[i].at == last.end; i++ {
			last = lost[i]
		}
		if first == last {
			r.lose(first.at, first.end, "tick %d is out of order", first.tick)
		} else {
			r.lose(first.at, last.end, "ticks %d to %d are out of order", first.tick, last.tick)
		}
	}
}

// count fills in what was kept and what is missing.
func (r *rply1Repair) count() {
	rep := r.report
	rep.Unproven = true
	rep.Ticks = uint64(len(r.records))
	for i, rec := range r.records {
		rep.Steps += uint64(len(r.f.commands(rec)) / rply1CommandSize)
		if i > 0 && rec.tick-r.records[i-1].tick > 1 {
			rep.Gaps = append(rep.Gaps, Gap{First: Tick(r.records[i-1].tick) + 1, Last: Tick(rec.tick) - 1, Reason: rply1Gap, ByRecorder: true})
		}
	}
	rep.Whole = len(rep.Losses) == 0 && len(rep.Mended) == 0 && len(rep.Gaps) == 0
}

func (r *rply1Repair) write(w io.Writer) error {
	out := bufio.NewWriterSize(w, 64<<10)
	out.Write(r.f.header.append(nil))
	out.Write(r.f.snapshot())
	for _, rec := range r.records {
		out.Write(r.f.b[rec.at:rec.end])
	}
	return out.Flush()
}
