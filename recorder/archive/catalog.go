package archive

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"reprise/format"
	"reprise/recorder"
)

// The catalog is a text file: a line for each archive that is filed, and one
// when it goes. The last line of an id counts. It says where each archive is
// without opening any; the archives are the truth, and what the catalog lacks
// is found again (see audit.go).
//
//	51f0a3c4 {"v":1,"id":"m-42","file":"archive/2026/11/29/room-m-42-20261129T190259Z.rply","game":"skirmish",…}
//	0c1d22e9 {"v":1,"id":"m-42","file":"archive/…","gone":"2026-12-29T03:00:00Z","why":"older than 720h0m0s"}
//
// A line begins with the CRC-32C of the document behind the space, in hex.

// catalogVersion and the names of the fields are stored. They must not change.
const catalogVersion = 1

const catalogName = "catalog"

// Entry is one archive.
type Entry struct {
	// ID is the session's id in the ledger.
	ID string
	// File is the archive's name below the data folder.
	File string
	// Game is what the rules for single games go by.
	Game string
	// End is how the session ended.
	End format.EndState
	// Since is from when its age counts: when the session ended, or the file
	// was filed that was dropped into the inbox.
	Since time.Time
	// Bytes is the archive's size, Source that of the file it was made of.
	Bytes, Source int64
	// Root is the content digest.
	Root format.Digest
	// From is the file of the inbox that it was made of; empty for a session
	// that was recorded here.
	From string
	// Found is set where the catalog had lost it, or never got it, and it was
	// found: what it was made of is not known.
	Found bool
}

// catalogLine is an entry as it is stored.
type catalogLine struct {
	Version int        `json:"v"`
	ID      string     `json:"id"`
	File    string     `json:"file"`
	Game    string     `json:"game,omitempty"`
	State   string     `json:"state,omitempty"`
	Since   *time.Time `json:"since,omitempty"`
	Bytes   int64      `json:"bytes,omitempty"`
	Source  int64      `json:"source_bytes,omitempty"`
	Root    string     `json:"root,omitempty"`
	From    string     `json:"from,omitempty"`
	Found   bool       `json:"found,omitempty"`
	Gone    *time.Time `json:"gone,omitempty"`
	Why     string     `json:"why,omitempty"`
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func appendLine(dst []byte, l catalogLine) []byte {
	l.Version = catalogVersion
	// A line of strings, numbers and times always becomes JSON.
	doc, _ := json.Marshal(l)
	dst = fmt.Appendf(dst, "%08x ", crc32.Checksum(doc, castagnoli))
	return append(append(dst, doc...), '\n')
}

// errCatalogLine is returned for a line that is not whole, or was changed.
var errCatalogLine = errors.New("not a whole line of the catalog")

func parseLine(line []byte) (l catalogLine, err error) {
	sum, doc, _ := bytes.Cut(line, []byte(" "))
	if string(sum) != fmt.Sprintf("%08x", crc32.Checksum(doc, castagnoli)) || json.Unmarshal(doc, &l) != nil {
		return l, errCatalogLine
	}
	if l.Version != catalogVersion {
		return l, fmt.Errorf("%w: catalog line of version %d", format.ErrNewer, l.Version)
	}
	return l, nil
}

func lineOf(e *Entry) catalogLine {
	return catalogLine{ID: e.ID, File: e.File, Game: e.Game, State: e.End.String(), Since: &e.Since, Bytes: e.Bytes, Source: e.Source,
		Root: e.Root.String(), From: e.From, Found: e.Found}
}

// entry is false for a line that holds none.
func (l *catalogLine) entry() (*Entry, bool) {
	e := &Entry{ID: l.ID, File: l.File, Game: l.Game, End: format.EndSealed, Bytes: l.Bytes, Source: l.Source, From: l.From, Found: l.Found}
	if l.State == format.EndUnfinished.String() {
		e.End = format.EndUnfinished
	}
	root, err := hex.DecodeString(l.Root)
	if err != nil || len(root) != len(e.Root) || l.Since == nil || l.File != path.Clean(l.File) || !strings.HasPrefix(l.File, archiveFolder+"/") {
		return nil, false
	}
	copy(e.Root[:], root)
	e.Since = *l.Since
	return e, true
}

// catalog is the file and what it says.
type catalog struct {
	disk Disk
	// writing has a token for the one who writes the file, and changes what is
	// about it. Who asks what the catalog says does not wait for the disk.
	writing chan struct{}
	size    int64 // of the lines that are whole
	dead    int   // lines that no longer count
	// suspect is set where the file may not hold what it should: it is then
	// written anew.
	suspect bool

	mu      sync.Mutex
	entries map[string]*Entry // by lower-case id
	names   map[string]string // lower-case names to lower-case ids
	roots   map[format.Digest]string
	from    map[string]string // files of the inbox
}

// idKey is how ids are compared, as in the ledger.
func idKey(id string) string { return strings.ToLower(id) }

// readCatalog reads the file. damaged counts the lines that could not be
// read, but for a torn last one.
func readCatalog(d Disk) (c *catalog, damaged int, err error) {
	c = newCatalog(d)
	damaged, err = c.load()
	return c, damaged, err
}

func newCatalog(d Disk) *catalog {
	return &catalog{disk: d, writing: make(chan struct{}, 1), entries: map[string]*Entry{}, names: map[string]string{}, roots: map[format.Digest]string{},
		from: map[string]string{}}
}

// load reads the file into an empty catalog.
func (c *catalog) load() (damaged int, err error) {
	b, err := readWhole(c.disk, catalogName)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("reading the catalog: %w", err)
	}
	whole := bytes.LastIndexByte(b, '\n') + 1
	var lines []catalogLine
	for line := range bytes.Lines(b[:whole]) {
		l, err := parseLine(line[:len(line)-1])
		switch {
		case errors.Is(err, errCatalogLine):
			damaged++
		case err != nil:
			return 0, err
		default:
			lines = append(lines, l)
		}
	}
	for _, l := range lines {
		c.take(l)
	}
	c.size, c.suspect = int64(whole), whole < len(b) || damaged > 0
	return damaged, nil
}

// take takes one line in.
func (c *catalog) take(l catalogLine) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := idKey(l.ID)
	if old := c.entries[key]; old != nil {
		c.dead++
		delete(c.names, nameKey(old.File))
		if c.roots[old.Root] == key {
			delete(c.roots, old.Root)
		}
		if c.from[old.From] == key {
			delete(c.from, old.From)
		}
		delete(c.entries, key)
	}
	e, ok := l.entry()
	if l.Gone != nil || !ok {
		c.dead++
		return
	}
	c.entries[key] = e
	c.names[nameKey(e.File)] = key
	c.roots[e.Root] = key
	if e.From != "" {
		c.from[e.From] = key
	}
}

// compactAt is how many lines that no longer count the catalog may have
// beside as many that do.
const compactAt = 1000

// write makes a line durable and takes it in.
func (c *catalog) write(l catalogLine) error {
	c.writing <- struct{}{}
	defer func() { <-c.writing }()
	if c.suspect || c.dead > compactAt && c.dead > c.count() {
		if err := c.rewrite(); err != nil {
			return fmt.Errorf("writing the catalog anew: %w", err)
		}
	}
	line := appendLine(nil, l)
	if err := c.append(line); err != nil {
		c.suspect = true
		return fmt.Errorf("writing the catalog: %w", err)
	}
	c.size += int64(len(line))
	c.take(l)
	return nil
}

func (c *catalog) append(line []byte) error {
	f, err := c.disk.OpenFile(catalogName, true)
	if err != nil {
		return err
	}
	return errors.Join(c.appendTo(f, line), f.Close())
}

func (c *catalog) appendTo(f recorder.File, line []byte) error {
	if _, err := f.WriteAt(line, c.size); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if c.size == 0 {
		return c.disk.SyncDir(".")
	}
	return nil
}

// count is how many archives there are.
func (c *catalog) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.entries)
}

// rewrite writes the lines that count, and no others.
func (c *catalog) rewrite() error {
	var b []byte
	for _, e := range c.all() {
		b = appendLine(b, lineOf(e))
	}
	if err := writeWhole(c.disk, catalogName, b); err != nil {
		return err
	}
	c.size, c.dead, c.suspect = int64(len(b)), 0, false
	return nil
}

// add enters an archive.
func (c *catalog) add(e *Entry) error { return c.write(lineOf(e)) }

// drop notes that an archive is gone.
func (c *catalog) drop(e *Entry, why string) error {
	now := time.Now().UTC()
	return c.write(catalogLine{ID: e.ID, File: e.File, Gone: &now, Why: why})
}

// find gives the archive of a session; nil where there is none.
func (c *catalog) find(id string) *Entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.entries[idKey(id)]
}

// named gives the archive of a name, in any spelling.
func (c *catalog) named(name string) *Entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.entries[c.names[nameKey(name)]]
}

// same gives an archive with this content.
func (c *catalog) same(root format.Digest) *Entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.entries[c.roots[root]]
}

// madeOf gives the archive that was made of a file of the inbox.
func (c *catalog) madeOf(name string) *Entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.entries[c.from[name]]
}

// all gives the archives, by id.
func (c *catalog) all() []*Entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := make([]*Entry, 0, len(c.entries))
	for _, e := range c.entries {
		list = append(list, e)
	}
	slices.SortFunc(list, func(a, b *Entry) int { return strings.Compare(a.ID, b.ID) })
	return list
}

// ReadSessions gives the ids of the sessions whose archives a data folder has,
// by the archives' names below it.
func ReadSessions(dir string) (map[string]string, error) {
	d, err := openFolder(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	c, _, err := readCatalog(d)
	if err != nil {
		return nil, err
	}
	ids := map[string]string{}
	for _, e := range c.all() {
		ids[e.File] = e.ID
	}
	return ids, nil
}
