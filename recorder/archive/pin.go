package archive

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"time"

	"reprise/format"
)

// A pin keeps a replay from being removed. It is a file of its own,
// pins/pin-<id in lower case>, so that it outlives the replay's moves, can be
// set while the daemon runs and while it does not, and is there whole or not
// at all. What is in it is for people: a pin that cannot be read holds, too.

const (
	pinFolder = "pins"
	pinPrefix = "pin-"
)

// Why a replay is pinned. The words are stored and must not change.
const (
	// PinByHand: somebody said so.
	PinByHand = "hand"
	// PinDesync: a peer's state hash differs from another's, or from the
	// recorded one.
	PinDesync = "desync"
	// PinMarked: it has a mark of a kind that pins.
	PinMarked = "marked"
	// PinClipped: a clip was cut from it.
	PinClipped = "clipped"
)

// Pin says why a replay is kept.
type Pin struct {
	Session string    `json:"session"`
	Kind    string    `json:"kind"`
	Reason  string    `json:"reason,omitempty"`
	Since   time.Time `json:"since"`
	// Released is set for a pin that the archiver had set and somebody took
	// back: it holds nothing, and is not set again.
	Released bool `json:"released,omitempty"`
}

func (p Pin) String() string {
	if p.Reason == "" {
		return p.Kind
	}
	return p.Kind + ": " + p.Reason
}

// Pins are those of a data folder.
type Pins struct{ disk Disk }

// OpenPins opens the pins of a data folder. Close releases them.
func OpenPins(dir string) (Pins, error) {
	d, err := openFolder(dir)
	if err != nil {
		return Pins{}, err
	}
	return Pins{d}, nil
}

// Close releases the data folder.
func (p Pins) Close() error {
	if d, ok := p.disk.(*folder); ok {
		return d.Close()
	}
	return nil
}

func pinName(id string) string { return path.Join(pinFolder, pinPrefix+idKey(id)) }

// Set pins a session's replay. It takes the place of the pin before it.
func (p Pins) Set(pin Pin) error {
	if err := format.ValidSession(pin.Session); err != nil {
		return err
	}
	if err := makeFolder(p.disk, pinFolder); err != nil {
		return err
	}
	// A pin of strings and a time always becomes JSON.
	b, _ := json.Marshal(pin)
	return writeWhole(p.disk, pinName(pin.Session), append(b, '\n'))
}

// setOnce pins what has never been pinned.
func (p Pins) setOnce(pin Pin) (bool, error) {
	there, err := exists(p.disk, pinName(pin.Session))
	if err != nil || there {
		return false, err
	}
	return true, p.Set(pin)
}

// Release takes a pin back; false where there was none.
func (p Pins) Release(id string) (bool, error) {
	pin, ok, err := p.find(id)
	if err != nil || !ok || pin.Released {
		return false, err
	}
	if pin.Kind == PinDesync || pin.Kind == PinMarked {
		pin.Released = true
		return true, p.Set(pin)
	}
	if err := p.disk.Remove(pinName(id)); err != nil {
		return false, err
	}
	return true, p.disk.SyncDir(pinFolder)
}

// Find gives the pin that holds a session's replay; false where none does.
func (p Pins) Find(id string) (Pin, bool, error) {
	pin, ok, err := p.find(id)
	return pin, ok && !pin.Released, err
}

func (p Pins) find(id string) (Pin, bool, error) {
	b, err := readWhole(p.disk, pinName(id))
	if errors.Is(err, fs.ErrNotExist) {
		return Pin{}, false, nil
	}
	if err != nil {
		return Pin{}, false, err
	}
	var pin Pin
	if json.Unmarshal(b, &pin) != nil {
		return Pin{Session: id, Kind: PinByHand, Reason: "the pin cannot be read"}, true, nil
	}
	return pin, true, nil
}

// All gives the pins that hold, by lower-case id.
func (p Pins) All() (map[string]Pin, error) {
	names, err := p.disk.List(pinFolder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	all := map[string]Pin{}
	for _, name := range names {
		id, ok := strings.CutPrefix(name, pinPrefix)
		if !ok || strings.HasSuffix(name, workSuffix) {
			continue
		}
		pin, found, err := p.Find(id)
		if err != nil {
			return nil, fmt.Errorf("reading the pin of session %s: %w", id, err)
		}
		if found {
			all[id] = pin
		}
	}
	return all, nil
}
