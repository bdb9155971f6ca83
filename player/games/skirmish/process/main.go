// Command process is the game skirmish as a process of its own, for
// `reprise verify --sim exec:…`. It is all that a Go game needs for that.
package main

import (
	"reprise/player/games/skirmish"
	"reprise/player/process"
)

func main() { process.Serve(skirmish.Factory()) }
