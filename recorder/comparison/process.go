package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// usage is what a process has taken so far, and its memory now.
type usage struct {
	cpu    time.Duration
	memory int64
}

// usageOf reads /proc. CPU time comes in steps of clockTick.
func usageOf(pid int) (u usage, err error) {
	read := func(name string) string {
		b, e := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, name))
		err = errors.Join(err, e)
		return string(b)
	}
	stat, status := read("stat"), read("status")
	if err != nil {
		return u, err
	}
	if u.cpu, err = parseCPU(stat); err != nil {
		return u, err
	}
	u.memory, err = parseField(status, "VmRSS")
	return u, err
}

// clockTick is the unit of /proc/PID/stat on every Linux system.
const clockTick = 10 * time.Millisecond

// parseCPU reads user and system time from /proc/PID/stat. Its second field
// is the program's name in parentheses, which may hold anything.
func parseCPU(stat string) (time.Duration, error) {
	const userField, systemField = 14, 15
	end := strings.LastIndexByte(stat, ')')
	fields := strings.Fields(stat[end+1:])
	if end < 0 || len(fields) < systemField-2 {
		return 0, fmt.Errorf("/proc/PID/stat: no times in %.80q", stat)
	}
	var ticks time.Duration
	for _, field := range [...]int{userField, systemField} {
		n, err := strconv.ParseInt(fields[field-3], 10, 64)
		if err != nil {
			return 0, fmt.Errorf("/proc/PID/stat, field %d: %w", field, err)
		}
		ticks += time.Duration(n)
	}
	return ticks * clockTick, nil
}

// parseField reads a line "name: number", in bytes; "kB" behind the number
// stands for 1,024.
func parseField(text, name string) (int64, error) {
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(line, ":")
		if key != name {
			continue
		}
		digits, isKB := strings.CutSuffix(strings.TrimSpace(value), " kB")
		n, err := strconv.ParseInt(digits, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("/proc, line %s: %w", name, err)
		}
		if isKB {
			n *= 1024
		}
		return n, nil
	}
	return 0, fmt.Errorf("/proc: no line %s", name)
}
