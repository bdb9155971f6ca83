package archive

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Template makes the names of archives, as in
// archive/<yyyy>/<mm>/<dd>/room-<id>-<start>.rply. Fields are yyyy, mm, dd, hh
// and start for when the session started, in UTC, and game, id and build.
type Template struct{ text string }

// DefaultTemplate is a folder for every day.
const DefaultTemplate = "archive/<yyyy>/<mm>/<dd>/room-<id>-<start>.rply"

const (
	archiveFolder = "archive"
	replayEnding  = ".rply"

	// maxTemplate bounds a template, maxPart what one part of a name grows to:
	// no file system takes more than 255 bytes, and a replay may get further
	// endings.
	maxTemplate = 200
	maxPart     = 200
	// maxField bounds what a game or a build adds to a name.
	maxField = 48
)

// startLayout is how a session's start stands in a name.
const startLayout = "20060102T150405Z"

// Facts are what a name is made of.
type Facts struct {
	ID, Game, Build string
	Start           time.Time
}

var templateFields = map[string]func(Facts) string{
	"yyyy":  func(f Facts) string { return f.Start.Format("2006") },
	"mm":    func(f Facts) string { return f.Start.Format("01") },
	"dd":    func(f Facts) string { return f.Start.Format("02") },
	"hh":    func(f Facts) string { return f.Start.Format("15") },
	"start": func(f Facts) string { return f.Start.Format(startLayout) },
	"id":    func(f Facts) string { return f.ID },
	"game":  func(f Facts) string { return fieldText(f.Game) },
	"build": func(f Facts) string { return fieldText(f.Build) },
}

var (
	templateField = regexp.MustCompile(`<([^<>]*)>`)
	unsafeInName  = regexp.MustCompile(`[^A-Za-z0-9._-]`)
)

// ParseTemplate reads a template. What it takes cannot lead out of the archive
// folder, and is a legal name on every system.
func ParseTemplate(text string) (Template, error) {
	if len(text) > maxTemplate {
		return Template{}, fmt.Errorf("%d characters: use at most %d", len(text), maxTemplate)
	}
	for _, m := range templateField.FindAllStringSubmatch(text, -1) {
		if templateFields[m[1]] == nil {
			return Template{}, fmt.Errorf("%q has the unknown field <%s>: use <yyyy>, <mm>, <dd>, <hh>, <start>, <game>, <id>, <build>", text, m[1])
		}
	}
	parts := strings.Split(text, "/")
	for _, part := range parts {
		plain := templateField.ReplaceAllString(part, "")
		switch {
		case part == "" || part[0] == '.':
			return Template{}, fmt.Errorf("%q has the part %q: write %s/… with / between names that begin with no point", text, part, archiveFolder)
		case unsafeInName.MatchString(plain):
			return Template{}, fmt.Errorf("%q has %q in a name: use letters, digits, . _ - and fields", text, unsafeInName.FindString(plain))
		}
	}
	last := parts[len(parts)-1]
	switch {
	case len(parts) < 2 || parts[0] != archiveFolder:
		return Template{}, fmt.Errorf("%q is not below the archive folder: begin it with %s/", text, archiveFolder)
	case !strings.HasSuffix(last, replayEnding) || last == replayEnding:
		return Template{}, fmt.Errorf("%q does not end in %s, the ending of replays", text, replayEnding)
	case !strings.Contains(last, "<id>"):
		return Template{}, fmt.Errorf("%q has no <id> behind the last /: two sessions could not be told apart", text)
	}
	return Template{text}, nil
}

// String is the template as it was written.
func (t Template) String() string { return t.text }

// Name is the name for a session, and another one for each number above 1, for
// where it is taken.
func (t Template) Name(f Facts, number int) string {
	f.Start = f.Start.UTC()
	parts := strings.Split(t.text, "/")
	for i, part := range parts {
		part = templateField.ReplaceAllStringFunc(part, func(field string) string { return templateFields[field[1:len(field)-1]](f) })
		if i < len(parts)-1 {
			parts[i] = safePart(part, "")
			continue
		}
		ending := replayEnding
		if number > 1 {
			ending = fmt.Sprintf("-%d%s", number, replayEnding)
		}
		parts[i] = safePart(strings.TrimSuffix(part, replayEnding), ending)
	}
	return path.Join(parts...)
}

// fieldText makes free text a piece of a name.
func fieldText(s string) string {
	if s == "" {
		return "unknown"
	}
	if s = unsafeInName.ReplaceAllString(s, "_"); len(s) > maxField {
		s = s[:maxField]
	}
	return s
}

// reservedNames are devices on Windows, whatever stands behind a point.
var reservedNames = []string{"con", "prn", "aux", "nul", "com0", "com1", "com2", "com3", "com4", "com5", "com6", "com7", "com8", "com9",
	"lpt0", "lpt1", "lpt2", "lpt3", "lpt4", "lpt5", "lpt6", "lpt7", "lpt8", "lpt9"}

// safePart makes one part of a name legal everywhere, and hides it nowhere. A
// folder is never called like a replay.
func safePart(s, ending string) string {
	if most := maxPart - len(ending); len(s) > most {
		s = s[:most]
	}
	stem, _, _ := strings.Cut(strings.ToLower(s), ".")
	if slices.Contains(reservedNames, stem) || s == "" || s[0] == '.' {
		s = "_" + s
	}
	if ending == "" && (strings.HasSuffix(s, ".") || strings.HasSuffix(strings.ToLower(s), replayEnding)) {
		s += "_"
	}
	return s + ending
}

// nameKey is how names are compared: file systems may not tell the case.
func nameKey(name string) string { return strings.ToLower(name) }
