// Command comparison measures, in one run on one machine, how many ticks a
// second two systems make durable, how long each tick waits for that, and
// what it costs: reprised over QUIC, and NATS JetStream, embedded, with file
// storage. It also measures what reprised takes with more sessions and with
// older ones. The result is Markdown.
//
//	go -C recorder/comparison run . [-short]
//
// PERFORMANCE.md in the folder above explains every figure.
//
// It is a module of its own, so that what it compares with is no dependency
// of the project. Every server is a process of its own, which ends with this
// one. It runs on Linux only: the figures come from /proc.
//
// By file:
//
//	main.go            flags, output
//	plan.go            the systems, the loads and the times
//	bysystem.go        two systems compared; bynumber.go and byage.go reprised
//	                   by number and by age of its sessions
//	bench.go           one measurement: server, load, figures
//	tick.go            what is recorded; driver.go when
//	reprisedclient.go  ticks to reprised; natsclient.go to JetStream
//	held.go            sessions of a recorder in this process
//	server.go          a server process; natsserver.go the one that this
//	                   program becomes
//	process.go         what a process takes; disk.go what a disk is given;
//	                   machine.go what it all runs on
//	figures.go         quantiles, medians; table.go Markdown
package main
