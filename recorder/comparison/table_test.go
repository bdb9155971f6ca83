package main

import (
	"math"
	"strings"
	"testing"
)

func TestNumber(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0.00", 0.3849: "0.38", 9.994: "9.99", 12.345: "12.3", 99.94: "99.9", 123.5: "124", 1234.4: "1,234", 1234567: "1,234,567", -12345: "-12,345",
		math.NaN(): none, math.Inf(1): none,
	} {
		if got := number(v); got != want {
			t.Errorf("number(%v) = %q, want %q", v, got, want)
		}
	}
	for v, want := range map[float64]string{0: "0", 999: "999", 1000: "1,000", -1000: "-1,000", -0.2: "0", math.NaN(): none} {
		if got := thousands(v); got != want {
			t.Errorf("thousands(%v) = %q, want %q", v, got, want)
		}
	}
}

// TestSystemRows compares whole tables: medians, the spread of the 99th
// percentile, and what stands for runs that are missing.
func TestSystemRows(t *testing.T) {
	paced, flat := workload{1000, 20}, workload{100, 0}
	f := figures{acked: 19_000, p50: 50e6, p99: 100e6, cpu: 3.5, memory: 32 << 20, written: 2.5, kept: 1.25}
	g := f
	g.acked, g.p99 = 20_000, 110e6
	all := []*measured{
		{system: systems[0], workload: paced, runs: []figures{f, g}},
		{system: systems[4], workload: paced},
		{system: systems[0], workload: flat, runs: []figures{f}},
	}
	var out strings.Builder
	printSystems(&out, all, plan{workloads: []workload{paced, flat}, rounds: 2, window: 3e9, warm: 2e9})
	const want = `
### Two systems

Medians of 2 round(s), 3s measured after 2s of warming up.

**1,000 sessions at 20 Hz**

| system | an acknowledged tick is | ticks/s acknowledged | of those due | p50 ms | p99 ms | CPU s per million ticks | memory MiB | written/row byte | kept/row byte |
|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|
| reprised, 100 ms linger | on the disk | 19,500 | 97.5 % | 50.0 | 105 (100-110) | 3.50 | 32.0 | 2.50 | 1.25 |
| JetStream, default sync, message per tick | in the page cache | – | – | – | – | – | – | – | – |

**100 sessions, flat out**

| system | an acknowledged tick is | ticks/s acknowledged | of those due | p50 ms | p99 ms | CPU s per million ticks | memory MiB | written/row byte | kept/row byte |
|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|
| reprised, 100 ms linger | on the disk | 19,000 | – | – | – | 3.50 | 32.0 | 2.50 | 1.25 |
`
	if out.String() != want {
		t.Errorf("got:\n%s\nwant:\n%s", out.String(), want)
	}
}
