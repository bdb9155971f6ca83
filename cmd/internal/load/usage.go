package load

import (
	"bufio"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Usage is what a daemon takes of its machine.
type Usage struct{ CPUSeconds, MemoryBytes float64 }

// ReadUsage reads the process figures from a daemon's metrics.
func ReadUsage(addr string) (Usage, error) {
	client := http.Client{Timeout: 5 * time.Second}
	resp, err := client.Get("http://" + addr + "/metrics")
	if err != nil {
		return Usage{}, err
	}
	defer resp.Body.Close()
	var u Usage
	s := bufio.NewScanner(resp.Body)
	for s.Scan() {
		name, value, _ := strings.Cut(s.Text(), " ")
		switch name {
		case "process_cpu_seconds_total":
			u.CPUSeconds, err = strconv.ParseFloat(value, 64)
		case "process_resident_memory_bytes":
			u.MemoryBytes, err = strconv.ParseFloat(value, 64)
		}
		if err != nil {
			return u, fmt.Errorf("%s: %w", name, err)
		}
	}
	return u, s.Err()
}
