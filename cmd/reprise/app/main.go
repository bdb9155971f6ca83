// Package app is the command reprise. A program of your own that links your
// game, and otherwise is the command, takes a few lines, of which build and
// newGame are yours:
//
//	package main
//
//	import (
//		"reprise/cmd/reprise/app"
//		"reprise/player"
//	)
//
//	func main() { app.Main(player.Factory{Name: "my-game", Build: build, New: newGame}) }
package app

import (
	"io"
	"os"

	"reprise/player"
	"reprise/player/games/skirmish"
	"reprise/player/games/tower"
)

// linked are the games in this program. Main sets them before anything else.
var linked player.Games

// Main is the whole program, with the games that it links: a replay of one of
// them needs no --sim. It does not return.
func Main(games ...player.Linked) {
	linked = games
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// SampleGames are the games that the project itself links.
func SampleGames() player.Games { return player.Games{skirmish.Factory(), tower.Factory()} }

// run is the program; tests call it in their own process.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.Execute()
	complain(stderr, err)
	return exitCode(err)
}
