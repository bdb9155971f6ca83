package archive

import (
	"bytes"
	"math/rand/v2"
	"os"
	"testing"

	"reprise/format"
)

// TestMain uses every encoder once: what they make of it must not belong to
// the virtual time of one test.
func TestMain(m *testing.M) {
	if err := warm(); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

func warm() error {
	out := new(format.Buffer)
	w, err := format.NewWriter(out, &format.Metadata{Width: format.Width16}, nil)
	if err != nil {
		return err
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for n := range 3000 {
		if err := w.Step(7, format.Int(int64(n%7)), format.Int(rng.Int64()), format.String("x")); err != nil {
			return err
		}
		if err := w.EndTick(); err != nil {
			return err
		}
	}
	if err := w.Finish(format.EndSealed, ""); err != nil {
		return err
	}
	src, err := format.NewFile(out, int64(len(out.Bytes())))
	if err != nil {
		return err
	}
	for _, e := range encoders {
		for _, level := range []format.ArchiveLevel{format.ArchiveFast, format.ArchiveDefault, format.ArchiveMax} {
			if err := warmAt(e, src, level); err != nil {
				return err
			}
		}
	}
	return nil
}

func warmAt(e Encoder, src *format.File, level format.ArchiveLevel) error {
	var made bytes.Buffer
	if _, err := e.Archive(src, &made, format.ArchiveOptions{Level: level}); err != nil {
		return err
	}
	f, err := format.NewFile(bytes.NewReader(made.Bytes()), int64(made.Len()))
	if err != nil {
		return err
	}
	return format.SameContent(src, f)
}
