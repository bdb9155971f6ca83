package ship

import (
	"testing"
)

func TestShipsWhatIsThere(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	dir := t.TempDir()
	a, b := finished("match-a", 1, 900).bytes(t), finished("", 2, 300).bytes(t)
	put(t, dir, "first.rply", a)
	put(t, dir, "second.rply", b)
	r := once(t, h.config(dir))
	t.Log(r)
	z := same(t, a, sealedOne(t, h.cfg.Data, "match-a"))
	if *z.Summary().Digest != digestOf(t, a) {
		t.Errorf("digest %v, want %v", z.Summary().Digest, digestOf(t, a))
	}
	same(t, b, sealedOne(t, h.cfg.Data, "second"))
	if got := r.summary(); got != (Summary{Sealed: 2}) {
		t.Errorf("summary %+v", got)
	}
}
