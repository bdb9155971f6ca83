// Command process is the game skirmish as a process of its own, for
// `reprise verify --sim exec:…`. Without an argument, process.Serve is all that
// a Go game needs for that. With one, gold@TICK or hp@TICK, it is a build that
// goes wrong on purpose, for `reprise bisect` to find.
package main

import (
	"fmt"
	"os"

	"reprise/player/games/skirmish"
	"reprise/player/process"
)

func main() {
	if len(os.Args) == 1 {
		process.Serve(skirmish.Factory())
		return
	}
	bug, err := skirmish.ParseBug(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, "process:", err)
		os.Exit(2)
	}
	process.Serve(bug.Factory())
}
