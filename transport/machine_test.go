package transport

import (
	"slices"
	"strings"
	"testing"

	"reprise/format"
)

func TestParseCPUModel(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"processor\t: 0\nvendor_id\t: GenuineIntel\nmodel\t\t: 85\nmodel name\t: Fast(R) CPU @ 2.50GHz\nmodel name\t: Other\n", "Fast(R) CPU @ 2.50GHz"},
		{"processor\t: 0\nCPU implementer\t: 0x41\nCPU variant\t: 0x3\nCPU part\t: 0xd0c\n", "implementer 0x41 part 0xd0c"},
		{"processor\t: 0\nhart\t: 2\nuarch\t: sifive,u74\n", "sifive,u74"},
		{"model name\t: a\x1b[31m\u202ered\xff\n", "a[31mred"},
		{"model name\t: " + strings.Repeat("x", 200) + "\n", strings.Repeat("x", mostModel)},
		{"processor\t: 0\n", ""},
		{"", ""},
	} {
		if got := parseCPUModel(strings.NewReader(c.text)); got != c.want {
			t.Errorf("%q gives %q, want %q", c.text, got, c.want)
		}
	}
	if long := strings.Repeat("x", mostCPUInfo) + "\nmodel name : y\n"; parseCPUModel(strings.NewReader(long)) != "" {
		t.Error("the list is read without a bound")
	}
}

// openedMeta is the metadata that a client sends for a session.
func openedMeta(t *testing.T, meta format.Metadata) *format.Metadata {
	t.Helper()
	c := newClient(nil, ClientConfig{})
	defer c.stop()
	meta.Session = "match"
	r, err := c.newRecording(&Spec{Meta: meta})
	if err != nil {
		t.Fatal(err)
	}
	tracker := format.NewTracker()
	chunk, _, err := format.ParseChunk(r.opening)
	if err != nil {
		t.Fatal(err)
	}
	if err := tracker.Add(chunk, 0); err != nil {
		t.Fatal(err)
	}
	return tracker.Meta()
}

func TestClientRecordsTheMachine(t *testing.T) {
	facts := Machine()
	if got := openedMeta(t, format.Metadata{}).Env; !slices.Equal(got, facts) || len(facts) < 4 {
		t.Errorf("the facts are %v, want %v", got, facts)
	}
	own := []format.Label{{Key: "driver", Value: "5"}}
	if got := openedMeta(t, format.Metadata{Env: own}).Env; !slices.Equal(got, own) {
		t.Errorf("a game's own facts became %v", got)
	}
	if got := openedMeta(t, format.Metadata{Env: []format.Label{}}).Env; len(got) != 0 {
		t.Errorf("no facts became %v", got)
	}
}

// TestFactsNameNobody: the facts are a fixed few.
func TestFactsNameNobody(t *testing.T) {
	for _, f := range Machine() {
		if !slices.Contains([]string{format.EnvOS, format.EnvArch, format.EnvCPU, format.EnvFused, format.EnvFloat}, f.Key) {
			t.Errorf("fact %q", f.Key)
		}
	}
}
