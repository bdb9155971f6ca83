package process

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
)

// ErrCommand is returned where no child can be started at all: the command
// line cannot be read, or its program is not there or cannot be executed.
var ErrCommand = errors.New("the simulation's command cannot be started")

// Split splits a command line into the program and its arguments. Words stand
// between blanks. Single quotes keep everything as it is; double quotes too,
// but a backslash in them keeps the quote or backslash behind it; outside of
// quotes it keeps any character. On Windows a backslash separates folders and
// keeps nothing. No shell is involved: variables, patterns, pipes and
// redirections mean nothing here; for those, make the command sh -c '…'.
func Split(command string) ([]string, error) {
	return split(command, runtime.GOOS != "windows")
}

func split(command string, escapes bool) ([]string, error) {
	s := splitter{rest: command, escapes: escapes}
	var words []string
	for {
		s.rest = strings.TrimLeft(s.rest, blanks)
		if s.rest == "" {
			break
		}
		word, err := s.word()
		if err != nil {
			return nil, fmt.Errorf("%w: %q: %w", ErrCommand, command, err)
		}
		words = append(words, word)
	}
	if len(words) == 0 || words[0] == "" {
		return nil, fmt.Errorf("%w: %q names no program", ErrCommand, command)
	}
	return words, nil
}

const blanks = " \t\r\n"

type splitter struct {
	rest string
	// escapes is set where a backslash keeps what is behind it.
	escapes bool
}

// word takes one word, which may consist of several quoted parts.
func (s *splitter) word() (string, error) {
	var word strings.Builder
	for s.rest != "" && !strings.ContainsRune(blanks, rune(s.rest[0])) {
		var err error
		switch c := s.take(); {
		case c == '\'':
			err = s.quoted(&word)
		case c == '"':
			err = s.doubleQuoted(&word)
		case c == '\\' && s.escapes:
			err = s.escaped(&word)
		default:
			word.WriteByte(c)
		}
		if err != nil {
			return "", err
		}
	}
	return word.String(), nil
}

func (s *splitter) take() byte {
	c := s.rest[0]
	s.rest = s.rest[1:]
	return c
}

func (s *splitter) quoted(word *strings.Builder) error {
	text, rest, closed := strings.Cut(s.rest, "'")
	if !closed {
		return errors.New("a single quote is not closed")
	}
	word.WriteString(text)
	s.rest = rest
	return nil
}

func (s *splitter) doubleQuoted(word *strings.Builder) error {
	for s.rest != "" {
		c := s.take()
		if c == '"' {
			return nil
		}
		if c == '\\' && s.escapes && s.rest != "" && (s.rest[0] == '"' || s.rest[0] == '\\') {
			c = s.take()
		}
		word.WriteByte(c)
	}
	return errors.New("a double quote is not closed")
}

func (s *splitter) escaped(word *strings.Builder) error {
	if s.rest == "" {
		return errors.New("nothing stands behind the last backslash")
	}
	word.WriteByte(s.take())
	return nil
}
