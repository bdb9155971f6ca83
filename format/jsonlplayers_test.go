package format

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

// The number of players of a header becomes a label; the header comes back as
// it was.
func TestPlayersOfAJSONHeader(t *testing.T) {
	many := strings.Repeat(`["k","v"],`, MaxLabels-1) + `["k","v"]`
	for _, c := range []struct {
		header string
		want   string // the label's value; empty for none
	}{
		{`{"game":"g","players":8,"ticks":1}`, "8"},
		{`{"players":0,"ticks":1}`, "0"},
		{`{"players": 2 ,"ticks":1}`, "2"},
		{`{"ticks":1,"players":18446744073709551615}`, "18446744073709551615"},
		{`{"ticks":1,"players":99999999999999999999999}`, ""},
		{`{"ticks":1,"players":-1}`, ""},
		{`{"ticks":1,"players":2.5}`, ""},
		{`{"ticks":1,"players":["a","b"]}`, ""},
		{`{"ticks":1,"players":{"a":1}}`, ""},
		{`{"ticks":1,"players":"8"}`, ""},
		{`{"ticks":1,"players":null}`, ""},
		{`{"ticks":1,"players":4,"labels":[["players","four"]]}`, "four"},
		{`{"ticks":1,"labels":{"cup":"final"},"players":4}`, "4"},
		{`{"ticks":1,"players":4,"labels":[` + many + `]}`, ""},
	} {
		line := c.header + "\n" + `{"t":0,"p":1,"c":1,"a":[]}` + "\n"
		var out Buffer
		if err := ReadJSONL(strings.NewReader(line), &out, JSONLOptions{}); err != nil {
			t.Errorf("%s: %v", c.header, err)
			continue
		}
		f, err := NewFile(&out, int64(len(out.Bytes())))
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if i := slices.IndexFunc(f.Summary().Meta.Labels, func(l Label) bool { return l.Key == playersLabel }); i >= 0 {
			got = f.Summary().Meta.Labels[i].Value
		}
		if got != c.want {
			t.Errorf("%s: label %q, want %q", c.header, got, c.want)
		}
		var back bytes.Buffer
		if err := WriteJSONL(&back, f, JSONLWriteOptions{}); err != nil || !strings.HasPrefix(back.String(), c.header+"\n") {
			t.Errorf("%s came back as %.200s: %v", c.header, back.String(), err)
		}
	}
}

// A part of a replay keeps the label, though not the header.
func TestPlayersOfAPart(t *testing.T) {
	lines := `{"game":"g","players":8,"ticks":9}` + "\n" + `{"t":3,"p":1,"c":1,"a":[]}` + "\n"
	for range 2 {
		var out Buffer
		if err := ReadJSONL(strings.NewReader(lines), &out, JSONLOptions{}); err != nil {
			t.Fatal(err)
		}
		f, err := NewFile(&out, int64(len(out.Bytes())))
		if err != nil {
			t.Fatal(err)
		}
		if labels := f.Summary().Meta.Labels; len(labels) != 1 || labels[0] != (Label{playersLabel, "8"}) {
			t.Errorf("labels %v", labels)
		}
		to := Tick(3)
		var part bytes.Buffer
		if err := WriteJSONL(&part, f, JSONLWriteOptions{From: 2, To: &to}); err != nil {
			t.Fatal(err)
		}
		lines = part.String()
	}
}
