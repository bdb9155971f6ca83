package replays

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"reprise/format"
)

// content is what a replay says, as its document has it.
type content struct {
	Format    string     `json:"format"`
	Wrapping  string     `json:"wrapping,omitempty"`
	State     string     `json:"state"`
	Torn      *int64     `json:"torn,omitempty"`
	Complete  bool       `json:"complete"`
	Metadata  metadata   `json:"metadata"`
	CodeBook  []code     `json:"code_book,omitempty"`
	Players   []event    `json:"players,omitempty"`
	Marks     []mark     `json:"marks,omitempty"`
	Reports   []report   `json:"reports,omitempty"`
	Gaps      []gap      `json:"gaps,omitempty"`
	Keyframes []keyframe `json:"keyframes,omitempty"`
	NextTick  uint64     `json:"next_tick"`
	Count     uint64     `json:"ticks"`
	Steps     uint64     `json:"steps"`
	Hashes    uint64     `json:"hashes"`
	EndReason string     `json:"end_reason,omitempty"`
	Digest    string     `json:"digest,omitempty"`
	Ticks     []tick     `json:"recorded"`
}

type metadata struct {
	Session   string      `json:"session,omitempty"`
	Game      string      `json:"game"`
	Build     string      `json:"build,omitempty"`
	Data      string      `json:"data,omitempty"`
	Seed      uint64      `json:"seed,omitempty"`
	Map       string      `json:"map,omitempty"`
	TickRate  string      `json:"tick_rate"`
	FirstTick uint64      `json:"first_tick"`
	StartedAt int64       `json:"started_at,omitempty"`
	HashBytes int         `json:"hash_bytes,omitempty"`
	HashParts []string    `json:"hash_parts,omitempty"`
	Width     int         `json:"command_width"`
	Labels    [][2]string `json:"labels,omitempty"`
	Env       [][2]string `json:"environment,omitempty"`
	Origin    string      `json:"origin,omitempty"`
	Header    string      `json:"origin_header,omitempty"`
}

type code struct {
	Code    uint16   `json:"code"`
	Name    string   `json:"name"`
	Passive bool     `json:"passive,omitempty"`
	Params  []string `json:"params,omitempty"`
}

type event struct {
	Tick     uint64 `json:"tick"`
	Player   uint64 `json:"player"`
	Leaves   bool   `json:"leaves,omitempty"`
	Name     string `json:"name,omitempty"`
	Team     string `json:"team,omitempty"`
	Observer bool   `json:"observer,omitempty"`
}

type mark struct {
	Tick   uint64 `json:"tick"`
	Kind   string `json:"kind"`
	Player uint64 `json:"player,omitempty"`
	Text   string `json:"text,omitempty"`
}

type report struct {
	At   uint64 `json:"at"`
	Of   uint64 `json:"of"`
	Peer uint64 `json:"peer"`
	Hash string `json:"hash"`
}

type gap struct {
	First      uint64 `json:"first"`
	Last       uint64 `json:"last"`
	Reason     string `json:"reason,omitempty"`
	ByRecorder bool   `json:"by_recorder,omitempty"`
}

type keyframe struct {
	NextTick uint64 `json:"next_tick"`
	State    string `json:"state"`
}

type tick struct {
	Tick  uint64 `json:"tick"`
	Steps []step `json:"steps,omitempty"`
	Hash  string `json:"hash,omitempty"`
	Time  *int64 `json:"time,omitempty"`
}

type step struct {
	Code   uint16           `json:"code"`
	Params []map[string]any `json:"params,omitempty"`
}

// document writes content as it stands in a file.
func (c *content) document() []byte {
	b, err := json.MarshalIndent(c, "", " ")
	if err != nil {
		panic(err)
	}
	return append(b, '\n')
}

// printable is text as a document has it; what is not UTF-8 is hexadecimal.
func printable(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return "hex:" + hex.EncodeToString([]byte(s))
}

// about gives all but the ticks, reports and keyframes.
func about(f *format.File) *content {
	s := f.Summary()
	m := s.Meta
	c := &content{Format: f.Source, Wrapping: f.Wrapping, State: "live", Complete: s.Complete(), NextTick: uint64(s.NextTick), Count: s.Ticks, Steps: s.Steps, Hashes: s.Hashes}
	if s.End != nil {
		c.State, c.EndReason = s.End.State.String(), s.End.Reason
	}
	if f.Torn != nil {
		c.Torn = &f.Torn.Offset
	}
	if s.Digest != nil {
		c.Digest = s.Digest.String()
	}
	c.Metadata = metadata{Session: m.Session, Game: printable(m.Game), Build: printable(m.Build), Data: printable(m.Data), Seed: m.Seed, Map: printable(m.Map),
		TickRate: m.TickRate.String(), FirstTick: uint64(m.FirstTick), StartedAt: m.StartedAt, HashBytes: m.HashBytes, Width: int(m.Width),
		Labels: pairs(m.Labels), Env: pairs(m.Env), Origin: m.Origin.Format, Header: hex.EncodeToString(m.Origin.Header)}
	for _, p := range m.HashParts {
		c.Metadata.HashParts = append(c.Metadata.HashParts, fmt.Sprintf("%s %d", printable(p.Name), p.Bytes))
	}
	if f.Book() != nil {
		for _, x := range f.Book().Codes {
			c.CodeBook = append(c.CodeBook, describeCode(x))
		}
	}
	for _, e := range s.Players {
		c.Players = append(c.Players, event{uint64(e.Tick), e.ID, e.Leave, printable(e.Name), printable(e.Team), e.Observer})
	}
	for _, x := range s.Marks {
		c.Marks = append(c.Marks, mark{uint64(x.Tick), printable(x.Kind), x.Player, printable(x.Text)})
	}
	for _, g := range s.Gaps {
		c.Gaps = append(c.Gaps, gap{uint64(g.First), uint64(g.Last), printable(g.Reason), g.ByRecorder})
	}
	return c
}

func pairs(labels []format.Label) [][2]string {
	var list [][2]string
	for _, l := range labels {
		list = append(list, [2]string{printable(l.Key), printable(l.Value)})
	}
	return list
}

func describeCode(x format.CodeInfo) code {
	c := code{Code: x.Code, Name: printable(x.Name), Passive: x.Passive}
	for _, p := range x.Params {
		text := strings.TrimSpace(printable(p.Name) + " " + p.Type)
		if p.Personal {
			text += " personal"
		}
		c.Params = append(c.Params, text)
	}
	return c
}

// read gives all that a file holds, its ticks in order.
func read(t testing.TB, f *format.File) *content {
	t.Helper()
	c := about(f)
	if err := f.Reports(func(r format.Report) error {
		c.Reports = append(c.Reports, report{uint64(r.At), uint64(r.Of), r.Peer, hex.EncodeToString(r.Hash)})
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for i := range f.Summary().Keyframes {
		k, err := f.Keyframe(i)
		if err != nil {
			t.Fatal(err)
		}
		c.Keyframes = append(c.Keyframes, keyframe{uint64(k.NextTick), hex.EncodeToString(k.State)})
	}
	slices.SortFunc(c.Keyframes, func(a, b keyframe) int { return int(a.NextTick) - int(b.NextTick) })
	c.Ticks = recorded(t, f.Reader())
	return c
}

// recorded gives the ticks from the reader's place on that have anything.
func recorded(t testing.TB, r *format.Reader) []tick {
	t.Helper()
	ticks := []tick{}
	var rec format.TickRecord
	for {
		err := r.Next(&rec)
		if err == io.EOF {
			return ticks
		}
		if err != nil {
			t.Fatal(err)
		}
		if x := describeTick(&rec); x.Steps != nil || x.Hash != "" || x.Time != nil {
			ticks = append(ticks, x)
		}
	}
}

func describeTick(rec *format.TickRecord) tick {
	x := tick{Tick: uint64(rec.Tick), Hash: hex.EncodeToString(rec.Hash)}
	if rec.HasTime {
		time := rec.Time
		x.Time = &time
	}
	var steps format.StepReader
	steps.Reset(rec)
	for s := (format.Step{}); steps.Next(&s); {
		described := step{Code: s.Code}
		for _, v := range s.Params {
			described.Params = append(described.Params, map[string]any{kindOf(v): describeValue(v)})
		}
		x.Steps = append(x.Steps, described)
	}
	return x
}

func kindOf(v format.Value) string {
	if v.Kind() == format.KindString && !utf8.ValidString(v.Str()) {
		return "string_bytes"
	}
	return v.Kind().String()
}

func describeValue(v format.Value) any {
	switch v.Kind() {
	case format.KindBool:
		return v.Bool()
	case format.KindFloat:
		x, _ := v.Float64()
		return fmt.Sprintf("%016x", math.Float64bits(x))
	case format.KindString:
		if !utf8.ValidString(v.Str()) {
			return hex.EncodeToString([]byte(v.Str()))
		}
		return strings.Clone(v.Str()) // the reader uses its memory again
	case format.KindBytes:
		return hex.EncodeToString(v.ByteSlice())
	case format.KindInts:
		list := []string{}
		for _, x := range v.Int64s() {
			list = append(list, fmt.Sprint(x))
		}
		return list
	}
	return v.BigInt().String()
}

func open(t testing.TB, b []byte) *format.File {
	t.Helper()
	f, err := format.NewFile(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	return f
}
