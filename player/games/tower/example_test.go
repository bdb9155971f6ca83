package tower_test

import (
	"fmt"

	"reprise/format"
	"reprise/player/games/tower"
)

// A recorder takes each turn's steps, closes the tick, and stores the hashes
// that have become known, also those of earlier ticks.
func ExampleRun() {
	run, err := tower.NewRun(7, "tower-3")
	if err != nil {
		fmt.Println(err)
		return
	}
	recording := format.NewArray(format.Options{Width: format.Width8})
	hashes := map[format.Tick][]byte{}
	turns := 0
	for {
		turn, settled, ok := run.Next()
		if ok {
			turn.Steps(func(code uint16, params ...format.Value) { recording.Add(code, params...) })
			turns++
		}
		for _, s := range settled {
			hashes[s.Tick] = s.Hash
		}
		if !ok {
			break
		}
	}
	fmt.Println(run.Outcome(), "after", turns, "turns of", recording.Len(), "steps, with", len(hashes), "hashes")
	// Output: crowned after 284 turns of 288 steps, with 109 hashes
}
