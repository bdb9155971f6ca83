package format

// bitCoder is an arithmetic coder that writes or reads, by its field writes.
// low and high bound what the bytes to come can be.
type bitCoder struct {
	writes    bool
	low, high uint32
	value     uint32 // the next four bytes of what is read
	in        []byte
	over      int // bytes read behind the end
	out       []byte
}

func (c *bitCoder) write(dst []byte) { *c = bitCoder{writes: true, high: 1<<32 - 1, out: dst} }

func (c *bitCoder) read(in []byte) {
	*c = bitCoder{high: 1<<32 - 1, in: in}
	for range 4 {
		c.value = c.value<<8 | uint32(c.next())
	}
}

// bit codes a bit that is 1 with probability p, and returns it.
func (c *bitCoder) bit(bit uint32, p int32) uint32 {
	middle := c.low + uint32(uint64(c.high-c.low)*uint64(p)>>16)
	if !c.writes {
		bit = 0
		if c.value <= middle {
			bit = 1
		}
	}
	if bit == 1 {
		c.high = middle
	} else {
		c.low = middle + 1
	}
	for (c.low^c.high)>>24 == 0 {
		c.shift()
	}
	return bit
}

// shift passes the highest byte, which is settled.
func (c *bitCoder) shift() {
	if c.writes {
		c.out = append(c.out, byte(c.high>>24))
	} else {
		c.value = c.value<<8 | uint32(c.next())
	}
	c.low <<= 8
	c.high = c.high<<8 | 255
}

func (c *bitCoder) next() byte {
	if len(c.in) == 0 {
		c.over++
		return 0
	}
	b := c.in[0]
	c.in = c.in[1:]
	return b
}

// end writes the last four bytes; a reader has then read exactly all there are.
func (c *bitCoder) end() {
	c.out = append(c.out, byte(c.low>>24), byte(c.low>>16), byte(c.low>>8), byte(c.low))
}

// whole tells whether all was read, and nothing behind the end.
func (c *bitCoder) whole() bool { return len(c.in) == 0 && c.over == 0 }
