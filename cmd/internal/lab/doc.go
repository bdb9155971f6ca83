// Package lab is the failure laboratory: tests that run the daemon and its
// clients as real processes, and then take away what they stand on.
//
//	full disk          the data folder is on 8 MiB, which fill up
//	descriptors        thousands of sessions, few file descriptors
//	kill               kill -9 of the daemon under load, again and again
//	kill -9 anywhere   kill -9 at every file operation in turn
//	network            delay, loss, reordering, duplicates, black-outs, changing ports
//	spool              kill -9 of clients, a daemon that is away for long
//	vanish             clients that go without a goodbye
//	frozen             a daemon, or a game server, that stops for a while
//	identity           many that want one id, one that comes back without its spool
//	memory             sessions flat out
//
// The package holds no code of its own: its test program starts itself again
// as the daemon or as a game server. Every scenario ends with a count that
// reads the daemon's files and trusts nothing else: each acknowledged tick is
// there with its content, none is there twice, and what a client had to leave
// out is a declared gap.
//
// They kill processes and fill disks, so they run only when asked for:
//
//	REPRISE_LAB=1 go test ./cmd/internal/lab
//
// The scenarios are short then. REPRISE_LONG=1 gives them the time and
// the numbers of a real trial; REPRISE_SEED repeats a run that said so.
package lab
