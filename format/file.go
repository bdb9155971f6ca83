package format

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// File is an opened replay of any known format. RPLY1 and JSON lines are
// turned into RPLY2 in memory while they are opened, so that all that
// reads a replay has one path.
type File struct {
	// Source names the format that was found: "rply2", "rply1" or "jsonl".
	Source string
	// Wrapping names the compression around the whole file: "zst", "gz" or
	// empty.
	Wrapping string
	// Bytes is the size as stored, with the wrapping.
	Bytes int64
	// Torn is set where the file ends inside a record: all before is good.
	Torn *TornError

	sum  *Summary
	book *CodeBook
	seek []seekEntry
	// signatures stand in the footer.
	signatures []Signature
	src        io.ReaderAt
	size       int64 // of the RPLY2 bytes
	data       int64 // where the good chunks end
	closer     io.Closer
}

// Open opens a replay. A file that is a replay but torn opens, and says so
// in Torn. Errors match ErrNotReplay, ErrNewer, ErrTorn (where not even the
// opening is whole), ErrCorrupt, or come from the file system.
func Open(path string) (*File, error) {
	// Looked at before it is opened: opening a named pipe would wait.
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, fmt.Errorf("%w: not a regular file", ErrNotReplay)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	if st, err = f.Stat(); err != nil {
		f.Close()
		return nil, err
	}
	file, err := NewFile(f, st.Size())
	if err != nil {
		f.Close()
		return nil, err
	}
	file.closer = f
	return file, nil
}

// NewFile opens a replay from its size bytes. src must not change while it
// is read, but may grow.
func NewFile(src io.ReaderAt, size int64) (*File, error) {
	file := &File{Source: "rply2", Bytes: size, src: src, size: size}
	if err := file.unwrap(); err != nil {
		return nil, err
	}
	if err := file.open(); err != nil {
		return nil, err
	}
	return file, nil
}

// Unproven tells that the source has neither checksums nor an end mark that
// can be trusted (RPLY1, JSON lines): its structure and the order of its
// ticks can be checked, its contents and completeness cannot.
func (f *File) Unproven() bool { return f.Source != "rply2" }

// Close releases the file.
func (f *File) Close() error {
	if f.closer == nil {
		return nil
	}
	return f.closer.Close()
}

// Summary is what the replay says about itself. It must not be changed.
func (f *File) Summary() *Summary { return f.sum }

// Book is the code book; nil where the replay has none.
func (f *File) Book() *CodeBook { return f.book }

// Raw gives the replay as RPLY2 bytes: the file itself, or what it was
// turned into.
func (f *File) Raw() *io.SectionReader { return io.NewSectionReader(f.src, 0, f.size) }

// Reader starts at the first tick.
func (f *File) Reader() *Reader { return newReader(f.src, f.data, f.sum, f.seek) }

// open reads what the end of a finished file says, or scans the whole.
func (f *File) open() error {
	if f.openFinished() == nil {
		return nil
	}
	return f.scanAll()
}

// openFinished reads the footer and the code book. Any failure means that
// the file has to be scanned.
func (f *File) openFinished() error {
	if err := f.readFooter(); err != nil {
		return err
	}
	return f.readOpening()
}

// readFooter reads trailer, summary and seek table.
func (f *File) readFooter() error {
	tail := make([]byte, min(f.size, int64(trailerSize)))
	if err := readFull(f.src, tail, f.size-int64(len(tail))); err != nil {
		return err
	}
	at, ok := parseTrailer(tail)
	if !ok || at < HeaderSize || at > f.size {
		return errors.New("no trailer")
	}
	s := scanner{src: f.src, size: f.size - int64(len(tail)), at: at}
	c, _, err := s.next()
	if err != nil || c.Type != ChunkSummary {
		return errors.Join(err, errors.New("no summary"))
	}
	if f.sum, err = parseSummary(c.Body); err != nil {
		return err
	}
	f.seek, f.signatures = nil, nil
	for s.at < s.size {
		c, _, err := s.next()
		switch {
		case err != nil:
			return err
		case !c.Type.Known():
		case c.Type == ChunkSignature && f.seek != nil && len(f.signatures) < MaxSignatures:
			g, err := parseSignature(c.Body)
			if err != nil {
				return err
			}
			f.signatures = append(f.signatures, g)
		case c.Type != ChunkSeek || f.seek != nil:
			return errors.New("the trailer is another file's")
		default:
			if f.seek, err = parseSeek(c.Body, f.sum, at); err != nil {
				return err
			}
		}
	}
	if f.seek == nil {
		return errors.New("no seek table")
	}
	f.data = at
	return nil
}

// readOpening reads the code book from the start of the file.
func (f *File) readOpening() error {
	s := scanner{src: f.src, size: f.data, at: HeaderSize}
	for {
		b, err := s.window(chunkFixed + 10)
		if err != nil {
			return err
		}
		if len(b) > 1 && b[0] == chunkMarker && ChunkType(b[1]).opens() {
			return nil
		}
		c, _, err := s.next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if c.Type == ChunkBook {
			f.book, err = ParseBook(c.Body)
			return err
		}
	}
}

// scanAll follows every chunk from the first.
func (f *File) scanAll() error {
	head := make([]byte, min(f.size, HeaderSize))
	if err := readFull(f.src, head, 0); err != nil {
		return err
	}
	if err := CheckHeader(head); err != nil {
		return err
	}
	t := NewTracker()
	end, err := follow(t, f.src, f.size, nil)
	var torn *TornError
	if errors.As(err, &torn) && t.meta != nil {
		f.Torn, err = torn, nil
	}
	if err != nil {
		return err
	}
	if t.meta == nil {
		return &TornError{Offset: HeaderSize, Size: f.size}
	}
	f.sum, f.book, f.seek, f.data = t.Summary(), t.book, t.seek, end
	return nil
}

// follow feeds the chunks of a file to t and returns the end of the last
// good one. Errors have their place in the file; a TornError also the last
// whole tick. A file that has an end but no trailer is torn, wherever it was
// cut. each, if given, sees every chunk after it was applied.
func follow(t *Tracker, src io.ReaderAt, size int64, each func(Chunk, int64) error) (int64, error) {
	s := scanner{src: src, size: size, at: HeaderSize}
	t.archives = &archiveReader{}
	finished := false
	for {
		c, at, err := s.next()
		if err == io.EOF && t.end != nil && !finished {
			return at, t.torn(at, size)
		}
		if err == io.EOF {
			return at, nil
		}
		if err == nil {
			if err = t.Add(c, at); err != nil {
				return at, placeRefusal(err, at, s.at-int64(len(c.Body)))
			}
			if each != nil {
				if err := each(c, at); err != nil {
					return at, err
				}
			}
			finished = c.Type == ChunkTrailer
			if finished && s.at < size {
				return s.at, &CorruptError{Offset: s.at, What: plural(size-s.at, "byte") + " after the trailer"}
			}
			continue
		}
		return at, s.verdict(err, t)
	}
}

// placeRefusal turns the refusal of a chunk into damage at its place.
func placeRefusal(err error, chunk, body int64) error {
	if errors.Is(err, ErrCorrupt) {
		return shift(err, body)
	}
	return &CorruptError{Offset: chunk, What: err.Error()}
}

// verdict decides what a failed scan means: a tail of zeros or a cut chunk
// is torn, unless whole chunks follow, which a cut cannot leave behind.
func (s *scanner) verdict(err error, t *Tracker) error {
	torn := t.torn(s.at, s.size)
	if !errors.Is(err, ErrTorn) {
		zero, zerr := s.zerosToEnd()
		switch {
		case zerr != nil:
			return zerr
		case zero:
			return torn
		}
		return err
	}
	rest := *s
	if err := rest.resync(err); err != nil {
		return err
	}
	if rest.at < rest.size {
		return &CorruptError{Offset: s.at, What: fmt.Sprintf("a chunk runs past the end of the file, but whole chunks follow at offset %d", rest.at)}
	}
	return torn
}

// torn says that the file was cut behind what t has seen, at offset at.
func (t *Tracker) torn(at, size int64) *TornError {
	return &TornError{Offset: at, Size: size, NextTick: t.totals.NextTick, Ticks: t.totals.Ticks}
}

// Keyframe reads the i-th keyframe of the summary.
func (f *File) Keyframe(i int) (*Keyframe, error) {
	info := f.sum.Keyframes[i]
	k := &Keyframe{NextTick: info.NextTick, State: []byte{}}
	s := scanner{src: f.src, size: f.data, at: info.Offset}
	var parts archiveReader
	for uint64(len(k.State)) < info.Size || info.Size == 0 {
		c, at, err := s.next()
		if err == io.EOF {
			return nil, &CorruptError{Offset: at, What: fmt.Sprintf("keyframe before tick %d is not whole", info.NextTick)}
		}
		if err != nil {
			return nil, err
		}
		if !c.Type.holdsKeyframe() {
			continue
		}
		p, err := parts.part(c)
		if err != nil {
			return nil, shift(err, s.at-int64(len(c.Body)))
		}
		if p.ID != info.ID {
			continue
		}
		if p.NextTick != info.NextTick || p.Total != info.Size || p.Offset != uint64(len(k.State)) {
			return nil, &CorruptError{Offset: at, What: fmt.Sprintf("keyframe part at byte %d before tick %d, due is byte %d before tick %d", p.Offset, p.NextTick, len(k.State), info.NextTick)}
		}
		k.State = append(k.State, p.Data...)
		if info.Size == 0 {
			break
		}
	}
	return k, nil
}

// Reports gives every peer's report in file order. The hash is valid
// during the call; an error of each ends the walk and is returned.
func (f *File) Reports(each func(Report) error) error {
	if f.sum.Reports == 0 {
		return nil
	}
	s := scanner{src: f.src, size: f.data, at: HeaderSize}
	for {
		c, _, err := s.next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if c.Type != ChunkReports {
			continue
		}
		reports, err := ParseReports(c.Body)
		if err != nil {
			return shift(err, s.at-int64(len(c.Body)))
		}
		for _, r := range reports {
			if err := each(r); err != nil {
				return err
			}
		}
	}
}
