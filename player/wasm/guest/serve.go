package guest

import (
	"reprise/player"
	"reprise/player/process"
)

// handler answers the host; nil before Serve.
var handler *process.Handler

// Serve says which games the module offers. Call it once, before main.
// Program is for people: the engine and its version.
func Serve(program string, games ...player.Linked) { handler = process.NewHandler(program, games...) }
