package skirmish_test

import (
	"fmt"

	"reprise/player/games/skirmish"
)

// A whole match among bots, tick by tick: first the commands of the tick,
// which is the moment to record them, then the simulation, then the hash.
func ExampleNewMatch() {
	m, err := skirmish.NewMatch(1, 2, "plains-100")
	if err != nil {
		fmt.Println(err)
		return
	}
	recorded := 0
	var hash []byte
	for {
		_, commands, done := m.Next()
		if done {
			break
		}
		recorded += len(commands)
		if err := m.Simulate(); err != nil {
			fmt.Println(err)
			return
		}
		hash = m.Game().Hash(hash[:0])
	}
	winner, _ := m.Game().Winner()
	fmt.Printf("player %d won after %d ticks and %d commands; the last hash has %d bytes\n",
		winner, m.Game().Tick(), recorded, len(hash))
	// Output: player 1 won after 11441 ticks and 2399 commands; the last hash has 16 bytes
}
