package app

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestNewFileIsWholeOrNotThere(t *testing.T) {
	broken := errors.New("broken")
	interrupted, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		name  string
		ctx   context.Context
		write func(newFile) error
		want  error
	}{
		{"whole", t.Context(), func(f newFile) error { _, err := f.Write([]byte("new")); return err }, nil},
		{"failure", t.Context(), func(f newFile) error { f.Write([]byte("half")); return broken }, broken},
		{"interrupted", interrupted, func(f newFile) error { _, err := f.Write([]byte("new")); return err }, context.Canceled},
		{"copied", interrupted, func(f newFile) error { _, err := io.Copy(f, strings.NewReader("new")); return err }, context.Canceled},
	} {
		folder := t.TempDir()
		err := writeNew(c.ctx, filepath.Join(folder, "out"), c.write)
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
		if c.want != nil {
			expectOnly(t, folder)
		} else if expectOnly(t, folder, "out"); content(t, filepath.Join(folder, "out")) != "new" {
			t.Errorf("%s: something else was written", c.name)
		}
	}
}

// A name that is taken is not touched, also where it is taken while the file
// is being written.
func TestNewFileNeverOverwrites(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "out")
	for _, takenEarly := range []bool{true, false} {
		called := false
		take := func() {
			if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if takenEarly {
			take()
		}
		err := writeNew(t.Context(), path, func(f newFile) error {
			called = true
			take()
			_, err := f.Write([]byte("new"))
			return err
		})
		if exitCode(err) != exitUsage || called == takenEarly || content(t, path) != "old" {
			t.Errorf("taken early %v: %v, called %v, now %q", takenEarly, err, called, content(t, path))
		}
		expectOnly(t, folder, "out")
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}

// A dangling link is a name that is taken: nothing is written through it.
func TestNewFileDoesNotFollowLinks(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "out")
	if err := os.Symlink(filepath.Join(folder, "elsewhere"), path); err != nil {
		t.Skip("no symbolic links here:", err)
	}
	err := writeNew(t.Context(), path, func(newFile) error { return nil })
	if exitCode(err) != exitUsage {
		t.Error(err)
	}
	expectOnly(t, folder, "out")
}

func content(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
