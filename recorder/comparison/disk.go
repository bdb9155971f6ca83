package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// disk is the file system, and the device below it, that the servers write
// to.
type disk struct {
	mount
	// stat is the device's statistics.
	stat string
}

// diskOf finds the disk of a folder.
func diskOf(dir string) (*disk, error) {
	path, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return nil, err
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	m, err := parseMounts(string(mounts), path)
	if err != nil {
		return nil, err
	}
	d := &disk{mount: m, stat: "/sys/dev/block/" + m.device + "/stat"}
	if m.inMemory() {
		return nil, fmt.Errorf("%s is in memory (%s), where a sync costs nothing: name a folder on a disk with -dir", dir, m.fs)
	}
	if _, err := os.Stat(d.stat); err != nil {
		return nil, fmt.Errorf("%s is on %s, which does not tell what it writes: name a folder on another file system with -dir (%w)", dir, m.fs, err)
	}
	return d, nil
}

// written is how many bytes the device was given so far, by anyone. The
// counter of a process is no use here: it counts every overwritten page with
// all pages that the kernel holds together with it.
func (d *disk) written() (int64, error) {
	b, err := os.ReadFile(d.stat)
	if err != nil {
		return 0, err
	}
	return parseWritten(string(b))
}

// background is how many bytes a second the disk is given by others, looked
// at for a moment.
func (d *disk) background(ctx context.Context) (float64, error) {
	settle()
	before, err := d.written()
	if err != nil {
		return 0, err
	}
	if err := sleep(ctx, time.Second); err != nil {
		return 0, err
	}
	after, err := d.written()
	return float64(after - before), err
}

// parseWritten reads the written sectors from a device's statistics.
func parseWritten(stat string) (int64, error) {
	const field, sector = 7, 512
	fields := strings.Fields(stat)
	if len(fields) < field {
		return 0, fmt.Errorf("a block device's statistics: no field %d in %.80q", field, stat)
	}
	n, err := strconv.ParseInt(fields[field-1], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("a block device's statistics, field %d: %w", field, err)
	}
	return n * sector, nil
}

// mount is a mounted file system; device is "major:minor".
type mount struct{ fs, device string }

// inMemory tells whether a sync on such a file system costs nothing.
func (m mount) inMemory() bool { return m.fs == "tmpfs" || m.fs == "ramfs" }

// parseMounts finds the mount that holds path in /proc/self/mountinfo. Of
// mounts on one point the last one counts.
func parseMounts(mountinfo, path string) (m mount, err error) {
	longest := -1
	for line := range strings.Lines(mountinfo) {
		// The fields before the separator vary in number.
		before, after, _ := strings.Cut(line, " - ")
		fields, behind := strings.Fields(before), strings.Fields(after)
		if len(fields) < 6 || len(behind) < 1 {
			continue
		}
		point := unescape(fields[4])
		below := path == point || strings.HasPrefix(path, strings.TrimSuffix(point, "/")+"/")
		if below && len(point) >= longest {
			m, longest = mount{behind[0], fields[2]}, len(point)
		}
	}
	if longest < 0 {
		return m, fmt.Errorf("/proc/self/mountinfo: no mount holds %s", path)
	}
	return m, nil
}

// unescape turns the octal escapes of a mount point back.
func unescape(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}
