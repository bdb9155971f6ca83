package table

import (
	"encoding/binary"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go"

	"reprise/format"
)

// parquetMagic begins and ends a Parquet file; the size of the footer, in four
// bytes, stands before it at the end.
const parquetMagic = "PAR1"

// stepRow and tickRow are the rows of the two other tables.
type stepRow struct {
	Tick   uint64  `parquet:"tick,delta"`
	Step   int32   `parquet:"step"`
	Code   int32   `parquet:"code"`
	Name   string  `parquet:"name,optional,dict"`
	Player *uint64 `parquet:"player,optional"`
	Params []Param `parquet:"params,list"`
}

type tickRow struct {
	Tick   uint64 `parquet:"tick,delta"`
	Steps  int32  `parquet:"steps"`
	Hash   []byte `parquet:"hash,optional"`
	TimeUS *int64 `parquet:"time_us,optional"`
}

const (
	// A row group ends after so many rows or bytes of large cells: it is in
	// memory until then.
	groupRows  = 64 << 10
	groupBytes = 16 << 20
)

// parquetWriter writes one row after the other.
type parquetWriter struct {
	put   func(*Row) error
	flush func() error
	end   func() error
	rows  int
	bytes int
}

func newParquetWriter(w io.Writer, kind Kind) *parquetWriter {
	switch kind {
	case Steps:
		return parquetOf(w, func(r *Row) stepRow {
			return stepRow{r.Tick, *r.Step, *r.Code, r.Name, r.Player, r.Params}
		})
	case Ticks:
		return parquetOf(w, func(r *Row) tickRow { return tickRow{r.Tick, *r.Step, r.Hash, r.TimeUS} })
	}
	return parquetOf(w, func(r *Row) Row { return *r })
}

// parquetOf makes a writer of rows of one type.
func parquetOf[T any](w io.Writer, make func(*Row) T) *parquetWriter {
	out := parquet.NewGenericWriter[T](w, parquet.Compression(&parquet.Zstd), parquet.CreatedBy("reprise", "", ""))
	var one [1]T
	return &parquetWriter{flush: out.Flush, end: out.Close, put: func(r *Row) error {
		one[0] = make(r)
		_, err := out.Write(one[:])
		return err
	}}
}

func (p *parquetWriter) write(r *Row) error {
	if err := p.put(r); err != nil {
		return err
	}
	p.rows++
	p.bytes += len(r.Data) + len(r.Text) + 16*len(r.Params)
	for i := range r.Params {
		p.bytes += len(r.Params[i].Text) + len(r.Params[i].Bytes) + 8*len(r.Params[i].Ints)
	}
	if p.rows < groupRows && p.bytes < groupBytes {
		return nil
	}
	p.rows, p.bytes = 0, 0
	return p.flush()
}

func (p *parquetWriter) close() error { return p.end() }

type parquetReader struct {
	r    *parquet.GenericReader[Row]
	rows []Row
	next int
}

// newParquetReader opens a table. Its columns have to be those of a whole one.
func newParquetReader(src io.ReaderAt, size int64) (p *parquetReader, err error) {
	defer rescue(&err)
	if err := checkFooter(src, size); err != nil {
		return nil, err
	}
	file, err := parquet.OpenFile(src, size, parquet.SkipBloomFilters(true))
	if err != nil {
		return nil, fmt.Errorf("%w: %v", format.ErrCorrupt, err)
	}
	if !parquet.EqualNodes(file.Schema(), parquet.SchemaOf(Row{})) {
		return nil, fmt.Errorf("%w: a Parquet file whose columns are not those of --table all", format.ErrNotReplay)
	}
	return &parquetReader{r: parquet.NewGenericReader[Row](file), rows: make([]Row, 64)[:0]}, nil
}

// checkFooter holds the footer's size against the file's: the library takes
// memory for it, up to 4 GiB, before it reads.
func checkFooter(src io.ReaderAt, size int64) error {
	const tail = 4 + len(parquetMagic)
	var b [tail]byte
	if size < int64(len(parquetMagic)+tail) {
		return fmt.Errorf("%w: %d bytes are no Parquet file", format.ErrNotReplay, size)
	}
	if _, err := src.ReadAt(b[:], size-int64(tail)); err != nil {
		return err
	}
	most := size - int64(len(parquetMagic)+tail)
	if footer := int64(binary.LittleEndian.Uint32(b[:])); string(b[4:]) == parquetMagic && footer > most {
		return fmt.Errorf("%w: Parquet: a footer of %d bytes, in a file that has room for %d: its end is cut off or damaged", format.ErrCorrupt, footer, most)
	}
	return nil
}

// rescue makes an error of a panic of the Parquet library, which takes some
// damaged files to be impossible.
func rescue(err *error) {
	if cause := recover(); cause != nil {
		*err = fmt.Errorf("%w: Parquet: %v", format.ErrCorrupt, cause)
	}
}

func (p *parquetReader) read(r *Row) (err error) {
	if p.next == len(p.rows) {
		if err := p.fill(); err != nil {
			return err
		}
	}
	*r = p.rows[p.next]
	p.next++
	return nil
}

// fill reads some rows.
func (p *parquetReader) fill() (err error) {
	defer rescue(&err)
	rows := p.rows[:cap(p.rows)]
	clear(rows)
	n, err := p.r.Read(rows)
	p.rows, p.next = rows[:n], 0
	switch {
	case n > 0:
		return nil
	case err == io.EOF:
		return io.EOF
	case err == nil:
		err = io.ErrNoProgress
	}
	return fmt.Errorf("%w: Parquet: %v", format.ErrCorrupt, err)
}
