package recorder

import (
	"strings"
	"testing"
	"time"
)

func TestConfigValidate(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Config)
		field  string // that the error names; empty for none
	}{
		{"defaults", func(c *Config) {}, ""},
		{"no folder", func(c *Config) { c.Dir = "" }, "Dir"},
		{"small segments", func(c *Config) { c.SegmentBytes = 4096 }, "SegmentBytes"},
		{"odd segments", func(c *Config) { c.SegmentBytes = 1<<20 + 1 }, "SegmentBytes"},
		{"one segment", func(c *Config) { c.Segments = 1 }, "Segments"},
		{"many segments", func(c *Config) { c.Segments = 40 }, ""},
		{"fewer at most", func(c *Config) { c.Segments, c.MaxSegments = 8, 4 }, "MaxSegments"},
		{"negative time", func(c *Config) { c.ResumeTimeout = -time.Second }, "ResumeTimeout"},
		{"negative window", func(c *Config) { c.SessionWindow = -1 }, "SessionWindow"},
		{"never reopened", func(c *Config) { c.ReopenWindow = -1 }, ""},
		{"no free space kept", func(c *Config) { c.MinFreeBytes = -1 }, ""},
	} {
		cfg := Config{Dir: "x"}
		c.change(&cfg)
		err := cfg.Validate()
		if (err == nil) != (c.field == "") || err != nil && !strings.Contains(err.Error(), "field "+c.field+" ") {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestSegmentBytesFollowTheDisk(t *testing.T) {
	for free, want := range map[int64]int64{8 << 20: 512 << 10, 100 << 20: 1 << 20 * 100 / 64 / pageSize * pageSize, 1 << 40: 32 << 20} {
		if got := (Config{}).withDefaults().withDisk(free).SegmentBytes; got != want {
			t.Errorf("with %d bytes free: segments of %d, want %d", free, got, want)
		}
	}
}
