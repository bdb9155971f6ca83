package daemon

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Duration is a time span in the configuration: "2ms", "5m", "24h". It is a
// struct so that a bare number in the file is refused: its unit would be a
// guess.
type Duration struct{ time.Duration }

// Set reads a time span; see time.ParseDuration.
func (d *Duration) Set(s string) error {
	v, err := time.ParseDuration(s)
	if err != nil || v < 0 {
		return fmt.Errorf("%q is not a time span: use a number and a unit, such as 2ms, 5m or 24h", s)
	}
	d.Duration = v
	return nil
}

// Type names the kind of value in help texts.
func (d *Duration) Type() string { return "duration" }

// UnmarshalText is Set, for the file.
func (d *Duration) UnmarshalText(b []byte) error { return d.Set(string(b)) }

// Size is a number of bytes in the configuration: 65536, "64KiB", "1MiB".
type Size int64

var sizeUnits = []struct {
	name  string
	bytes int64
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}}

func (s Size) String() string {
	for _, u := range sizeUnits {
		if int64(s) >= u.bytes && int64(s)%u.bytes == 0 && u.bytes > 1 {
			return strconv.FormatInt(int64(s)/u.bytes, 10) + u.name
		}
	}
	return strconv.FormatInt(int64(s), 10)
}

// Set reads a number with an optional unit: B, KiB, MiB or GiB.
func (s *Size) Set(text string) error {
	number, unit := text, int64(1)
	for _, u := range sizeUnits {
		if rest, ok := strings.CutSuffix(text, u.name); ok {
			number, unit = rest, u.bytes
			break
		}
	}
	v, err := strconv.ParseInt(strings.TrimSpace(number), 10, 64)
	if err != nil || v < 0 || v > (1<<62)/unit {
		return fmt.Errorf("%q is not a size: use a number, or one with KiB, MiB or GiB", text)
	}
	*s = Size(v * unit)
	return nil
}

// Type names the kind of value in help texts.
func (s *Size) Type() string { return "size" }

// UnmarshalText is Set, for the file.
func (s *Size) UnmarshalText(b []byte) error { return s.Set(string(b)) }
