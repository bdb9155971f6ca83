// Command wasm is the game skirmish as a WebAssembly module, for
// `reprise verify --sim wasm:skirmish.wasm`:
//
//	GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared -o skirmish.wasm ./player/games/skirmish/wasm
package main

import (
	"reprise/player/games/skirmish"
	"reprise/player/wasm/guest"
)

func init() { guest.Serve("skirmish in Go", skirmish.Factory()) }

func main() {}
