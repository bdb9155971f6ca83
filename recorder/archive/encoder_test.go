package archive

import (
	"bytes"
	"io"

	"reprise/format"
)

// cheat is an encoder that writes another replay than it is given.
type cheat struct{ other []byte }

func (c cheat) Archive(_ *format.File, out io.Writer, o format.ArchiveOptions) (*format.ArchiveReport, error) {
	f, err := format.NewFile(bytes.NewReader(c.other), int64(len(c.other)))
	if err != nil {
		return nil, err
	}
	return format.Archive(f, out, o)
}

// copier is an encoder that changes nothing, and takes no time.
type copier struct{}

func (copier) Archive(src *format.File, out io.Writer, _ format.ArchiveOptions) (*format.ArchiveReport, error) {
	n, err := io.Copy(out, src.Raw())
	return &format.ArchiveReport{Root: *src.Summary().Digest, Bytes: n}, err
}
