package format

import (
	"encoding/binary"
	"io"

	"github.com/klauspost/compress/zstd"
)

// PlainRows gives all steps of a replay as plain rows, which archives are
// measured against: the command area in 16-bit width, the parameter area, then for
// each tick with steps its distance to the one before and its number of steps.
func PlainRows(f *File) ([]byte, error) {
	var commands, params, timeline []byte
	var t TickRecord
	last := Tick(0)
	for r := f.Reader(); ; {
		err := r.Next(&t)
		if err == io.EOF {
			return append(append(commands, params...), timeline...), nil
		}
		if err != nil {
			return nil, err
		}
		if t.Steps == 0 {
			continue
		}
		commands = appendWide(commands, &t)
		params = append(params, t.Params...)
		timeline = binary.AppendUvarint(timeline, uint64(t.Tick-last))
		timeline = binary.AppendUvarint(timeline, uint64(t.Steps))
		last = t.Tick
	}
}

// CompressRows compresses bytes as one zstd frame, as small as this program's
// encoder can.
func CompressRows(rows []byte) []byte {
	w := zstdWriter{level: zstd.SpeedBestCompression}
	return w.frame(nil, rows)
}
