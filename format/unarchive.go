package format

import "io"

// Unarchive writes an archive, which must have an end, in the ordinary layout
// again: the same session with the same content digest, signatures and end.
// Hashes that the archive left out do not come back, and the copy goes on
// saying so; late ones stand with their ticks. All of f is checked first. A file
// that is no archive is copied in the same way.
func Unarchive(f *File, out io.Writer) error {
	if f.Torn != nil {
		return f.Torn
	}
	if f.sum.End == nil {
		return ErrNoEnd
	}
	k, err := f.checked()
	if err != nil {
		return err
	}
	m := f.sum.Meta
	u := &unarchiver{copier: newCopier(out), f: f, ticks: f.Reader(), b: NewBatchBuilder(m.Width, m.HashBytes, m.FirstTick)}
	if err := u.copy(); err != nil {
		return err
	}
	return u.finish(f, nil, *k.t.digest, k.leaves)
}

// unarchiver writes one archive anew.
type unarchiver struct {
	copier
	f     *File
	ticks *Reader
	parts archiveReader
	b     *BatchBuilder
	body  []byte
}

// copy writes the content, chunk by chunk.
func (u *unarchiver) copy() error {
	if err := u.write(AppendHeader(nil)); err != nil {
		return err
	}
	s := scanner{src: u.f.src, size: u.f.data, at: HeaderSize}
	for {
		c, _, err := s.next()
		if err == io.EOF || err == nil && c.Type == ChunkEnd {
			return nil
		}
		if err == nil {
			err = u.chunk(c)
		}
		if err != nil {
			return err
		}
	}
}

func (u *unarchiver) chunk(c Chunk) error {
	switch c.Type {
	case ChunkArchive:
		return u.notice(c)
	case ChunkTicks, ChunkArchived:
		return u.cutTicks(c)
	case ChunkArchivedKeyframe:
		p, err := u.parts.part(c)
		if err != nil {
			return err
		}
		return eachSmallPart(p, func(p KeyframePart) error { return u.put(ChunkKeyframe, c.Seq, AppendKeyframePart(nil, p)) })
	case ChunkHashes:
		return nil
	case ChunkGap:
		g, err := ParseGap(c.Body)
		if err != nil {
			return err
		}
		u.b.Skip(g.Last + 1)
	}
	return u.put(c.Type, c.Seq, c.Body)
}

// notice keeps what an archive says of hashes that it left out, and the leaves
// that stand for them.
func (u *unarchiver) notice(c Chunk) error {
	n, err := parseArchiveNotice(c.Body)
	if err != nil || n.HashesLeft == 0 {
		return err
	}
	n.Level = ArchiveNone
	return u.put(c.Type, c.Seq, appendArchiveNotice(nil, n))
}

// cutTicks writes the ticks of a chunk as ordinary chunks, as the reader gives
// them: with the hashes that came late.
func (u *unarchiver) cutTicks(c Chunk) error {
	n, err := ticksOf(c)
	if err != nil {
		return err
	}
	var t TickRecord
	for range n {
		if err := u.ticks.Next(&t); err != nil {
			return err
		}
		if u.b.Ticks() > 0 && (u.b.Ticks() >= writerTicks || u.b.Rows()+len(t.Commands)+len(t.Params) > writerRows) {
			if err := u.flush(c.Seq); err != nil {
				return err
			}
		}
		if err := u.b.Add(&t); err != nil {
			return err
		}
	}
	return u.flush(c.Seq)
}

// flush writes the gathered ticks as one chunk.
func (u *unarchiver) flush(seq uint64) error {
	u.body = u.b.AppendBody(u.body[:0])
	u.b.Cut()
	return u.put(ChunkTicks, seq, u.body)
}
