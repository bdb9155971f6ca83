// Package guest makes a game written in Go a WebAssembly module for
// `reprise --sim wasm:FILE`. A whole program is
//
//	package main
//
//	func init() { guest.Serve("my engine 1.2", mygame.Factory()) }
//
//	func main() {}
//
// built as a library:
//
//	GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared -o mygame.wasm
//
// Goroutines, maps and the garbage collector behave alike every time: all that
// Go's runtime draws on, a clock and random numbers, is the host's and follows
// from the replay. Outside of WebAssembly the package only remembers the games.
package guest
