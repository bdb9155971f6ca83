// Command reprise loads replays of deterministic games, says what is in
// them, re-simulates them headless and compares state hashes, checks,
// repairs and converts them, and streams them to the daemon reprised.
package main

import (
	"io"
	"os"
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run is the whole program; tests call it in their own process.
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
