//go:build unix

package transport

import (
	"net"
	"syscall"
)

// socketBuffers asks the system for the present sizes.
func socketBuffers(c *net.UDPConn) (b Buffers) {
	raw, err := c.SyscallConn()
	if err != nil {
		return b
	}
	size := func(fd uintptr, option int) int {
		n, err := syscall.GetsockoptInt(int(fd), syscall.SOL_SOCKET, option)
		if err != nil {
			return 0
		}
		return n
	}
	_ = raw.Control(func(fd uintptr) {
		b = Buffers{Receive: size(fd, syscall.SO_RCVBUF), Send: size(fd, syscall.SO_SNDBUF)}
	})
	return b
}
