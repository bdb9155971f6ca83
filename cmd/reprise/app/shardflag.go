package app

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// shardFlag is the part I of N of a list; the zero value is all of it.
type shardFlag struct{ index, count int }

func (s *shardFlag) String() string {
	if s.count == 0 {
		return ""
	}
	return fmt.Sprintf("%d/%d", s.index, s.count)
}

func (s *shardFlag) Set(text string) error {
	index, count, _ := strings.Cut(text, "/")
	i, errI := strconv.Atoi(index)
	n, errN := strconv.Atoi(count)
	if errI != nil || errN != nil || i < 1 || i > n {
		return errors.New("not a shard: use I/N, from 1/N to N/N")
	}
	s.index, s.count = i, n
	return nil
}

func (s *shardFlag) Type() string { return "I/N" }

// of gives the shard's part of the entries.
func (s *shardFlag) of(entries []replayEntry) []replayEntry {
	if s.count == 0 {
		return entries
	}
	var part []replayEntry
	for i := s.index - 1; i < len(entries); i += s.count {
		part = append(part, entries[i])
	}
	return part
}
