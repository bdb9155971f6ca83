package transport

import (
	"net"
	"syscall"
	"unsafe"
)

// socketBuffers asks the system for the present sizes.
func socketBuffers(c *net.UDPConn) (b Buffers) {
	raw, err := c.SyscallConn()
	if err != nil {
		return b
	}
	size := func(fd uintptr, option int32) int {
		var n, length int32 = 0, 4
		if err := syscall.Getsockopt(syscall.Handle(fd), syscall.SOL_SOCKET, option, (*byte)(unsafe.Pointer(&n)), &length); err != nil {
			return 0
		}
		return int(n)
	}
	_ = raw.Control(func(fd uintptr) {
		b = Buffers{Receive: size(fd, syscall.SO_RCVBUF), Send: size(fd, syscall.SO_SNDBUF)}
	})
	return b
}
