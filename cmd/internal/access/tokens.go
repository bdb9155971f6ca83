// Package access says who may record: bearer tokens, kept as hashes in a file
// with a line for each. The daemon reads that file, the command writes its
// lines.
package access

import (
	"bufio"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Role is what a token allows. Unknown roles are refused when the file is
// read, so that a later one never passes for less than it means.
type Role string

// RoleRecord allows to open and record sessions.
const RoleRecord Role = "record"

// Grant is one line of the file.
type Grant struct {
	// Name says whose token it is; it stands in logs.
	Name string
	Role Role
	// Sessions is a pattern for session ids: * stands for any characters, ?
	// for one.
	Sessions string
	// Expires is when the token ends to be valid; zero means never.
	Expires time.Time

	hash [sha256.Size]byte
}

// Tokens are the grants of one file.
type Tokens struct{ byHash map[[sha256.Size]byte]*Grant }

// Errors of a token that does not allow what was asked. They never hold the
// token.
var (
	// ErrUnknownToken is returned for a token that no line has.
	ErrUnknownToken = errors.New("the token is not known")
	// ErrExpired is returned for a token whose time is over.
	ErrExpired = errors.New("the token has expired")
	// ErrSession is returned for a session id that the token's pattern does
	// not match.
	ErrSession = errors.New("the token does not allow this session id")
)

// tokenPrefix makes tokens easy to find where they should not be.
const tokenPrefix = "rt_"

// maxTokenFile bounds the file.
const maxTokenFile = 16 << 20

// Parse reads a token file: a line for each token with name, SHA-256 of the
// token in hex, role, session pattern and expiry ("never" or a time as
// 2027-01-31T00:00:00Z), separated by blanks. Empty lines and lines that
// begin with # are passed over. Errors name the line.
func Parse(r io.Reader) (*Tokens, error) {
	t := &Tokens{byHash: map[[sha256.Size]byte]*Grant{}}
	limited := &io.LimitedReader{R: r, N: maxTokenFile + 1}
	lines := bufio.NewScanner(limited)
	n := 1
	for ; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		g, err := parseGrant(line)
		if err == nil && t.byHash[g.hash] != nil {
			err = fmt.Errorf("the token of %q stands twice", g.Name)
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		t.byHash[g.hash] = g
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return nil, fmt.Errorf("line %d is too long to be a token's", n)
	case err != nil:
		return nil, err
	case limited.N == 0:
		return nil, fmt.Errorf("more than %d bytes", maxTokenFile)
	}
	return t, nil
}

func parseGrant(line string) (*Grant, error) {
	fields := strings.Fields(line)
	if len(fields) != 5 {
		return nil, fmt.Errorf("%d fields, want name, hash, role, session pattern and expiry", len(fields))
	}
	g := &Grant{Name: fields[0], Role: Role(fields[2]), Sessions: fields[3]}
	hash, err := hex.DecodeString(fields[1])
	if err != nil || len(hash) != len(g.hash) {
		// It may be a token that was pasted here, and the error goes to a log.
		return nil, errors.New("the second field is no hash, 64 hex digits: reprise token makes such lines")
	}
	g.hash = [sha256.Size]byte(hash)
	if g.Role != RoleRecord {
		return nil, fmt.Errorf("role %.80q: use %s", fields[2], RoleRecord)
	}
	if err := errors.Join(checkName(g.Name), checkPattern(g.Sessions)); err != nil {
		return nil, err
	}
	if fields[4] == "never" {
		return g, nil
	}
	if g.Expires, err = time.Parse(time.RFC3339, fields[4]); err != nil {
		return nil, fmt.Errorf("expiry %.80q: use never, or a time as 2027-01-31T00:00:00Z", fields[4])
	}
	return g, nil
}

// maxName bounds a name, which stands in every line of the log about it.
const maxName = 64

func checkName(name string) error {
	odd := func(r rune) bool { return r == '#' || unicode.IsSpace(r) || !unicode.IsPrint(r) }
	if name == "" || len(name) > maxName || !utf8.ValidString(name) || strings.ContainsFunc(name, odd) {
		return fmt.Errorf("name %.80q: use one word of at most %d bytes, without blanks and #", name, maxName)
	}
	return nil
}

// checkPattern lets through what can match an id: nothing else has a meaning
// to path.Match then, nor to whoever reads the line.
func checkPattern(pattern string) error {
	odd := func(r rune) bool {
		return !strings.ContainsRune("._-*?", r) && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	}
	if pattern == "" || len(pattern) > maxPattern || strings.ContainsFunc(pattern, odd) {
		return fmt.Errorf("session pattern %.80q: use the characters of ids (A-Z a-z 0-9 . _ -), * and ?", pattern)
	}
	return nil
}

// maxPattern leaves room for an id with a * between any two characters.
const maxPattern = 128

// Len is the number of tokens.
func (t *Tokens) Len() int { return len(t.byHash) }

// Find finds the grant of a token that is valid now. Errors:
// ErrUnknownToken, ErrExpired.
func (t *Tokens) Find(token []byte, now time.Time) (*Grant, error) {
	g := t.byHash[sha256.Sum256(token)]
	switch {
	case g == nil:
		return nil, ErrUnknownToken
	case !g.Expires.IsZero() && !now.Before(g.Expires):
		return nil, fmt.Errorf("%w: %s, on %s", ErrExpired, g.Name, g.Expires.Format(time.RFC3339))
	}
	return g, nil
}

// Allows checks a session id against the pattern; the error is ErrSession.
func (g *Grant) Allows(session string) error {
	// The pattern was checked when it was read.
	if ok, _ := path.Match(g.Sessions, session); !ok {
		return fmt.Errorf("%w: %s may record %s", ErrSession, g.Name, g.Sessions)
	}
	return nil
}

// New makes a token and the line for the file that grants it.
func New(name, sessions string, expires time.Time) (token, line string, err error) {
	if err := errors.Join(checkName(name), checkPattern(sessions)); err != nil {
		return "", "", err
	}
	var secret [32]byte
	rand.Read(secret[:])
	token = tokenPrefix + base64.RawURLEncoding.EncodeToString(secret[:])
	until := "never"
	if !expires.IsZero() {
		until = expires.UTC().Format(time.RFC3339)
	}
	hash := sha256.Sum256([]byte(token))
	return token, fmt.Sprintf("%s %x %s %s %s", name, hash, RoleRecord, sessions, until), nil
}
