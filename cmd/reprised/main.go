// Command reprised is the recording daemon; see package daemon.
package main

import (
	"os"

	"reprise/cmd/internal/daemon"
)

func main() { os.Exit(daemon.Main(os.Args[1:], os.Stdout, os.Stderr)) }
