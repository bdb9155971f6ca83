package app

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"reprise/format"
	"reprise/player"
	"reprise/player/process"
)

const keyframesHelp = "read the keyframes made in an earlier run from this side file, and write the new ones to it"

// keyframeFile is a side file of keyframes for one replay and its simulation.
// A nil one reads and writes nothing.
type keyframeFile struct {
	path       string
	simulation string
}

// openKeyframes readies the side file at path, which need not be there; nil
// where path is empty. A file that is something else is refused.
func openKeyframes(path string, o *simOptions, r *replay) (*keyframeFile, error) {
	if path == "" {
		return nil, nil
	}
	if sameFile(path, r.path) {
		return nil, usagef("--keyframes %s: that is the replay", printable(path))
	}
	if err := checkKeyframeFile(path); err != nil {
		return nil, err
	}
	identity, err := o.identity(r.Summary().Meta)
	if err != nil {
		return nil, err
	}
	return &keyframeFile{path, identity}, nil
}

// checkKeyframeFile refuses what must not be overwritten.
func checkKeyframeFile(path string) error {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("--keyframes %s: %w", printable(path), cause(err))
	}
	defer f.Close()
	begin := make([]byte, player.KeyframeFileMagic)
	n, err := io.ReadFull(f, begin)
	switch {
	case err == io.EOF:
		return nil
	case err != nil && err != io.ErrUnexpectedEOF:
		return fmt.Errorf("--keyframes %s: %w", printable(path), cause(err))
	case !player.IsKeyframeFile(begin[:n]):
		return usagef("--keyframes %s: that file holds something else, and is not overwritten", printable(path))
	}
	return nil
}

// read gives the side file's keyframes to a playback that has not moved, and
// gives their number. What cannot be used is said, and is no error: play goes on
// without it.
func (k *keyframeFile) read(p *player.Playback, stderr io.Writer) int {
	if k == nil {
		return 0
	}
	f, err := os.Open(k.path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0
	}
	n := 0
	if err == nil {
		n, err = p.ReadKeyframes(f, k.simulation, player.KeyframeFileLimit)
		f.Close()
	}
	if err != nil {
		say(stderr, "%s: %v", printable(k.path), cause(err))
	}
	return n
}

// write writes the playback's keyframes, where it has made any: under a
// temporary name until they are whole.
func (k *keyframeFile) write(p *player.Playback, stderr io.Writer) error {
	if k == nil {
		return nil
	}
	if !p.Rewinds() {
		say(stderr, "%s is not written: the game's state cannot be kept", printable(k.path))
		return nil
	}
	if made, _ := p.Kept(); made == 0 {
		return nil
	}
	if err := k.replace(p); err != nil {
		return fmt.Errorf("--keyframes %s: %w", printable(k.path), cause(err))
	}
	return nil
}

func (k *keyframeFile) replace(p *player.Playback) error {
	f, err := os.CreateTemp(filepath.Dir(k.path), ".reprise-*.tmp")
	if err != nil {
		return err
	}
	_, err = p.WriteKeyframes(f, k.simulation, player.KeyframeFileLimit)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), k.path)
	}
	if err != nil {
		return errors.Join(err, removeIfThere(f.Name()))
	}
	return nil
}

// identity identifies the code that simulates a replay: this program, the files
// of a child's command line, or a module.
func (o *simOptions) identity(meta *format.Metadata) (string, error) {
	spec, err := o.specFor(meta)
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	command, isExec := strings.CutPrefix(spec, execPrefix)
	module, isModule := strings.CutPrefix(spec, wasmPrefix)
	switch {
	case isExec:
		err = addCommand(sum, command)
		return "exec " + hex.EncodeToString(sum.Sum(nil)), err
	case isModule:
		err = addFile(sum, module)
		return "wasm " + hex.EncodeToString(sum.Sum(nil)), err
	}
	program, err := os.Executable()
	if err == nil {
		err = addFile(sum, program)
	}
	return fmt.Sprintf("linked %s", hex.EncodeToString(sum.Sum(nil))), err
}

// addCommand adds every word of a command line, and the contents of those that
// are files: the program, and a script that it runs.
func addCommand(sum io.Writer, command string) error {
	words, err := process.Split(command)
	if err != nil {
		return err
	}
	for i, word := range words {
		fmt.Fprintf(sum, "%q\n", word)
		path := word
		if i == 0 {
			if path, err = exec.LookPath(word); err != nil {
				return fmt.Errorf("%w: %w", process.ErrCommand, err)
			}
		}
		if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
			continue
		}
		if err := addFile(sum, path); err != nil {
			return err
		}
	}
	return nil
}

// addFile adds the hash of a file's contents.
func addFile(sum io.Writer, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("%s: %w", printable(path), cause(err))
	}
	defer f.Close()
	content := sha256.New()
	if _, err := io.Copy(content, f); err != nil {
		return fmt.Errorf("%s: %w", printable(path), cause(err))
	}
	_, err = sum.Write(content.Sum(nil))
	return err
}
