// Package power is the part of the failure laboratory that turns machines off.
// Real clients record to a real daemon, in one process and in virtual time:
// between them is a network of datagrams in memory that loses, delays and
// reorders, below the daemon a simulated disk. Whatever happens, every
// promise that a client was given is held against the disk.
//
//	network_test.go     datagrams between hosts
//	machine_test.go     the daemon and what happens to its disk
//	gameserver_test.go  a client's process: it records, dies, comes back
//	match_test.go       the model: what was recorded, and what was promised
//	check_test.go       the disk against the model
//	power_test.go       the story
//
// The machine is turned off at random operations of the disk, also while it
// recovers; what was not synced is lost, kept or torn; writes and syncs fail,
// the disk fills up, syncs take seconds. Game servers die with what their
// spool holds, or without it. After each power cut no acknowledged tick is
// missing, none is there twice or with other contents, every file is
// readable, and no id is given to another producer. In the end every session
// has ended in a stated way.
//
//	go test ./cmd/internal/lab/power                        a few stories
//	go test ./cmd/internal/lab/power -power.cuts 10000 -timeout 0   the long form
//	go test ./cmd/internal/lab/power -power.seed 7          a story again
//
// A seed repeats all decisions of a story, but not the order in which
// goroutines run: what it found may take a few tries to be found again.
package power
