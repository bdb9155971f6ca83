// Package daemon is reprised: it wires the recorder to the transport, by a
// configuration, and adds log, HTTP and signals. It is a package so that the
// demo of the command reprise can start itself as a daemon.
//
//	main.go      the command line
//	config.go    the keys, from file, environment and flags; values.go their types
//	daemon.go    start, run, drain
//	listen.go    the addresses, taken before the data folder
//	store.go     the recorder as the transport's server sees it
//	archive.go   archive, inbox and retention: keys, figures
//	guard.go     who may record: tokens, client certificates
//	tls.go       the daemon's certificate and its fingerprint
//	reload.go    what changes without a restart; watch.go tells when files change
//	http.go      /metrics, /healthz, /readyz, /sessions; metrics.go the figures
//	notify.go    the service manager
package daemon
