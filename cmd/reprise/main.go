// Command reprise loads replays of deterministic games, says what is in
// them, re-simulates them headless and compares state hashes, checks,
// repairs, archives and converts them, and streams them to the daemon reprised.
package main

import "reprise/cmd/reprise/app"

func main() { app.Main(app.SampleGames()...) }
