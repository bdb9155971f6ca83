package main

import (
	"strings"
	"testing"
	"time"
)

func TestParseCPU(t *testing.T) {
	const rest = " S 1 42 42 0 -1 4194560 2109 0 3 0 1234 56 7 8 20 0 9 0 1000 200000 300"
	for _, name := range []string{"(reprised)", "(a b)", "(a) 9 9 9 (b)"} {
		got, err := parseCPU("42 " + name + rest)
		if err != nil || got != 12900*time.Millisecond {
			t.Errorf("%s: %v, %v, want 12.9s", name, got, err)
		}
	}
	for _, bad := range []string{"", "42 (x", "42 (x) S 1 2", "42 (x) S 1 42 42 0 -1 4194560 2109 0 3 0 many 56"} {
		if got, err := parseCPU(bad); err == nil {
			t.Errorf("%q: %v, want an error", bad, got)
		}
	}
}

func TestParseField(t *testing.T) {
	const status = "Name:\tVmRSS\nVmRSSX:\t1 kB\nVmRSS:\t  1234 kB\nThreads:\t7\nState:\tS (sleeping)\n"
	for _, c := range []struct {
		name string
		want int64
	}{{"VmRSS", 1234 << 10}, {"Threads", 7}} {
		if got, err := parseField(status, c.name); err != nil || got != c.want {
			t.Errorf("%s: %d, %v, want %d", c.name, got, err, c.want)
		}
	}
	for _, name := range []string{"VmSwap", "State"} {
		if got, err := parseField(status, name); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %d, %v, want an error with its name", name, got, err)
		}
	}
}

func TestParseMounts(t *testing.T) {
	const mounts = `22 27 0:21 / /proc rw,relatime - proc proc rw
26 1 254:0 / / rw,relatime - ext4 /dev/vda rw
25 24 0:23 / /tmp rw shared:1 master:2 - tmpfs tmpfs rw
27 26 8:1 / /data rw - xfs /dev/sda1 rw
28 27 8:2 / /data/a\040b rw - btrfs /dev/sda2 rw
29 26 8:3 / /data rw - ext4 /dev/sda3 rw
short line
`
	for _, c := range []struct {
		path string
		want mount
	}{
		{"/", mount{"ext4", "254:0"}},
		{"/home/x", mount{"ext4", "254:0"}},
		{"/tmp", mount{"tmpfs", "0:23"}},
		{"/tmpx", mount{"ext4", "254:0"}},
		{"/data/x", mount{"ext4", "8:3"}},
		{"/data/a b/c", mount{"btrfs", "8:2"}},
	} {
		if got, err := parseMounts(mounts, c.path); err != nil || got != c.want {
			t.Errorf("%s: %v, %v, want %v", c.path, got, err, c.want)
		}
	}
	if got, err := parseMounts("25 24 0:23 / /tmp rw - tmpfs tmpfs rw\n", "/data"); err == nil {
		t.Errorf("no mount: %v, want an error", got)
	}
	if !(mount{fs: "tmpfs"}).inMemory() || (mount{fs: "ext4"}).inMemory() {
		t.Error("tmpfs is in memory, ext4 is not")
	}
}

func TestParseWritten(t *testing.T) {
	got, err := parseWritten("   17384     6148   904802    11027    90210    71223  8123456   123 0 44 55\n")
	if err != nil || got != 8123456*512 {
		t.Errorf("%d, %v, want %d", got, err, 8123456*512)
	}
	for _, bad := range []string{"", "1 2 3 4 5 6", "1 2 3 4 5 6 x"} {
		if got, err := parseWritten(bad); err == nil {
			t.Errorf("%q: %d, want an error", bad, got)
		}
	}
}

func TestParseModel(t *testing.T) {
	if got := parseModel("processor\t: 0\nmodel\t\t: 17\nmodel name\t: Some CPU: 3 GHz\n"); got != "Some CPU: 3 GHz" {
		t.Errorf("%q", got)
	}
	if got := parseModel("processor\t: 0\n"); got != "processor unknown" {
		t.Errorf("%q", got)
	}
}

func TestParseReady(t *testing.T) {
	for line, want := range map[string]ready{
		"reprised: ready on 127.0.0.1:4433, fingerprint 0aff, http 127.0.0.1:8433, data /x\n": {"127.0.0.1:4433", "0aff"},
		"reprised: ready on [::1]:4433, fingerprint 0aff, data /a, fingerprints":              {"[::1]:4433", "0aff"},
		"nats: ready on nats://127.0.0.1:4222\n":                                              {"nats://127.0.0.1:4222", ""},
	} {
		if got, err := parseReady(line); err != nil || got != want {
			t.Errorf("%q: %v, %v, want %v", line, got, err, want)
		}
	}
	if _, err := parseReady("reprised: configuration: data is empty\n"); err == nil || !strings.Contains(err.Error(), "data is empty") {
		t.Errorf("%v, want an error with what it said", err)
	}
}

func TestOptions(t *testing.T) {
	o, err := parse([]string{"-short", "-dir", "/x", "-streams", "3"})
	if err != nil || o.dir != "/x" || o.streams != 3 || o.plan.limit != shortPlan.limit {
		t.Errorf("%+v, %v", o, err)
	}
	if o, err := parse(nil); err != nil || o.plan.limit != fullPlan.limit || o.streams != 1 {
		t.Errorf("without flags: %+v, %v", o, err)
	}
	for _, bad := range [][]string{{"x"}, {"-streams", "0"}} {
		if _, err := parse(bad); err == nil {
			t.Errorf("%v: no error", bad)
		}
	}
}
