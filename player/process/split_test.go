package process

import (
	"errors"
	"slices"
	"testing"
)

func TestSplit(t *testing.T) {
	for _, c := range []struct {
		command string
		escapes bool
		want    []string // nil: an error
	}{
		{`game`, true, []string{"game"}},
		{"  game\t-x  \n", true, []string{"game", "-x"}},
		{`'my game' "two  words" a\ b`, true, []string{"my game", "two  words", "a b"}},
		{`a'b c'd"e f"`, true, []string{"ab cde f"}},
		{`game '' ""`, true, []string{"game", "", ""}},
		{`'a\b' "a\b" "a\"b" "a\\b" a\\b`, true, []string{`a\b`, `a\b`, `a"b`, `a\b`, `a\b`}},
		{`game $HOME *.x | tee >out #no`, true, []string{"game", "$HOME", "*.x", "|", "tee", ">out", "#no"}},
		{`C:\games\sim.exe "C:\my games\x\" -a`, false, []string{`C:\games\sim.exe`, `C:\my games\x\`, "-a"}},
		{`ä "ö ü"`, true, []string{"ä", "ö ü"}},
		{``, true, nil}, {` `, true, nil}, {`'' x`, true, nil},
		{`a 'b`, true, nil}, {`a "b`, true, nil}, {`a "b\"`, true, nil}, {`a\`, true, nil},
		{`a\`, false, []string{`a\`}},
	} {
		got, err := split(c.command, c.escapes)
		if !slices.Equal(got, c.want) || (err != nil) != (c.want == nil) || err != nil && !errors.Is(err, ErrCommand) {
			t.Errorf("%s: %q, %v; want %q", c.command, got, err, c.want)
		}
	}
}
