package transport

import (
	"math"
	"time"

	"reprise/format"
)

// A list frame asks for sessions, by id:
//
//	number · most · after text · prefix text
type list struct {
	// number comes back in the answer.
	number uint64
	most   uint64
	// after is the id that the listing goes on behind; empty for the first.
	after string
	// prefix is how the ids begin.
	prefix string
}

func (l *list) append(dst []byte) []byte {
	b := appendNumbers(nil, l.number, l.most)
	return appendFrame(dst, typeList, appendText(appendText(b, l.after), l.prefix))
}

func parseList(body []byte) (list, error) {
	f := fields{typ: typeList, b: body}
	l := list{number: f.number("the number", math.MaxUint64), most: f.number("the most sessions", MaxListed)}
	if f.err == nil && l.most == 0 {
		f.fail("a listing of no session")
	}
	l.after = f.text("the id before", format.MaxSessionID)
	l.prefix = f.text("the prefix", format.MaxSessionID)
	return l, f.done()
}

// A listing frame answers a list frame:
//
//	number · code · text · flags u8 · count · count × (session text ·
//	state u8 · reason text · game text · file text · started · ends ·
//	durable tick · next tick · ticks · steps · hashes · bytes)
//
// Times are microseconds since 1970, 0 where there is none.
type listing struct {
	number uint64
	// refusal, with CodeNone where there is none.
	code Code
	text string
	// more: there are sessions behind the last one.
	more     bool
	sessions []Listed
}

func (l *listing) append(dst []byte) []byte {
	b := appendText(appendNumbers(nil, l.number, uint64(l.code)), cutText(l.text, MaxRefusalText))
	flags := byte(0)
	if l.more {
		flags |= listingMore
	}
	b = appendNumbers(append(b, flags), uint64(len(l.sessions)))
	for i := range l.sessions {
		b = l.sessions[i].append(b)
	}
	return appendFrame(dst, typeListing, b)
}

func parseListing(body []byte) (listing, error) {
	f := fields{typ: typeListing, b: body}
	l := listing{number: f.number("the number", math.MaxUint64), code: Code(f.number("the code", math.MaxUint64)),
		text: f.text("the text", MaxRefusalText)}
	l.more = f.flags(listingMore) == listingMore
	for range f.number("the number of sessions", MaxListed) {
		s := f.listed()
		if f.err != nil {
			return l, f.err
		}
		l.sessions = append(l.sessions, s)
	}
	return l, f.done()
}

// SessionState says where a session is in its life at the daemon.
type SessionState uint8

// States travel on the wire. They must not change.
const (
	// SessionLive: its producer is connected.
	SessionLive SessionState = 1
	// SessionDetached: its producer went away, and may come back.
	SessionDetached SessionState = 2
	// SessionEnding: its end is decided, its file is being finished.
	SessionEnding SessionState = 3
	// SessionQuarantined: its file cannot be trusted.
	SessionQuarantined SessionState = 4
	// SessionSealed and SessionUnfinished have ended.
	SessionSealed     SessionState = 5
	SessionUnfinished SessionState = 6
)

var stateNames = map[SessionState]string{SessionLive: "live", SessionDetached: "detached", SessionEnding: "ending",
	SessionQuarantined: "quarantined", SessionSealed: "sealed", SessionUnfinished: "unfinished"}

// String names the state; one of a later version is "unknown".
func (s SessionState) String() string {
	if name, ok := stateNames[s]; ok {
		return name
	}
	return "unknown"
}

// Listed is one session of a listing.
type Listed struct {
	Session string
	State   SessionState
	// Reason says why a session is in quarantine, or ends as unfinished.
	Reason string
	// Game is the game's name, and File the replay's name at the daemon;
	// empty where the daemon does not tell.
	Game, File string
	// Started is when the session began, and Ends when a detached one ends
	// if its producer stays away; zero for unknown, or none.
	Started, Ends time.Time
	// DurableTick is the first tick that is not on disk; the totals count
	// what was received.
	DurableTick format.Tick
	format.Totals
	// Bytes is the size of the replay.
	Bytes uint64
}

func (s *Listed) append(b []byte) []byte {
	b = append(appendText(b, s.Session), byte(s.State))
	for _, text := range [...]string{s.Reason, s.Game, s.File} {
		b = appendText(b, cutText(text, MaxListedText))
	}
	b = appendNumbers(b, micros(s.Started), micros(s.Ends), uint64(s.DurableTick))
	return appendNumbers(appendTotals(b, s.Totals), s.Bytes)
}

func (f *fields) listed() Listed {
	s := Listed{Session: f.session()}
	if state := f.bytes(1, "the state"); f.err == nil {
		s.State = SessionState(state[0])
	}
	s.Reason, s.Game, s.File = f.text("the reason", MaxListedText), f.text("the game", MaxListedText), f.text("the replay's name", MaxListedText)
	s.Started, s.Ends = f.time("the start"), f.time("the end")
	s.DurableTick, s.Totals = f.tick("the durable tick"), f.totals()
	s.Bytes = f.number("the bytes", math.MaxUint64)
	return s
}

// micros is a time on the wire.
func micros(t time.Time) uint64 {
	if t.IsZero() {
		return 0
	}
	return uint64(max(t.UnixMicro(), 0))
}

func (f *fields) time(field string) time.Time {
	n := f.number(field, math.MaxInt64)
	if n == 0 {
		return time.Time{}
	}
	return time.UnixMicro(int64(n)).UTC()
}
