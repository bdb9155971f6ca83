package format

import "math/big"

// Metadata says what a session is. It is written once, at the open, and
// never changes afterwards.
type Metadata struct {
	// Session is the session's id; see ValidSession. Empty in a replay that
	// was never recorded by a daemon (a conversion, a clip).
	Session string
	// Game names the game logic, for example "skirmish"; Build is the
	// build of it that recorded, and Data the hash of its data files. All
	// are free text, compared byte for byte.
	Game, Build, Data string
	// Seed is the game's random seed.
	Seed uint64
	// Map names the map or level.
	Map string
	// TickRate is ticks per second; zero means a game without a clock
	// (turn-based: one tick is one turn).
	TickRate Rate
	// FirstTick is the number of the session's first tick.
	FirstTick Tick
	// StartedAt is the wall clock of the session's start, microseconds
	// since 1970 UTC; 0 if unknown.
	StartedAt int64
	// HashBytes is the width of every state hash of the session, 1 to 32;
	// 0 means that the session records no state hashes.
	HashBytes int
	// HashParts splits a state hash into named parts, in order; their
	// widths add up to HashBytes. Empty means one part without a name.
	HashParts []HashPart
	// Width is the width of command codes in the session's chunks.
	Width Width
	// Labels are free pairs for people and their tools, in order.
	Labels []Label
	// Env holds facts about the recording machine (CPU, operating
	// system, float mode), in order.
	Env []Label
	// Personal holds the keys of labels and facts of Env that redaction
	// erases, such as the name of a host.
	Personal []string
	// Origin is the header of the file this replay was converted from,
	// kept so that the way back gives the same bytes; its Format names it.
	Origin Origin

	// unknown holds fields of a newer minor version, to be written back.
	unknown []byte
}

// HashPart is one named part of a state hash.
type HashPart struct {
	Name  string
	Bytes int
}

// Label is one free pair. Both are returned byte for byte, also where they
// are not valid UTF-8.
type Label struct {
	Key, Value string
}

// Origin is a foreign file's header: Format is "rply1" or "jsonl", Header
// its bytes. The zero Origin means a native recording.
type Origin struct {
	Format string
	Header []byte
}

// CodeBook names the command codes of a session.
type CodeBook struct {
	Codes []CodeInfo
}

// CodeInfo describes one command code.
type CodeInfo struct {
	Code uint16
	Name string
	// Passive steps follow an active step and answer what it asks.
	Passive bool
	Params  []ParamInfo
}

// ParamInfo describes one parameter of a command, by position.
type ParamInfo struct {
	Name string
	// Type is one of bool, int, float, bigint, string, bytes, ints, or
	// empty for any.
	Type string
	// Personal marks what redaction removes, such as chat.
	Personal bool
}

// Lookup finds the entry of code; nil where the book has none. A nil book
// has no entries.
func (b *CodeBook) Lookup(code uint16) *CodeInfo {
	if b == nil {
		return nil
	}
	for i := range b.Codes {
		if b.Codes[i].Code == code {
			return &b.Codes[i]
		}
	}
	return nil
}

// Player is one participant of a session, with every stay of it.
type Player struct {
	// ID is the number that steps use for the player.
	ID uint64
	// Name and Team are free text, returned byte for byte.
	Name, Team string
	Observer   bool
	// Stays holds each presence in order; the last one may be open.
	Stays []Stay
}

// Stay is one presence of a player: from before tick Joined to before tick
// Left. Open stays have not ended by the last tick.
type Stay struct {
	Joined, Left Tick
	Open         bool
}

// PlayerEvent is one join or leave, as it stands in the file.
type PlayerEvent struct {
	// Tick is the first tick with (or without) the player.
	Tick Tick
	ID   uint64
	// Leave tells a leave from a join; Name, Team and Observer belong to
	// joins only.
	Leave      bool
	Name, Team string
	Observer   bool
}

// Mark is a named point of a session.
type Mark struct {
	Tick   Tick
	Kind   string
	Player uint64
	Text   string
}

// Gap is a range of ticks, both ends included, that is known to be missing.
type Gap struct {
	First, Last Tick
	// Reason is for people, for example "client spool full".
	Reason string
	// ByRecorder is set where the daemon declared the gap, not the client.
	ByRecorder bool
}

// Report is one peer's state hash for a tick. Reports never decide whether
// a replay is in sync: two peers may differ, and both are kept.
type Report struct {
	// At is the tick during which the report came in, Of the tick that was
	// hashed.
	At, Of Tick
	Peer   uint64
	Hash   []byte
}

// Keyframe is the whole state before tick NextTick, opaque bytes of the game.
type Keyframe struct {
	NextTick Tick
	State    []byte
}

// Rate is an exact number of ticks per second: 22.4 is 112/5. The zero Rate
// means that there is no clock.
type Rate struct {
	Num, Den uint32
}

// Float gives the rate in ticks per second; 0 for the zero Rate.
func (r Rate) Float() float64 {
	if r.Den == 0 {
		return 0
	}
	return float64(r.Num) / float64(r.Den)
}

// String prints the rate as the shortest decimal that means exactly it, or
// as a fraction ("1000/3") where no decimal does.
func (r Rate) String() string {
	if r.Den == 0 || r.Num == 0 {
		return "0"
	}
	q := big.NewRat(int64(r.Num), int64(r.Den))
	digits, exact := q.FloatPrec()
	if !exact {
		return q.RatString()
	}
	return q.FloatString(digits)
}
