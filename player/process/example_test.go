package process_test

import (
	"reprise/player/games/skirmish"
	"reprise/player/process"
)

// The whole main function of a game in Go that is played as a child process.
func ExampleServe() {
	process.Serve(skirmish.Factory())
}
