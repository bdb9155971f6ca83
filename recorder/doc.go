// Package recorder keeps sessions on disk while they are played, so that an
// acknowledged tick survives the end of the process, a power cut and a full
// disk.
//
// A Recorder owns a data folder. A producer opens a Session with
// Recorder.OpenSession, appends its chunks (see package format) as they are
// made, and is told by Ack how far it is safe. Recorder.Close leaves the
// sessions that have not ended for their producers to resume; so does a
// crash. Session.Seal ends one.
//
// # How a chunk becomes safe
//
//	Append ──▶ checked by format.Tracker ──▶ memory: framed bytes, and the
//	             once for all                 steps in a format.ReplayArray
//	                                             │ flush: all sessions, one sync
//	                                             ▼
//	Ack ◀──────────────────────────────────── journal
//	                                             │ later, in large pieces, no sync
//	                                             ▼
//	checkpoint: one sync of many files ────▶ session file ──▶ journal is freed
//
// Chunks are never encoded again on the way, but for those of a producer that
// sends again what is recorded already. JOURNAL.md has the crash story and
// the bytes of the journal.
//
// # The data folder
//
//	lock                               held while a recorder runs; see Running
//	ledger                             every session that ever was, as text
//	journal/segment-000000 …           pre-zeroed segments, used in turn
//	journal/checkpoint                 from where on the journal is needed
//	live/room-<id>-<start>.rply        sessions that have not ended
//	sealed/room-<id>-<start>.rply      sealed by their producers
//	unfinished/room-<id>-<start>.rply  their producers never came back
//
// Package archive keeps more beside them, and takes the files of sealed and
// unfinished once their sessions have ended for good. Sessions that were
// recorded elsewhere get their ids by Recorder.Enter.
//
// <start> is when the recorder took the session up, in UTC, as
// 20261129T190259Z. Every file is a replay that can be read at any moment. A
// file in live lags behind the acknowledgements by up to Config.FileInterval;
// what is missing is in the journal, and in the file again after the next
// start. Files in sealed and unfinished may be moved, copied and deleted at
// any time; nothing else may be while a recorder runs. An id is used once:
// the ledger outlives the files, and should be kept with them. Where it is
// lost, a start makes it anew from the files that are there.
//
// # Life of a session
//
//	live ⇄ detached ──▶ ending ──▶ sealed
//	  ▲                    └─────▶ unfinished
//	  └──────── reopened ──────────────┘
//
// A session whose connection went away is detached, and ends as unfinished
// after Config.ResumeTimeout. Its producer may go on with it within
// Config.ReopenWindow: its file goes back to live, without the footer. A
// session without ticks is kept like any other. A file that is damaged is
// quarantined: it stays where it is, nothing touches it, and the session
// cannot be gone on with.
//
// # Rules for a producer
//
// A session belongs to a producer's key. A connection with a higher epoch
// takes it over and fences the one before; the same epoch is let in once that
// one is detached; a lower epoch, never. The ledger keeps a digest of the
// key.
//
// What is sent again is compared with what is recorded. A chunk whose
// sequence number is taken is acknowledged again where it is the same bytes,
// or the same ticks, and is else a conflict. A ticks chunk, next in number,
// that begins before the tick that is due has its first ticks compared and
// the others recorded. Compared are steps, and hashes where both have one;
// the times that were sent first stay. A tick that was declared missing
// cannot be put in afterwards.
//
// # Memory
//
// A session costs about 5.5 KiB, and what is not yet in its file: at most
// Config.TailBytes beside what waits for the disk. That does not depend on
// its age, but for 130 bytes for every 1,024 ticks that the end of its file
// needs. No file stays open: at most Config.FileWriters are written at once.
package recorder
