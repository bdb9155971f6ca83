package main

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
)

// machine describes what the figures are taken on, in one line.
func machine(d *disk) (string, error) {
	kernel, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return "", err
	}
	cpu, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%d cores, %s, Linux %s, %s, %s", runtime.NumCPU(), parseModel(string(cpu)), strings.TrimSpace(string(kernel)), d.fs, runtime.Version()), nil
}

// loadAverage is that of the last minute.
func loadAverage() string {
	b, err := os.ReadFile("/proc/loadavg")
	first, _, ok := strings.Cut(string(b), " ")
	if err != nil || !ok {
		return none
	}
	return first
}

// parseModel reads the processor's name from /proc/cpuinfo. Some
// architectures do not tell it.
func parseModel(cpuinfo string) string {
	for line := range strings.Lines(cpuinfo) {
		key, value, _ := strings.Cut(line, ":")
		if strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "processor unknown"
}

// versionOf is that of a module this program is built with.
func versionOf(module string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "of unknown version"
	}
	for _, m := range info.Deps {
		if m.Path == module {
			return m.Version
		}
	}
	return "of unknown version"
}
