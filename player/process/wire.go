package process

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Every number is little-endian and of fixed width, as the processors that
// games run on hold it. A text or a run of bytes is its length as u32 and
// then itself; a list is its number of items as u32 and then the items; a
// flag is one byte, 0 or 1.

var order = binary.LittleEndian

func appendFlag(dst []byte, set bool) []byte {
	if set {
		return append(dst, 1)
	}
	return append(dst, 0)
}

func appendText[T string | []byte](dst []byte, text T) []byte {
	dst = order.AppendUint32(dst, uint32(len(text)))
	return append(dst, text...)
}

func appendCount(dst []byte, n int) []byte { return order.AppendUint32(dst, uint32(n)) }

// cursor takes the fields of a message's body. After the first error it gives
// only zeros.
type cursor struct {
	body []byte
	off  int
	err  error
}

// errBad is wrapped by every error about the bytes of a message.
var errBad = errors.New("bad message")

func (c *cursor) fail(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf("%w: byte %d: %s", errBad, c.off, fmt.Sprintf(format, args...))
	}
}

func (c *cursor) rest() int { return len(c.body) - c.off }

func (c *cursor) take(n int, field string) []byte {
	if c.err == nil && n > c.rest() {
		c.fail("it ends before %s does", field)
	}
	if c.err != nil {
		return nil
	}
	taken := c.body[c.off : c.off+n : c.off+n]
	c.off += n
	return taken
}

func (c *cursor) u8(field string) uint8 {
	if b := c.take(1, field); b != nil {
		return b[0]
	}
	return 0
}

func (c *cursor) u16(field string) uint16 {
	if b := c.take(2, field); b != nil {
		return order.Uint16(b)
	}
	return 0
}

func (c *cursor) u32(field string) uint32 {
	if b := c.take(4, field); b != nil {
		return order.Uint32(b)
	}
	return 0
}

func (c *cursor) u64(field string) uint64 {
	if b := c.take(8, field); b != nil {
		return order.Uint64(b)
	}
	return 0
}

func (c *cursor) flag(field string) bool {
	b := c.u8(field)
	if b > 1 {
		c.fail("%s is %d, not 0 or 1", field, b)
	}
	return b == 1
}

// bytes takes a run of bytes, which stay in the body's memory.
func (c *cursor) bytes(field string) []byte {
	n := c.u32(field)
	if c.err == nil && uint64(n) > uint64(c.rest()) {
		c.fail("%s has %d bytes, %d are left", field, n, c.rest())
		return nil
	}
	return c.take(int(n), field)
}

func (c *cursor) text(field string) string { return string(c.bytes(field)) }

// count takes the length of a list whose items have at least size bytes, so
// that a length that lies allocates nothing.
func (c *cursor) count(field string, size int) int {
	n := c.u32(field)
	if c.err == nil && uint64(n)*uint64(size) > uint64(c.rest()) {
		c.fail("%d %s do not fit into %d bytes", n, field, c.rest())
		return 0
	}
	return int(n)
}

// done gives the first error; bytes behind the last field are one.
func (c *cursor) done() error {
	if c.err == nil && c.rest() > 0 {
		c.fail("%d bytes stand behind the last field", c.rest())
	}
	return c.err
}
