package format

import (
	"fmt"
	"io"
)

// copier writes chunks of another file, after it was decided what becomes of
// each; those of the stream are counted anew.
type copier struct {
	t   *Tracker
	out io.Writer
	at  int64
	seq uint64
}

// newCopier takes archived ticks, too, and lists the leaves.
func newCopier(out io.Writer) copier {
	t := NewTracker()
	t.archives = &archiveReader{}
	t.listLeaves()
	return copier{t: t, out: out}
}

// put writes one chunk.
func (c *copier) put(typ ChunkType, seq uint64, body []byte) error {
	if seq != 0 {
		c.seq++
		seq = c.seq
	}
	if err := c.t.Add(Chunk{Type: typ, Seq: seq, Body: body}, c.at); err != nil {
		return err
	}
	return c.write(AppendChunk(nil, typ, seq, body))
}

func (c *copier) write(b []byte) error {
	n, err := c.out.Write(b)
	c.at += int64(n)
	return err
}

// finish ends the copy as f ends, with its signatures. The content digest must
// be root, that of f. written gives the copy's bytes, where it has late hashes.
func (c *copier) finish(f *File, written io.ReaderAt, root Digest, leaves bool) error {
	end := f.sum.End
	footer, err := c.t.FooterWith(written, c.at, end.State, end.Reason, FooterOptions{Leaves: leaves, Signatures: f.signatures})
	if err != nil {
		return err
	}
	if *c.t.digest != root {
		return fmt.Errorf("the copy has the content digest %v, its source %v", *c.t.digest, root)
	}
	return c.write(footer)
}
