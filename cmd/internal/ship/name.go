package ship

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"reprise/format"
)

// stem is a replay's name without its endings; false for a name that is not
// a replay's. Hidden files are none: copies appear under such names before
// they are whole.
func stem(name string) (string, bool) {
	if strings.HasPrefix(name, ".") {
		return "", false
	}
	for _, wrapping := range [...]string{".zst", ".gz"} {
		name = strings.TrimSuffix(name, wrapping)
	}
	for _, ending := range [...]string{".rply", ".jsonl"} {
		if s, ok := strings.CutSuffix(name, ending); ok {
			return s, s != ""
		}
	}
	return "", false
}

// nameHash is how much of a name's hash stands in an id.
const nameHash = 8

// sessionOf makes the session id of a file that names none: the name's stem
// where that is an id, else its safe characters and a hash of the whole name.
// The same name always gives the same id.
func sessionOf(name string) string {
	s, _ := stem(name)
	if format.ValidSession(s) == nil {
		return s
	}
	safe := strings.Map(func(c rune) rune {
		if format.ValidSession(string(c)) == nil || c == '.' {
			return c
		}
		return '-'
	}, s)
	sum := sha256.Sum256([]byte(name))
	return safe[:min(len(safe), format.MaxSessionID-nameHash-1)] + "-" + hex.EncodeToString(sum[:])[:nameHash]
}
