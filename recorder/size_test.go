package recorder

import "testing"

func TestSizeText(t *testing.T) {
	for n, want := range map[int64]string{0: "0 bytes", 1: "1 bytes", 1023: "1023 bytes", 1 << 10: "1KiB", 1<<10 + 1: "1025 bytes", 512 << 10: "512KiB", 1536 << 10: "1536KiB", 32 << 20: "32MiB", 3 << 30: "3GiB", 1 << 40: "1024GiB"} {
		if got := sizeText(n); got != want {
			t.Errorf("%d is written %q, want %q", n, got, want)
		}
	}
}
