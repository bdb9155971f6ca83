package recorder

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

// The file "checkpoint" has two pages, written in turn, so that one is
// whole at any moment:
//
//	 0          8            16      24        32         36
//	┌──────────┬────────────┬───────┬─────────┬──────────┐
//	│ magic    │ generation │ run   │ needed  │ CRC-32C  │
//	│ RPLYCKP1 │ u64        │ u64   │ u64     │ of 0..32 │
//	└──────────┴────────────┴───────┴─────────┴──────────┘
//
// The page with the higher generation counts. run is the number of times
// that a recorder was started here; needed is the sequence number of the
// first journal record that recovery has to replay.

// Numbers below are stored in the journal. They must not change.
const (
	checkpointMagic = "RPLYCKP1"
	checkpointBytes = 36
	checkpointPages = 2
)

type checkpointFile struct {
	file        File
	generation  uint64
	run, needed uint64
	// whole is cleared where no page could be read, though the file is not
	// new: recovery then does not know what is stale.
	whole bool
}

// openCheckpointFile opens the file, and makes it where there is none. The
// caller syncs the folder.
func openCheckpointFile(disk FS, name string) (*checkpointFile, error) {
	f, err := disk.OpenFile(name, true)
	if err != nil {
		return nil, err
	}
	c := &checkpointFile{file: f}
	if err := c.read(); err != nil {
		return nil, errors.Join(fmt.Errorf("reading %s: %w", name, err), f.Close())
	}
	return c, nil
}

func (c *checkpointFile) read() error {
	size, err := c.file.Size()
	if err != nil {
		return err
	}
	if size < checkpointPages*pageSize {
		// A crash while it was made: no segment was written before it was
		// durable.
		c.whole = true
		return c.blank()
	}
	for i := range int64(checkpointPages) {
		page := make([]byte, checkpointBytes)
		if err := readFull(c.file, page, i*pageSize); err != nil {
			return err
		}
		c.take(page)
	}
	return nil
}

// blank lays the file down at its full size.
func (c *checkpointFile) blank() error {
	if _, err := c.file.WriteAt(make([]byte, checkpointPages*pageSize), 0); err != nil {
		return err
	}
	return c.file.Sync()
}

func (c *checkpointFile) take(page []byte) {
	if string(page[:8]) != checkpointMagic || binary.BigEndian.Uint32(page[32:]) != crc32.Checksum(page[:32], castagnoli) {
		return
	}
	if g := binary.BigEndian.Uint64(page[8:]); g >= c.generation {
		c.generation, c.whole = g, true
		c.run, c.needed = binary.BigEndian.Uint64(page[16:]), binary.BigEndian.Uint64(page[24:])
	}
}

// write makes run and needed durable. After an error the next write goes to
// the same page, and the other one still counts.
func (c *checkpointFile) write(run, needed uint64) error {
	page := make([]byte, 0, pageSize)
	page = append(page, checkpointMagic...)
	for _, v := range [3]uint64{c.generation + 1, run, needed} {
		page = binary.BigEndian.AppendUint64(page, v)
	}
	page = binary.BigEndian.AppendUint32(page, crc32.Checksum(page, castagnoli))
	_, err := c.file.WriteAt(page[:pageSize], int64((c.generation+1)%checkpointPages)*pageSize)
	if err == nil {
		err = c.file.Sync()
	}
	if err != nil {
		return fmt.Errorf("writing the checkpoint: %w", err)
	}
	c.generation, c.run, c.needed, c.whole = c.generation+1, run, needed, true
	return nil
}
