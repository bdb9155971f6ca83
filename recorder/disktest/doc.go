// Package disktest is a disk in memory that crashes and fails on purpose. It
// keeps what programs see apart from what is durable: bytes by sectors,
// entries of folders in the order of their changes. A crash leaves what is
// durable, and of the rest nothing, everything or any part.
//
//	disk.go   Disk: files, folders, syncs
//	file.go   an open file
//	node.go   the bytes of a file, seen and durable
//	fault.go  operations and what happens to them
//	crash.go  what a crash leaves
//
// A sync that fails forgets what it should have made durable, as Linux does:
// the next one succeeds without it.
package disktest
