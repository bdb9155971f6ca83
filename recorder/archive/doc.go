// Package archive turns the files of sessions that have ended into archives,
// files what is dropped into an inbox, and removes what is older or more than
// is to be kept.
//
// An Archiver works beside a recorder, in its data folder:
//
//	catalog                     every archive, as text
//	archive/2026/11/29/room-…   the archives, by a Template
//	archive/.new/               files that are being written
//	pins/pin-<id>               replays that are to be kept, and why
//	inbox/                      where files are dropped
//	quarantine/                 files of the inbox that could not be filed, and why
//
// A source is removed only after its archive was written, synced, read back,
// compared step by step and given its name, and the catalog has it. ARCHIVE.md
// has the order of operations, and what each moment leaves that a kill or a
// power cut may choose.
//
//	config.go              what an Archiver is told
//	archiver.go pass.go    start, rounds of work, end
//	source.go pack.go      from a session's file to its archive
//	pace.go                how much of a processor that takes
//	name.go                templates of names
//	catalog.go audit.go    where each archive is
//	pin.go auto.go         what is kept in any case
//	retain.go removal.go   what goes, and its going
//	clock.go preview.go    whether the clock is right; what would go
//	inbox.go watch.go      files that are dropped
//	filing.go              their ids
//	quarantine.go          those that cannot be filed
//	disk.go                the data folder
//	stats.go               figures and troubles
//
// Live sessions are never touched, nor is any file that the archiver or the
// recorder did not write.
package archive
