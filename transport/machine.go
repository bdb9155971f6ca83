package transport

import (
	"bufio"
	"io"
	"os"
	"strings"
	"sync"
	"unicode"

	"reprise/format"
)

// Machine gives the facts of this machine that a recording holds in its Env:
// operating system, architecture, processor, float arithmetic. None of them
// tells whose machine it is, or where.
func Machine() []format.Label { return format.Machine(cpuModel()) }

// cpuModel is the processor's model as Linux tells it; empty elsewhere.
var cpuModel = sync.OnceValue(func() string {
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	defer f.Close()
	return parseCPUModel(f)
})

const (
	// mostCPUInfo is how much of the list of processors is read: they are
	// mostly alike, and the first one is near the beginning.
	mostCPUInfo = 64 << 10
	// mostModel bounds the model's name.
	mostModel = 100
)

// parseCPUModel finds the model's name or, where a processor has only numbers,
// the maker's and the part's.
func parseCPUModel(r io.Reader) string {
	var maker, part string
	lines := bufio.NewScanner(io.LimitReader(r, mostCPUInfo))
	for lines.Scan() {
		key, value, _ := strings.Cut(lines.Text(), ":")
		value = strings.TrimSpace(value)
		switch strings.TrimSpace(key) {
		case "model name", "cpu model", "uarch":
			return cleanModel(value)
		case "CPU implementer":
			maker = value
		case "CPU part":
			part = value
		}
		if maker != "" && part != "" {
			return cleanModel("implementer " + maker + " part " + part)
		}
	}
	return ""
}

// cleanModel keeps what can be printed.
func cleanModel(name string) string {
	name = strings.Map(func(c rune) rune {
		if c == unicode.ReplacementChar || !unicode.IsPrint(c) {
			return -1
		}
		return c
	}, name)
	return strings.ToValidUTF8(name[:min(len(name), mostModel)], "")
}
