// Package player re-simulates replays and compares them with what was
// recorded.
//
// Two layers stand on each other. The replay system is for a game whose
// commands are functions: a [ReplaySystem] holds the recording and the
// registered commands, and a [Sandbox] drives them along a step stream. The
// tick engine is for whole replays: an [Engine] takes ticks from a [Source],
// gives them to a [Simulation] at a chosen pace, and compares every recorded
// hash.
//
//	Source ──ticks──▶ Engine ──▶ Simulation ─┬─ Local ──▶ Game
//	                    ▲                    ├─ Turns ──▶ Sandbox ──▶ Command
//	                    └──── outcomes ──────┘─ another process or module
//
// A game plugs in as a [Game] (steps and the end of a tick are told to it) or
// as a [TurnGame] (its commands are registered in a ReplaySystem). Both are
// offered to the player by name in [Games].
//
// Nothing here is decided by the wall clock: a replay gives the same outcomes
// at every speed and with every mix of controls.
package player
