package app

import (
	"encoding/json"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"reprise/replays"
)

// frozenDocument is the part of a sample's document that info prints, too.
type frozenDocument struct {
	Format    string `json:"format"`
	Wrapping  string `json:"wrapping"`
	State     string `json:"state"`
	Torn      *int64 `json:"torn"`
	Complete  bool   `json:"complete"`
	EndReason string `json:"end_reason"`
	Metadata  struct {
		Session   string `json:"session"`
		Seed      uint64 `json:"seed"`
		TickRate  string `json:"tick_rate"`
		FirstTick uint64 `json:"first_tick"`
		HashBytes int    `json:"hash_bytes"`
		Width     int    `json:"command_width"`
	} `json:"metadata"`
	Ticks     uint64 `json:"ticks"`
	Steps     uint64 `json:"steps"`
	Hashes    uint64 `json:"hashes"`
	Digest    string `json:"digest"`
	Marks     []any  `json:"marks"`
	Reports   []any  `json:"reports"`
	Gaps      []any  `json:"gaps"`
	CodeBook  []any  `json:"code_book"`
	Keyframes []struct {
		NextTick uint64 `json:"next_tick"`
	} `json:"keyframes"`
}

// frozenInfo is the same of what info prints.
type frozenInfo struct {
	Format    string      `json:"format"`
	Wrapping  string      `json:"wrapping"`
	State     string      `json:"state"`
	Complete  bool        `json:"complete"`
	EndReason string      `json:"end_reason"`
	Session   string      `json:"session"`
	Seed      uint64      `json:"seed"`
	TickRate  json.Number `json:"tick_rate"`
	FirstTick uint64      `json:"first_tick"`
	HashBytes int         `json:"hash_bytes"`
	Width     int         `json:"command_width"`
	Ticks     uint64      `json:"ticks"`
	Steps     uint64      `json:"steps"`
	Hashes    uint64      `json:"hashes"`
	Digest    string      `json:"digest"`
	Keyframes []uint64    `json:"keyframes"`
	Marks     []any       `json:"marks"`
	Gaps      []any       `json:"gaps"`
	Reports   uint64      `json:"reports"`
	CodeBook  []any       `json:"code_book"`
	Torn      *struct {
		Offset int64 `json:"offset"`
	} `json:"torn"`
}

// What info prints of every file ever released agrees with its document.
func TestInfoOfReleasedFiles(t *testing.T) {
	names, err := fs.Glob(replays.Files, "*.json")
	if err != nil || len(names) == 0 {
		t.Fatalf("%d documents, %v", len(names), err)
	}
	for _, document := range names {
		name := strings.TrimSuffix(document, ".json")
		if filepath.Ext(name) == ".commands" {
			continue
		}
		b, err := replays.Files.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		doc, err := replays.Files.ReadFile(document)
		if err != nil {
			t.Fatal(err)
		}
		var want frozenDocument
		if err := json.Unmarshal(doc, &want); err != nil {
			t.Fatal(err)
		}
		r := reprise("info", "--json", writeFile(t, name, b))
		if code := map[bool]int{true: exitDamaged, false: exitOK}[want.Torn != nil]; r.code != code {
			t.Errorf("%s: exit code %d, want %d: %s", name, r.code, code, r.stderr)
		}
		var got frozenInfo
		if err := json.Unmarshal([]byte(strings.ReplaceAll(r.stdout, `"tick_rate":"1000/3"`, `"tick_rate":333.3`)), &got); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got.compare(t, name, &want)
	}
}

func (i *frozenInfo) compare(t *testing.T, name string, want *frozenDocument) {
	t.Helper()
	if want.Format != "rply2" {
		want.State, want.Complete = "unproven", false
	}
	if strings.Contains(name, "archive") {
		want.State = "archived" // what holds the content, not the content
	}
	if want.State == "live" {
		want.State = "unfinished"
	}
	if want.Metadata.TickRate == "1000/3" {
		want.Metadata.TickRate = "333.3"
	}
	m := want.Metadata
	for _, x := range []struct {
		field     string
		got, want any
	}{
		{"format", i.Format, want.Format}, {"wrapping", i.Wrapping, want.Wrapping}, {"state", i.State, want.State}, {"complete", i.Complete, want.Complete},
		{"end_reason", i.EndReason, want.EndReason}, {"session", i.Session, m.Session}, {"seed", i.Seed, m.Seed}, {"tick_rate", string(i.TickRate), m.TickRate},
		{"first_tick", i.FirstTick, m.FirstTick}, {"hash_bytes", i.HashBytes, m.HashBytes}, {"command_width", i.Width, m.Width},
		{"ticks", i.Ticks, want.Ticks}, {"steps", i.Steps, want.Steps}, {"hashes", i.Hashes, want.Hashes},
		{"marks", len(i.Marks), len(want.Marks)}, {"gaps", len(i.Gaps), len(want.Gaps)}, {"reports", int(i.Reports), len(want.Reports)},
		{"code_book", len(i.CodeBook), len(want.CodeBook)}, {"keyframes", len(i.Keyframes), len(want.Keyframes)}, {"torn", i.Torn != nil, want.Torn != nil},
	} {
		if x.got != x.want {
			t.Errorf("%s: %s %v, want %v", name, x.field, x.got, x.want)
		}
	}
	if want.Digest != "" && i.Digest != want.Digest {
		t.Errorf("%s: digest %s, want %s", name, i.Digest, want.Digest)
	}
	if i.Torn != nil && want.Torn != nil && want.Format == "rply2" && i.Torn.Offset != *want.Torn {
		t.Errorf("%s: torn at %d, want %d", name, i.Torn.Offset, *want.Torn)
	}
}
