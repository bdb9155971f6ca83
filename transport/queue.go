package transport

import (
	"unsafe"

	"reprise/format"
)

// chunk is one framed chunk of a session's stream, kept until it is durable.
type chunk struct {
	// data is nil where only the spool holds the chunk.
	data []byte
	size int
	// spooled is set once the spool holds the chunk, at offset at.
	spooled bool
	at      int64
	// next is the tick that is due behind the chunk.
	next format.Tick
	// part: it holds a part of a keyframe. keyframe is the id of the one whose
	// last part this is; 0 for none.
	part     bool
	keyframe uint64
}

// A small chunk and its bytes are one piece of memory. The sizes are those
// that the system of memory has.
type (
	smallChunk struct {
		chunk
		room [176 - chunkSize]byte
	}
	mediumChunk struct {
		chunk
		room [320 - chunkSize]byte
	}
)

const chunkSize = int(unsafe.Sizeof(chunk{}))

// newChunk gives a chunk with room for so many bytes, and none in it. Apart
// are those that can be dropped while the chunk is kept.
func newChunk(size int, apart bool) *chunk {
	switch {
	case apart || size > len(mediumChunk{}.room):
		return &chunk{data: make([]byte, 0, size)}
	case size > len(smallChunk{}.room):
		m := &mediumChunk{}
		m.data = m.room[:0]
		return &m.chunk
	}
	s := &smallChunk{}
	s.data = s.room[:0]
	return &s.chunk
}

// queue keeps the chunks of a session that are not durable, in the order of
// their sequence numbers. It is the whole state of resending, and knows no
// network, no clock and no lock.
type queue struct {
	first  uint64 // the sequence number of chunks[0]
	chunks []*chunk
	sent   int   // chunks[:sent] have been sent, or received earlier
	total  int64 // bytes of all
	flying int64 // bytes of chunks[:sent]
	window int64 // the most bytes that may fly
}

func newQueue() queue { return queue{first: 1} }

// next is the sequence number that the next chunk gets.
func (q *queue) next() uint64 { return q.first + uint64(len(q.chunks)) }

// push adds a chunk with the next sequence number.
func (q *queue) push(c *chunk) {
	q.chunks = append(q.chunks, c)
	q.total += int64(c.size)
}

// unsent is the chunk to send next; nil where all are sent.
func (q *queue) unsent() *chunk {
	if q.sent == len(q.chunks) {
		return nil
	}
	return q.chunks[q.sent]
}

// sentTo is the last chunk that was sent, and the tick that is due behind it;
// false where none was.
func (q *queue) sentTo() (seq uint64, next format.Tick, ok bool) {
	if q.sent == 0 {
		return 0, 0, false
	}
	return q.first + uint64(q.sent) - 1, q.chunks[q.sent-1].next, true
}

// allows tells whether the window lets so many bytes go: one chunk always
// may.
func (q *queue) allows(size int) bool {
	return q.flying == 0 || q.flying+int64(size) <= q.window
}

// markSent counts the next chunk as sent.
func (q *queue) markSent() {
	q.flying += int64(q.chunks[q.sent].size)
	q.sent++
}

// settle drops what is durable, up to seq, and gives it to each. It returns
// false where seq was never sent.
func (q *queue) settle(seq uint64, each func(*chunk)) bool {
	if seq < q.first {
		return true
	}
	n := seq - q.first + 1
	if n > uint64(q.sent) {
		return false
	}
	for i, c := range q.chunks[:n] {
		q.total -= int64(c.size)
		q.flying -= int64(c.size)
		q.chunks[i] = nil
		each(c)
	}
	if rest := len(q.chunks) - int(n); rest <= int(n) {
		// As many go as stay: moving those keeps the memory in use.
		copy(q.chunks, q.chunks[n:])
		clear(q.chunks[rest:])
		q.chunks = q.chunks[:rest]
	} else {
		q.chunks = q.chunks[n:]
	}
	q.sent -= int(n)
	q.first = seq + 1
	return true
}

// resume continues behind the last chunk that was received: what follows is
// sent again. It returns false where received is not in the queue: it is
// above all that was cut, or below what was dropped as durable.
func (q *queue) resume(received uint64) bool {
	if received+1 < q.first || received+1 > q.next() {
		return false
	}
	q.sent = int(received + 1 - q.first)
	q.flying = 0
	for _, c := range q.chunks[:q.sent] {
		q.flying += int64(c.size)
	}
	return true
}
