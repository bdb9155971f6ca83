package access

import (
	"errors"
	"strings"
	"testing"
	"time"
)

var noon = time.Date(2027, 1, 1, 12, 0, 0, 0, time.UTC)

func TestNewTokenIsGranted(t *testing.T) {
	token, line, err := New("eu-west", "eu-*", noon.Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(line, token) {
		t.Fatal("the line holds the token itself")
	}
	tokens, err := Parse(strings.NewReader("# servers\n\n" + line + "\n"))
	if err != nil {
		t.Fatal(err)
	}
	g, err := tokens.Find([]byte(token), noon)
	if err != nil || g.Name != "eu-west" || g.Role != RoleRecord || tokens.Len() != 1 {
		t.Fatalf("grant %+v of %d, %v", g, tokens.Len(), err)
	}
	for id, want := range map[string]error{"eu-1": nil, "eu-": nil, "us-1": ErrSession, "xeu-1": ErrSession, "": ErrSession} {
		if err := g.Allows(id); !errors.Is(err, want) {
			t.Errorf("session %q: %v, want %v", id, err, want)
		}
	}
	if _, err := tokens.Find([]byte(token), noon.Add(time.Hour)); !errors.Is(err, ErrExpired) {
		t.Errorf("at its expiry: %v, want ErrExpired", err)
	}
	for _, other := range []string{"", token + "x", token[:len(token)-1], line} {
		if _, err := tokens.Find([]byte(other), noon); !errors.Is(err, ErrUnknownToken) {
			t.Errorf("token %q: %v, want ErrUnknownToken", other, err)
		}
	}
}

func TestTokensDiffer(t *testing.T) {
	a, _, _ := New("a", "*", time.Time{})
	b, _, _ := New("a", "*", time.Time{})
	if a == b || len(a) < 40 {
		t.Errorf("tokens %q and %q", a, b)
	}
}

func TestBadLines(t *testing.T) {
	_, good, err := New("good", "*", time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	hash := strings.Fields(good)[1]
	for name, c := range map[string]struct{ file, want string }{
		"twice":         {good + "\n" + good, "line 2"},
		"few fields":    {"# x\nname " + hash + " record *", "line 2: 4 fields"},
		"short hash":    {"name " + hash[1:] + " record * never", "64 hex digits"},
		"unknown role":  {"name " + hash + " watch * never", "role"},
		"bad pattern":   {"name " + hash + " record [a never", "session pattern"},
		"path":          {"name " + hash + " record a/b never", "session pattern"},
		"bad expiry":    {"name " + hash + " record * tomorrow", "expiry"},
		"raw token":     {"name rt_abc record * never", "64 hex digits"},
		"odd name":      {"na\x1bme " + hash + " record * never", "name"},
		"line too long": {good + "\n" + strings.Repeat("x", 1<<20), "line 2 is too long"},
		"file too long": {strings.Repeat("# a comment\n", maxTokenFile/12+1), "more than"},
	} {
		t.Run(name, func(t *testing.T) {
			tokens, err := Parse(strings.NewReader(c.file))
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "rt_") {
				t.Errorf("tokens %v, error %v, want one with %q, without any token", tokens, err, c.want)
			}
		})
	}
}

func TestBadNewTokens(t *testing.T) {
	for _, c := range [][2]string{{"", "*"}, {"two words", "*"}, {"#x", "*"}, {"x", ""}, {"x", "a[b"},
		{"x", "a b"}, {"x", "a/b"}, {"x", "ä*"}, {"x", strings.Repeat("*", 129)}, {"a\u2003b", "*"}, {"a\x1b", "*"}, {"a\xff", "*"}, {strings.Repeat("x", 65), "*"}} {
		if _, _, err := New(c[0], c[1], time.Time{}); err == nil {
			t.Errorf("name %q, pattern %q: no error", c[0], c[1])
		}
	}
}
