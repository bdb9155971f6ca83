// Command process is the game skirmish as a process of its own, for
// `reprise verify --sim exec:…`. Without the flag, process.Serve is all that a
// Go game needs for that. With --bug it is a build that goes wrong on purpose,
// for `reprise bisect` to find.
package main

import (
	"flag"
	"fmt"
	"os"

	"reprise/player/games/skirmish"
	"reprise/player/process"
)

func main() {
	bug := flag.String("bug", "", "plant a fault: gold@TICK or hp@TICK")
	flag.Parse()
	if *bug == "" {
		process.Serve(skirmish.Factory())
		return
	}
	b, err := skirmish.ParseBug(*bug)
	if err != nil {
		fmt.Fprintln(os.Stderr, "process:", err)
		os.Exit(2)
	}
	process.Serve(b.Factory())
}
