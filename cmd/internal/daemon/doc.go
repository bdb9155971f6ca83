// Package daemon is reprised: it wires the recorder to the transport, by a
// configuration, and adds log, HTTP and signals. It is a package so that the
// demo of the command reprise can start itself as a daemon.
//
//	config.go    the keys, from file, environment and flags
//	store.go     the recorder as the transport's server sees it
//	daemon.go    start, run, drain
//	http.go      /metrics, /healthz, /readyz, /sessions
//	main.go      the command line
package daemon
