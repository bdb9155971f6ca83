//go:build wasip1

package guest

import "unsafe"

// room is where the host writes messages.
var room []byte

//go:wasmexport reprise_buffer
func buffer(size uint32) uint32 {
	room = make([]byte, size)
	return address(room)
}

//go:wasmexport reprise_message
func message(size uint32) uint32 { return address(handler.Handle(room[:size])) }

func address(b []byte) uint32 { return uint32(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) }
