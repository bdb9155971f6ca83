package daemon

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"reprise/transport"
)

// Files of the folder tls of the data folder, beside the self-signed
// certificate. They must not change.
const (
	tlsFolder = "tls"
	// fingerprintName holds the fingerprint of the certificate in use, for
	// clients to pin.
	fingerprintName = "fingerprint"
	// resetKeyName holds the key by which a daemon that was restarted tells
	// clients that their old connections are gone.
	resetKeyName = "reset-key"
)

func (d *Daemon) tlsFile(name string) string { return filepath.Join(d.cfg.Data, tlsFolder, name) }

// openPair loads the certificate, or makes one, and writes its fingerprint
// beside the data.
func (d *Daemon) openPair() (err error) {
	folder := filepath.Join(d.cfg.Data, tlsFolder)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	if d.cfg.TLSCert != "" {
		d.pair, err = transport.LoadKeypair(d.cfg.TLSCert, d.cfg.TLSKey)
	} else {
		d.pair, err = transport.SelfSigned(folder)
	}
	if err != nil {
		return err
	}
	return d.writeFingerprint()
}

func (d *Daemon) writeFingerprint() error {
	path, text := d.tlsFile(fingerprintName), d.pair.Fingerprint().String()+"\n"
	// A full disk must not keep a daemon from starting that needs no room.
	if b, err := os.ReadFile(path); err == nil && string(b) == text {
		return nil
	}
	return writeWhole(path, text, 0o644)
}

// resetKey reads the reset key, or makes one. One that cannot be read as such
// is replaced: clients then only take longer to notice the restart.
func resetKey(path string) (*[32]byte, error) {
	b, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if key, err := hex.DecodeString(strings.TrimSpace(string(b))); err == nil && len(key) == resetKeyBytes {
		return (*[resetKeyBytes]byte)(key), nil
	}
	var key [resetKeyBytes]byte
	rand.Read(key[:])
	return &key, writeWhole(path, hex.EncodeToString(key[:])+"\n", 0o600)
}

const resetKeyBytes = 32

// writeWhole makes a file appear with all its bytes, or leaves the one that
// is there.
func writeWhole(path, text string, mode fs.FileMode) error {
	name := path + ".new"
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	return os.Rename(name, path)
}
