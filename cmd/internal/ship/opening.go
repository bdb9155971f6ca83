package ship

import (
	"errors"
	"fmt"
	"io"

	"reprise/format"
)

// opening is what a session is opened with, as it stands in its file.
type opening struct {
	meta, book format.Chunk
	players    format.Chunk
	// playersAt is the place of the players that belong to the opening; 0
	// for none.
	playersAt int64
	parsed    *format.Metadata
	// end is the place of the chunk behind the opening.
	end int64
}

// errNoOpening is returned for a file whose opening is not whole yet: a code
// book can follow until something is recorded.
var errNoOpening = errors.New("nothing is recorded yet")

// errCopy is returned for a file that is not a session's own recording, but
// made of one: a session cannot become it by what its producer sends.
var errCopy = errors.New("a daemon records sessions, not what was made of them: put the file into the folder inbox of its data instead")

// readOpening reads the opening of RPLY2 bytes.
func readOpening(c *chunks) (*opening, error) {
	head := make([]byte, min(c.size, format.HeaderSize))
	if err := readFull(c.src, head, 0); err != nil {
		return nil, err
	}
	if err := format.CheckHeader(head); err != nil {
		return nil, notYet(err)
	}
	o := &opening{}
	for at := int64(format.HeaderSize); ; {
		chunk, framed, err := c.read(at)
		if err != nil {
			return nil, notYet(err)
		}
		if done, err := o.take(chunk, at); err != nil || done {
			o.end = at
			return o, err
		}
		at += int64(len(framed))
	}
}

func notYet(err error) error {
	if err == io.EOF || errors.Is(err, format.ErrTorn) {
		return errNoOpening
	}
	return err
}

// take takes the next chunk; done once it is one of the session itself.
// Chunks of unknown optional types, and players of the producer's stream, do
// not end the opening, and are not part of it.
func (o *opening) take(c format.Chunk, at int64) (done bool, err error) {
	kept := format.Chunk{Type: c.Type, Body: append([]byte(nil), c.Body...)}
	switch {
	case o.parsed == nil && c.Type != format.ChunkMeta, o.parsed != nil && c.Type == format.ChunkMeta:
		return false, &format.CorruptError{Offset: at, What: fmt.Sprintf("%v chunk where the opening has its metadata, once and first", c.Type)}
	case c.Type == format.ChunkMeta:
		o.meta = kept
		o.parsed, err = format.ParseMeta(kept.Body)
		if err != nil {
			return false, &format.CorruptError{Offset: at, What: err.Error()}
		}
	case c.Type == format.ChunkBook:
		if o.book.Body != nil {
			return false, &format.CorruptError{Offset: at, What: "a second code book"}
		}
		o.book = kept
	case c.Type == format.ChunkArchive:
		return false, fmt.Errorf("it is an archive, or was one: %w", errCopy)
	case c.Type == format.ChunkRedaction:
		return false, fmt.Errorf("it is a redacted copy: %w", errCopy)
	case c.Type == format.ChunkPlayers && c.Seq == 0 && o.playersAt == 0:
		o.players, o.playersAt = kept, at
	case c.Type.Known() && c.Type != format.ChunkPlayers:
		return true, nil
	}
	return false, nil
}

// name gives the session an id where its metadata has none.
func (o *opening) name(id string) (named bool) {
	if o.parsed.Session != "" {
		return false
	}
	o.parsed.Session = id
	o.meta.Body = format.AppendMeta(nil, o.parsed)
	return true
}

// chunks are those of the opening, in the order in which they are sent.
// Players that make it too large come behind it instead.
func (o *opening) chunks() []format.Chunk {
	list := []format.Chunk{o.meta}
	if o.book.Body != nil {
		list = append(list, o.book)
	}
	if o.playersAt > 0 && len(o.meta.Body)+len(o.book.Body)+len(o.players.Body) > format.MaxOpening-64 {
		o.playersAt = 0
	}
	if o.playersAt > 0 {
		list = append(list, o.players)
	}
	return list
}
