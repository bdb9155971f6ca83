package app

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// replayEndings are the names that a folder is searched for.
var replayEndings = []string{".rply", ".rply.zst", ".rply.gz", ".jsonl", ".jsonl.zst", ".jsonl.gz"}

// replayEntry is a path that may be a replay; err is set where the search
// could not look at it.
type replayEntry struct {
	path string
	err  error
}

func (e replayEntry) open(o *opener) (*replay, error) {
	if e.err != nil {
		return nil, e.err
	}
	return o.open(e.path)
}

// namedFiles takes the arguments as they are.
func namedFiles(paths []string) []replayEntry {
	var entries []replayEntry
	for _, path := range paths {
		entries = append(entries, replayEntry{path: path})
	}
	return entries
}

// searchFiles takes files as they are, and searches folders for names of
// replays. Links to folders inside them are not followed.
func searchFiles(paths []string) []replayEntry {
	var entries []replayEntry
	for _, path := range paths {
		st, err := os.Stat(path)
		if path == "-" || err != nil || !st.IsDir() {
			entries = append(entries, replayEntry{path: path})
			continue
		}
		entries = append(entries, searchFolder(path)...)
	}
	return entries
}

// searchFolder goes on after a folder that cannot be read, and names it.
func searchFolder(folder string) (entries []replayEntry) {
	list, err := os.ReadDir(folder)
	for _, d := range list {
		path := filepath.Join(folder, d.Name())
		switch {
		case hasReplayEnding(d.Name()):
			entries = append(entries, replayEntry{path: path})
		case d.IsDir():
			entries = append(entries, searchFolder(path)...)
		}
	}
	if err != nil {
		entries = append(entries, replayEntry{folder, cause(err)})
	}
	return entries
}

func hasReplayEnding(name string) bool {
	return slices.ContainsFunc(replayEndings, func(ending string) bool {
		return len(name) > len(ending) && strings.HasSuffix(name, ending)
	})
}
