package keys

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"

	"reprise/format"
)

// privateBlock is the type of the PEM block of a private key.
const privateBlock = "PRIVATE KEY"

// Generate makes a key, and writes it to path, for its owner alone to read,
// and its public line, with name, to path.pub. Neither file may exist.
func Generate(path, name string) (Public, error) {
	if err := checkName(name); err != nil {
		return Public{}, err
	}
	for _, p := range [...]string{path, path + ".pub"} {
		if _, err := os.Lstat(p); err == nil {
			return Public{}, fmt.Errorf("%s: %w: a key is never overwritten", p, fs.ErrExist)
		}
	}
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return Public{}, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return Public{}, err
	}
	p := Public{Key: format.PublicKey(public), Name: name}
	if err := create(path, 0o600, pem.EncodeToMemory(&pem.Block{Type: privateBlock, Bytes: der})); err != nil {
		return Public{}, err
	}
	if err := create(path+".pub", 0o644, []byte(p.String()+"\n")); err != nil {
		return Public{}, errors.Join(err, os.Remove(path))
	}
	return p, nil
}

// create writes a file that was not there.
func create(path string, mode fs.FileMode, content []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return nil
}

// ReadPrivate reads a private key. One that everybody can read is refused:
// whoever has it signs in its owner's name.
func ReadPrivate(path string) (ed25519.PrivateKey, error) {
	b, err := readSmall(path)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(b)
	if block == nil || block.Type != privateBlock {
		return nil, fmt.Errorf("%s is no private key: make one with \"reprise keygen\"", path)
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	private, ok := key.(ed25519.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("%s holds a %T, signatures are by ed25519: make a key with \"reprise keygen\"", path, key)
	}
	return private, onlyForSome(path)
}

// onlyForSome refuses a file that everybody can read.
func onlyForSome(path string) error {
	st, err := os.Stat(path)
	if err == nil && runtime.GOOS != "windows" && st.Mode().Perm()&0o007 != 0 {
		err = fmt.Errorf("%s can be read by everybody: chmod 600 %s", path, path)
	}
	return err
}
