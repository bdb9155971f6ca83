// Package lab is the failure laboratory: tests that run the daemon and its
// clients as real processes, and then take away what they stand on. The
// package power below it does the same in virtual time, to whole machines.
//
// The package holds no code of its own: its test program starts itself again
// as the daemon or as a game server. Every scenario ends with a count that
// reads the daemon's files and trusts nothing else: each acknowledged tick is
// there with its content, none is there twice, and what a client had to leave
// out is a declared gap. Its last line says "0 acknowledged ticks missing".
//
// All scenarios run in a short form with the other tests, for about half a
// minute where nothing else runs; not with -short, and not under the race
// detector. Bounds of wall-clock time are held against them at full length
// only:
//
//	go test ./cmd/internal/lab
//	REPRISE_LAB=1 go test -race ./cmd/internal/lab
//
// REPRISE_LONG=1 gives a scenario the time and the numbers of a real trial;
// REPRISE_SEED repeats a run that said so. With
//
//	REPRISE_LONG=1 go test ./cmd/internal/lab -v -timeout 3h -run
//
// in front, the scenarios are
//
//	^TestFullDisk$                        8 MiB in a private mount fill up, and get room again
//	^TestKilledOnFullDisk$                the daemon is killed meanwhile
//	^TestFewDescriptors$                  10,000 sessions with 1,024 descriptors
//	^TestKilledUnderLoad$                 200 sessions, the daemon is killed every 5 s, 60 times
//	^TestKilledAtOperationOfFirstLife$    kill -9 at every file operation of a first start, in turn
//	^TestKilledAtOperationsInTurn$        10,000 kills at operations of later lives, and of their recoveries
//	^TestRoughNetwork$                    300 ms round trip, 5 % loss, reordering, black-outs of 30 s, changing source ports
//	^TestEndWhileTheLastTicksTravel$      SIGTERM while the last ticks are under way on such a line
//	^TestGameServerKilled$                kill -9 of a game server, which goes on from its spool
//	^TestGameServerAwayForLong$           one that comes back after its sessions have ended
//	^TestClientsVanish$                   10,000 short sessions, three of ten go without a goodbye
//	^TestDaemonFrozen$                    a daemon that stops for 30 s
//	^TestGameServerFrozen$                a game server that stops for a minute
//	^TestSameIDAtOnce$                    many that want one id
//	^TestResumedWithoutTheTicksBetween$   a game server that comes back without its spool
//	^TestMemoryOfFlatOutSessions$         200 sessions flat out for 3 minutes
//
// The full disk needs a user namespace and a mount in it, which no root is
// needed for; where the kernel gives none, the test is skipped and says so.
// Freezing and the limit on descriptors need Unix.
package lab
