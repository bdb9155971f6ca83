// Package playtest makes the ticks that the tests of the simulation hosts
// play: made up by hand with a Script, or of a match of a sample game.
package playtest
