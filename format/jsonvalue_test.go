package format

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func TestJSONOfAValue(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 41))
	var list []Value
	text := []byte("[")
	for range 2000 {
		v := randomValue(r)
		b := AppendJSON(nil, v)
		back, err := ParseJSON(b)
		if err != nil || !back.Equal(v) {
			t.Fatalf("%v is written as %s and read as %v, %v", v, b, back, err)
		}
		if len(list) > 0 {
			text = append(text, ',')
		}
		list, text = append(list, v), append(text, b...)
	}
	back, err := ParseJSONList(append(text, ']'))
	if err != nil || !slices.EqualFunc(back, list, Value.Equal) {
		t.Errorf("a list of %d values is read as %d, %v", len(list), len(back), err)
	}
	if none, err := ParseJSONList([]byte("[]")); err != nil || len(none) != 0 {
		t.Errorf("%v, %v", none, err)
	}
}

func TestJSONOfNoValue(t *testing.T) {
	for text, want := range map[string]string{"": "the line ends", "null": "where a boolean", "1 2": "where the end of the line is due", `"\ud800"`: "surrogate", "[1.5]": "integer list", "\"a": "end of a string"} {
		if v, err := ParseJSON([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, %v, want %s", text, v, err, want)
		}
	}
	for _, text := range []string{"", "[", "[1", "[1,]", "[1]2", "1"} {
		if list, err := ParseJSONList([]byte(text)); err == nil {
			t.Errorf("%q: %v", text, list)
		}
	}
}
