//go:build unix

package app

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// hostileFolder has goodFiles replays among whatever may stand beside them.
// It returns what ls must say of each bad entry.
func hostileFolder(t *testing.T) (folder string, bad map[string]string) {
	t.Helper()
	// A socket's path is short.
	folder, err := os.MkdirTemp("", "ls")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		os.Chmod(filepath.Join(folder, "shut"), 0o755)
		os.RemoveAll(folder)
	})
	at := func(name string) string { return filepath.Join(folder, name) }
	fillWithReplays(t, folder)
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: at("socket.rply"), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	for _, err := range []error{
		os.Chmod(folder, 0o755),
		os.WriteFile(at("empty.rply"), nil, 0o644),
		os.WriteFile(at("text.rply"), []byte("no replay"), 0o644),
		os.WriteFile(at("secret.rply"), []byte("secret"), 0o000),
		os.Mkdir(at("folder.rply"), 0o755),
		os.Mkdir(at("shut"), 0o000),
		os.Symlink(at("nothing"), at("dangling.rply")),
		os.Symlink(at("loop.rply"), at("loop.rply")),
		os.Symlink(folder, at("again")),
		syscall.Mkfifo(at("pipe.rply"), 0o644),
		os.Mkdir(at("readonly"), 0o755),
		os.WriteFile(at("readonly/good.rply"), replayBytes(t), 0o444),
		os.Chmod(at("readonly"), 0o555),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { os.Chmod(at("readonly"), 0o755) })
	return folder, map[string]string{
		"empty.rply": "not a replay: no magic at offset 0, the file is empty", "text.rply": "not a replay: no known magic at offset 0",
		"secret.rply": "permission denied", "shut": "permission denied", "folder.rply": "not a replay: not a regular file",
		"dangling.rply": "no such file or directory", "loop.rply": "too many levels of symbolic links",
		"pipe.rply": "not a replay: not a regular file", "socket.rply": "not a replay: not a regular file",
	}
}

const goodFiles = 1000

func replayBytes(t *testing.T) []byte {
	b, err := sample{ticks: 20}.bytes()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func fillWithReplays(t *testing.T, folder string) {
	t.Helper()
	b := replayBytes(t)
	for i := range goodFiles {
		if err := os.WriteFile(filepath.Join(folder, fmt.Sprintf("good-%04d.rply", i)), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// asNobody runs the program as a user without rights, where this one has all.
func asNobody(t *testing.T, args ...string) result {
	t.Helper()
	self, err := exec.LookPath("reprise")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, args...)
	cmd.Args[0] = "reprise"
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if os.Getuid() == 0 {
		public := filepath.Join(t.TempDir(), "reprise")
		b, err := os.ReadFile(self)
		if err == nil {
			err = os.WriteFile(public, b, 0o755)
		}
		for folder := filepath.Dir(public); err == nil && folder != os.TempDir() && len(folder) > 1; folder = filepath.Dir(folder) {
			err = os.Chmod(folder, 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
		cmd.Path = public
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	timeout := time.AfterFunc(time.Minute, func() { cmd.Process.Kill() })
	defer timeout.Stop()
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Skip("no other user can be used here:", err)
	}
	return result{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// One bad entry of a folder hides none of the others, and holds nothing up.
func TestListOfAHostileFolder(t *testing.T) {
	folder, bad := hostileFolder(t)
	r := asNobody(t, "ls", folder)
	if r.code != exitDamaged {
		t.Errorf("exit code %d", r.code)
	}
	if lines := strings.Count(r.stdout, "\n"); lines != goodFiles+2 || strings.Count(r.stdout, "good-") != goodFiles || !strings.Contains(r.stdout, "readonly/good.rply") {
		t.Errorf("%d lines, want a head, %d files and one in a folder:\n%.2000s", lines, goodFiles, r.stdout)
	}
	for name, why := range bad {
		if want := fmt.Sprintf("reprise: %s: %s\n", filepath.Join(folder, name), why); strings.Count(r.stderr, want) != 1 {
			t.Errorf("%q is not there once", want)
		}
	}
	if lines := strings.Count(r.stderr, "\nreprise: "+folder) + 1; lines != len(bad) {
		t.Errorf("%d complaints, want %d:\n%s", lines, len(bad), r.stderr)
	}
	if r := asNobody(t, "verify", "--json", filepath.Join(folder, "secret.rply"), filepath.Join(folder, "readonly")); r.code != exitNotTried ||
		!strings.Contains(r.stdout, `"status":"not tried","exit":3,"problem":"permission denied"`) || strings.Count(r.stdout, `"exit":0`) != 1 {
		t.Errorf("verify: %d %s", r.code, r.stdout)
	}
	if r := asNobody(t, "play", "--speed", "max", filepath.Join(folder, "readonly", "good.rply")); r.code != exitOK {
		t.Errorf("play from a folder without rights to write: %d %s", r.code, r.stderr)
	}
}

// Every command gives an answer to what is no file.
func TestNoCommandWaitsForAPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe.rply")
	if err := syscall.Mkfifo(path, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"info", path}, {"ls", path}, {"cat", path}, {"check", path}, {"verify", path}, {"play", path},
		{"repair", path, "-o", path + "x"}, {"convert", path, path + "x.rply"}} {
		if r := reprise(args...); r.code != exitDamaged {
			t.Errorf("%v: %d %s", args, r.code, r.stderr)
		}
	}
}
