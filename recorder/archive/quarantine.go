package archive

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"time"

	"reprise/format"
)

// quarantine sets a file of the inbox aside, with the reason in a file beside
// it.
func (a *Archiver) quarantine(name string, why error) error {
	if err := makeFolder(a.disk, quarantineFolder); err != nil {
		return err
	}
	to, err := a.quarantineName(path.Base(name))
	if err != nil {
		return err
	}
	if err := writeWhole(a.disk, to+reasonEnding, []byte(reasonText(name, why))); err != nil {
		return err
	}
	err = a.disk.Rename(name, to)
	if errors.Is(err, fs.ErrNotExist) {
		return errors.Join(a.disk.Remove(to+reasonEnding), a.disk.SyncDir(quarantineFolder))
	}
	if err == nil {
		err = errors.Join(a.disk.SyncDir(quarantineFolder), a.disk.SyncDir(inboxFolder))
	}
	if err == nil {
		a.stats.quarantined.Add(1)
		a.log.Warn("file set aside", "file", to, "from", name, "reason", why)
	}
	return err
}

const reasonEnding = ".reason"

// reasonText is for whoever finds the file.
func reasonText(name string, why error) string {
	hint := "Put it into the inbox again once the reason is gone."
	switch _, duplicate := errors.AsType[*duplicateError](why); {
	case duplicate:
		hint = "Nothing is lost if this copy is deleted."
	case errors.Is(why, format.ErrTorn), errors.Is(why, format.ErrCorrupt):
		hint = `"reprise repair FILE -o OUT" keeps what is intact; put OUT into the inbox.`
	case errors.Is(why, format.ErrNewer):
		hint = "Put it into the inbox again after an update of the daemon."
	}
	return fmt.Sprintf("%q: %v\n%s\nSet aside at %s.\n", name, why, hint, time.Now().UTC().Format(time.RFC3339))
}

// quarantineName finds a name in the quarantine that is free.
func (a *Archiver) quarantineName(base string) (string, error) {
	stem, ending, _ := strings.Cut(base, ".")
	if ending != "" {
		ending = "." + ending
	}
	for n := 1; n <= maxNames; n++ {
		name := path.Join(quarantineFolder, base)
		if n > 1 {
			name = path.Join(quarantineFolder, fmt.Sprintf("%s-%d%s", stem, n, ending))
		}
		there, err := exists(a.disk, name)
		if err != nil || !there {
			return name, err
		}
	}
	return "", fmt.Errorf("%s has %d files of the name %s: empty it", quarantineFolder, maxNames, base)
}
