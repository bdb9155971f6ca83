package ship

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"reprise/transport"
)

// record is what is kept about one file, as JSON in the state folder:
//
//	SESSION.json   the session's id in small letters: ids are unique without
//	               regard to case
//
// Offset and Sum are written before what lies in front of Offset is sent. So
// the daemon never has more of the file than they vouch for, whenever ship is
// killed.
type record struct {
	Version int `json:"version"`
	// File is the file's name with odd bytes escaped as in an address.
	File    string `json:"file"`
	Session string `json:"session"`
	// Named is set where the file names no session itself.
	Named bool   `json:"named,omitempty"`
	Key   string `json:"key"`
	// Start is in the upper half of every epoch: it grows with each start.
	Start uint64 `json:"start"`
	// Head is the SHA-256 of the file up to its first own chunk.
	Head string `json:"head"`
	// Offset is how much of the file may have been sent, Sum the SHA-256 of
	// that.
	Offset int64  `json:"offset"`
	Sum    string `json:"sum"`
	// Ending is why the session ends unfinished at Offset; Ended is set once
	// the daemon knows. Such a session is never gone on with.
	Ending string `json:"ending,omitempty"`
	Ended  bool   `json:"ended,omitempty"`
	// Left is how the file looked when it was left unfinished.
	Left *stamp `json:"left,omitempty"`
	// Sealed is set once the daemon has sealed what the file holds.
	Sealed *sealedAs `json:"sealed,omitempty"`

	// active is set while a parcel has the record; the book guards it.
	active bool
}

// sealedAs says as what a file was sealed, and how it looked then.
type sealedAs struct {
	Digest string `json:"digest"`
	Name   string `json:"name"`
	stamp
}

// stamp is how a file looks from outside.
type stamp struct {
	Size     int64     `json:"size"`
	Modified time.Time `json:"modified"`
}

func stampOf(st fs.FileInfo) stamp { return stamp{st.Size(), st.ModTime()} }

// fits tells whether a file looks like that; no file looks like nil.
func (s *stamp) fits(st fs.FileInfo) bool {
	return s != nil && s.Size == st.Size() && s.Modified.Equal(st.ModTime())
}

// recordVersion is stored in records. It must not change its meaning.
const recordVersion = 1

// startShift leaves the lower half of an epoch to the connections of one
// start.
const startShift = 32

func newRecord(file string, c *claim) *record {
	var k key
	rand.Read(k[:])
	r := &record{Version: recordVersion, Session: c.session, Named: c.named, Key: hex.EncodeToString(k[:]), Head: c.head}
	r.setFile(file)
	return r
}

func (r *record) setFile(name string) { r.File = url.PathEscape(name) }

// file is the file's name.
func (r *record) file() string {
	name, err := url.PathUnescape(r.File)
	if err != nil {
		return r.File
	}
	return name
}

// key is the producer's key.
func (r *record) key() (k key) {
	hex.Decode(k[:], []byte(r.Key)) // check has seen that it can
	return k
}

// begin numbers this start above every earlier one, also where the record
// of the last one was lost.
func (r *record) begin() { r.Start = max(r.Start+1, uint64(time.Now().Unix())) }

// check refuses what was not written by save.
func (r *record) check() error {
	k, err := hex.DecodeString(r.Key)
	switch {
	case r.Version != recordVersion:
		return fmt.Errorf("it has version %d, this program reads version %d", r.Version, recordVersion)
	case err != nil || len(k) != transport.KeySize:
		return fmt.Errorf("its key is not %d hex digits", 2*transport.KeySize)
	case r.Session == "" || r.File == "" || r.Offset < 0:
		return errors.New("it names no session, no file or no offset")
	}
	return nil
}

const recordSuffix = ".json"

// recordName is the name of a session's record.
func recordName(session string) string { return strings.ToLower(session) + recordSuffix }

// save writes the record so that it appears with all its bytes. With sync it
// is on disk then.
func (r *record) save(dir string, sync bool) error {
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	path := filepath.Join(dir, recordName(r.Session))
	temporary := path + ".new"
	f, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(b, '\n'))
	if err == nil && sync {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Rename(temporary, path); err != nil || !sync {
		return err
	}
	return syncFolder(dir)
}

func loadRecord(path string) (*record, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	r := &record{}
	if err := json.Unmarshal(b, r); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if err := r.check(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}

// syncFolder makes renames in a folder durable. Some systems cannot open
// folders for that.
func syncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Sync(); err != nil && !errors.Is(err, fs.ErrPermission) && !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	return nil
}
