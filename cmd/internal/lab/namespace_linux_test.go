package lab

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// inNamespace in the environment tells a test that it has a mount namespace of
// its own.
const inNamespace = "REPRISE_LAB_NAMESPACE"

// cannotMount is how a test inside says that the kernel let it have the
// namespace, but nothing in it.
const cannotMount = "cannot mount in the namespace"

// smallDisk gives the test a folder on a disk of its own of so many bytes: the
// test runs again, alone, in a private namespace, where the disk exists only
// for it. It is nil outside, where the test is over when smallDisk returns.
func smallDisk(t *testing.T, bytes int64) *disk {
	t.Helper()
	if os.Getenv(inNamespace) == "" {
		runInside(t)
		return nil
	}
	dir := t.TempDir()
	// Nothing that is mounted here is to be seen outside.
	err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, "")
	if err == nil {
		err = syscall.Mount("lab", dir, "tmpfs", 0, fmt.Sprintf("size=%d", bytes))
	}
	if err != nil {
		t.Fatalf("%s: %v", cannotMount, err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	return &disk{t: t, dir: dir}
}

// runInside runs the same test in a namespace, and passes on what it says.
func runInside(t *testing.T) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=30m")
	cmd.Env = append(os.Environ(), inNamespace+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}}
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case err != nil && !errors.As(err, &exit):
		t.Skipf("NOT TRIED: this kernel gives no private namespace: %v", err)
	case strings.Contains(string(out), cannotMount):
		t.Skipf("NOT TRIED: this kernel gives a private namespace, but no disk in it:\n%s", out)
	}
	t.Logf("in a private namespace:\n%s", out)
	if err != nil {
		t.Errorf("in the namespace: %v", err)
	}
}

// disk is a small disk.
type disk struct {
	t   testing.TB
	dir string
}

// free is how many bytes can be stored.
func (d *disk) free() int64 {
	d.t.Helper()
	var st syscall.Statfs_t
	if err := syscall.Statfs(d.dir, &st); err != nil {
		d.t.Fatal(err)
	}
	return int64(st.Bavail) * st.Bsize
}

// fill takes room away until so many bytes are free.
func (d *disk) fill(free int64) {
	d.t.Helper()
	n := d.free() - free
	if n <= 0 {
		d.t.Fatalf("only %d bytes are free, not %d", d.free(), free)
	}
	if err := os.WriteFile(d.ballast(), make([]byte, n), 0o600); err != nil {
		d.t.Fatal(err)
	}
}

// release gives the room back.
func (d *disk) release() {
	d.t.Helper()
	if err := os.Remove(d.ballast()); err != nil {
		d.t.Fatal(err)
	}
}

func (d *disk) ballast() string { return d.dir + "/ballast" }
