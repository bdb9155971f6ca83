package load

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Usage is what a daemon takes of its machine.
type Usage struct{ CPUSeconds, MemoryBytes float64 }

// ReadUsage reads the process figures from a daemon's metrics.
func ReadUsage(addr string) (Usage, error) {
	m, err := ReadMetrics(addr)
	return Usage{CPUSeconds: m["process_cpu_seconds_total"], MemoryBytes: m["process_resident_memory_bytes"]}, err
}

// ReadMetrics reads a daemon's metrics: each name with its labels as the
// daemon writes it.
func ReadMetrics(addr string) (map[string]float64, error) {
	client := http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get("http://" + addr + "/metrics")
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the metrics of %s: %s", addr, resp.Status)
	}
	return parseMetrics(resp.Body)
}

// parseMetrics reads lines of a name and a value; those of a "#" explain.
func parseMetrics(r io.Reader) (map[string]float64, error) {
	m := map[string]float64{}
	s := bufio.NewScanner(r)
	for s.Scan() {
		line := s.Text()
		i := strings.LastIndexByte(line, ' ')
		if i < 0 || line[0] == '#' {
			continue
		}
		v, err := strconv.ParseFloat(line[i+1:], 64)
		if err != nil {
			return m, fmt.Errorf("metric %q: %w", line, err)
		}
		m[line[:i]] = v
	}
	return m, s.Err()
}
