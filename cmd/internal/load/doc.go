// Package load drives a daemon as many game servers would: sessions at a tick
// rate, or as fast as they become durable. It measures how long a tick takes
// from its end to the acknowledgement that it is on disk, and afterwards
// counts what is missing in the daemon's files.
//
// A Script says what a session records: the content of each tick follows from
// it, so a reader can tell whether a tick is the right one. A Session records
// a script and keeps the Promise that the daemon has made; Count holds the
// files to it. Run drives many sessions and gives a Result.
package load
