package recorder

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// segment is one file of the journal. Its size never changes.
type segment struct {
	file File
	name string
	size int64
	// epoch, first and batch are the header's; all are 0 in a segment without
	// one.
	epoch, first, batch uint64
	// end is the sequence number behind the last record, once it is closed.
	end uint64
	// at is where the next write goes.
	at int64
	// acked is set once it holds a record that was made durable.
	acked bool
}

const segmentPrefix = "segment-"

func segmentName(n int) string { return fmt.Sprintf(segmentPrefix+"%06d", n) }

// openSegments opens what the folder holds and reads the headers. next is a
// number above that of every file.
func openSegments(disk FS, dir string) (segs []*segment, next int, err error) {
	names, err := disk.List(dir)
	if err != nil {
		return nil, 0, err
	}
	for _, name := range names {
		var n int
		if _, err := fmt.Sscanf(strings.TrimPrefix(name, segmentPrefix), "%d", &n); err != nil || name != segmentName(n) {
			continue
		}
		s, err := openSegment(disk, filepath.Join(dir, name))
		if err != nil {
			closeSegments(segs)
			return nil, 0, err
		}
		segs, next = append(segs, s), max(next, n+1)
	}
	return segs, next, nil
}

func openSegment(disk FS, name string) (*segment, error) {
	f, err := disk.OpenFile(name, false)
	if err != nil {
		return nil, err
	}
	s := &segment{file: f, name: name}
	if s.size, err = f.Size(); err == nil && s.size >= pageSize {
		head := make([]byte, pageSize)
		if err = readFull(f, head, 0); err == nil {
			s.epoch, s.first, s.batch, _ = parseSegmentHeader(head)
		}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return s, nil
}

func closeSegments(segs []*segment) error {
	var errs []error
	for _, s := range segs {
		errs = append(errs, s.file.Close())
	}
	return errors.Join(errs...)
}

// newSegment makes a segment full of zeros: its place on the disk is taken
// for good, and writing it later changes no file's size.
func newSegment(disk FS, dir, base string, size int64) (*segment, error) {
	name := filepath.Join(dir, base)
	f, err := disk.OpenFile(name, true)
	if err != nil {
		return nil, err
	}
	zeros := make([]byte, min(size, writePiece))
	for at := int64(0); at < size && err == nil; at += int64(len(zeros)) {
		_, err = f.WriteAt(zeros[:min(int64(len(zeros)), size-at)], at)
	}
	if err == nil {
		err = errors.Join(f.Sync(), disk.SyncDir(dir))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("making journal segment %s of %d bytes: %w", name, size, err), f.Close(), disk.Remove(name))
	}
	return &segment{file: f, name: name, size: size}, nil
}

// walked is what walk found.
type walked struct {
	// next is the sequence number behind the last record.
	next uint64
	// lost counts the records that are missing before a later one. The disk
	// lost them after it had called them safe.
	lost uint64
}

// walk reads the records with sequence numbers from (included) to to (not
// included) in their order, whatever the order of segs. A record that was
// written again in a later segment, because its first write failed, is read
// there; what is left of a batch that was given up is passed over. r.bytes is valid during the call; at is its place in the segment.
func walk(segs []*segment, from, to uint64, each func(s *segment, r record, at int64) error) (walked, error) {
	segs = slices.DeleteFunc(slices.Clone(segs), func(s *segment) bool { return s.epoch == 0 })
	slices.SortFunc(segs, func(a, b *segment) int { return cmp.Compare(a.epoch, b.epoch) })
	w := walked{next: from}
	var buf []byte
	for i, s := range segs {
		limit := to
		for _, later := range segs[i+1:] {
			limit = min(limit, later.first)
		}
		if s.first >= limit || s.batch < s.first && w.next < s.first {
			continue
		}
		if int64(len(buf)) < s.size {
			buf = make([]byte, s.size)
		}
		if err := w.segment(s, limit, buf[:s.size], each); err != nil {
			return w, err
		}
	}
	return w, nil
}

// segment reads one segment up to the record limit (not included).
func (w *walked) segment(s *segment, limit uint64, buf []byte, each func(*segment, record, int64) error) error {
	if err := readFull(s.file, buf, 0); err != nil {
		return fmt.Errorf("reading the journal: %w", err)
	}
	at := int64(pageSize)
	for seq := s.first; seq < limit; seq++ {
		r, n, ok := parseRecord(buf[at:], s.epoch, seq)
		if !ok {
			at = min(roundUp(at), s.size)
			if r, n, ok = parseRecord(buf[at:], s.epoch, seq); !ok {
				return nil
			}
		}
		if seq >= w.next {
			w.lost += seq - w.next
			w.next = seq + 1
			if err := each(s, r, at+recordHeader); err != nil {
				return err
			}
		}
		at += int64(n)
	}
	return nil
}

// readFull fills b from offset at.
func readFull(f interface {
	ReadAt(b []byte, at int64) (int, error)
}, b []byte, at int64) error {
	n, err := f.ReadAt(b, at)
	if n == len(b) {
		return nil
	}
	return errors.Join(fmt.Errorf("%d of %d bytes at offset %d", n, len(b), at), err)
}
