// Package daemon is reprised: it wires the recorder to the transport, by a
// configuration, and adds log, HTTP and signals. It is a package so that the
// demo of the command reprise can start itself as a daemon.
//
//	main.go      the command line
//	config.go    the keys, from file, environment and flags; values.go their types
//	daemon.go    start, run, drain
//	store.go     the recorder as the transport's server sees it
//	tls.go       certificate, fingerprint, reload
//	http.go      /metrics, /healthz, /readyz, /sessions; metrics.go the figures
//	notify.go    the service manager
package daemon
