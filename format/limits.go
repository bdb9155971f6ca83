package format

import "fmt"

// Limits hold for every file and every message. A length is compared with
// its limit before anything is allocated.
const (
	// MaxBody bounds the body of any chunk. The largest are the summary
	// and the digest of a very long session.
	MaxBody = 16 << 20
	// MaxRowBytes bounds the command and parameter area of one chunk: one
	// seek decodes at most this much.
	MaxRowBytes = 1 << 20
	// MaxChunkTicks bounds the ticks of one chunk; run-length coding would
	// otherwise let a few bytes stand for a billion ticks.
	MaxChunkTicks = 1 << 16
	// MaxHashBytes is the widest state hash.
	MaxHashBytes = 32
	// MaxParams is the most parameters of a step: the count is one byte.
	MaxParams = 255
	// MaxTick leaves room so that a tick and a count never overflow.
	MaxTick Tick = 1<<62 - 1

	// MaxText bounds each free text: names, labels, reasons, mark texts.
	MaxText = 4 << 10
	// MaxLabels bounds the labels, and the environment facts, of a session.
	MaxLabels = 256
	// MaxCodes bounds the code book.
	MaxCodes = 1 << 16
	// MaxOrigin bounds a foreign header kept in the metadata.
	MaxOrigin = 1 << 20
	// MaxOpening bounds metadata and code book together.
	MaxOpening = 4 << 20

	// MaxKeyframePart is the size of a keyframe's parts: small, so that
	// they never hold up the ticks behind them.
	MaxKeyframePart = 32 << 10
	// MaxKeyframe bounds one keyframe.
	MaxKeyframe = 1 << 30
	// MaxOpenKeyframes bounds the keyframes that are being sent at once.
	MaxOpenKeyframes = 4
	// MaxKeyframes bounds the keyframes that count in a session: one a
	// second for a day and a half. Later ones are ignored, with a notice.
	MaxKeyframes = 1 << 17

	// MaxNoteBytes bounds the marks of a session as they stand in its
	// summary; the same bound holds for its gaps, and for its players.
	MaxNoteBytes = 2 << 20
	// MaxJSONLine bounds a line of JSON lines: the largest is a step of
	// MaxRowBytes whose every byte is escaped.
	MaxJSONLine = 16 << 20
	// MaxJSONLTicks bounds the ticks of JSON lines, where a short line may
	// stand behind any number of empty ticks.
	MaxJSONLTicks = 1 << 24
	// MaxSignatures bounds the signatures of a file.
	MaxSignatures = 64
	// MaxHashLag is how far behind the newest tick a late hash may come.
	MaxHashLag = 1 << 14
)

// MaxSessionID is the most characters of a session id.
const MaxSessionID = 64

// ValidSession checks a session id: 1 to 64 of A-Z a-z 0-9 . _ - and not
// only dots, so that it is a safe file name everywhere.
func ValidSession(id string) error {
	if id == "" || len(id) > MaxSessionID {
		return fmt.Errorf("session id %.80q has %d characters: use 1 to %d", id, len(id), MaxSessionID)
	}
	letters := false
	for i := 0; i < len(id); i++ {
		c := id[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_', c == '-':
			letters = true
		case c == '.':
		default:
			return fmt.Errorf("session id %q has %q at %d: use A-Z a-z 0-9 . _ -", id, c, i)
		}
	}
	if !letters {
		return fmt.Errorf("session id %q is only dots", id)
	}
	return nil
}
