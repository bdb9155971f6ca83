package transport

import "net"

// WantedBuffer is the size of a UDP socket's buffers below which a burst of
// many game servers on the same tick loses packets. QUIC sends them again,
// at the price of time.
const WantedBuffer = 7 << 20

// Buffers are the sizes of a UDP socket's buffers as the system gave them,
// in bytes; 0 where the system does not tell.
type Buffers struct{ Receive, Send int }

// Enough tells whether both have the wanted size, or are unknown.
func (b Buffers) Enough() bool {
	return (b.Receive == 0 || b.Receive >= WantedBuffer) && (b.Send == 0 || b.Send >= WantedBuffer)
}

// growBuffers asks for the wanted sizes. What the system refuses is no
// error: socketBuffers tells what came of it.
func growBuffers(c *net.UDPConn) {
	_ = c.SetReadBuffer(WantedBuffer)
	_ = c.SetWriteBuffer(WantedBuffer)
}
