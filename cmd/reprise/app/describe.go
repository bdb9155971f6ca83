package app

import (
	"fmt"
	"strconv"

	"reprise/format"
)

// fileInfo is what `info` says of one file; the JSON names are a contract.
type fileInfo struct {
	File        jsonText       `json:"file"`
	Format      string         `json:"format"`
	Wrapping    string         `json:"wrapping,omitempty"`
	State       string         `json:"state"`
	Complete    bool           `json:"complete"`
	Note        string         `json:"note,omitempty"`
	EndReason   jsonText       `json:"end_reason,omitempty"`
	Session     jsonText       `json:"session"`
	Game        jsonText       `json:"game"`
	Build       jsonText       `json:"build"`
	Data        jsonText       `json:"data,omitempty"`
	Map         jsonText       `json:"map,omitempty"`
	Seed        uint64         `json:"seed"`
	TickRate    jsonRate       `json:"tick_rate"`
	FirstTick   format.Tick    `json:"first_tick"`
	LastTick    *format.Tick   `json:"last_tick"`
	Ticks       uint64         `json:"ticks"`
	Steps       uint64         `json:"steps"`
	Hashes      uint64         `json:"hashes"`
	HashesLeft  uint64         `json:"hashes_left_out,omitempty"`
	HashBytes   int            `json:"hash_bytes"`
	HashParts   []jsonHashPart `json:"hash_parts,omitempty"`
	Keyframes   []format.Tick  `json:"keyframes"`
	Marks       []jsonMark     `json:"marks"`
	Gaps        []jsonGap      `json:"gaps"`
	Players     []jsonPlayer   `json:"players"`
	PlayerCount *int           `json:"player_count"`
	Reports     uint64         `json:"reports"`
	Labels      []jsonLabel    `json:"labels,omitempty"`
	Env         []jsonLabel    `json:"env,omitempty"`
	Width       format.Width   `json:"command_width"`
	StartedAt   string         `json:"started_at"`
	WallSeconds *float64       `json:"wall_seconds"`
	GameSeconds *float64       `json:"game_seconds"`
	Bytes       int64          `json:"bytes"`
	Digest      string         `json:"digest"`
	SignedBy    []string       `json:"signed_by"`
	Redacted    *jsonRedaction `json:"redacted"`
	Torn        *jsonTorn      `json:"torn,omitempty"`
	Origin      *jsonOrigin    `json:"origin,omitempty"`
	Book        []jsonCode     `json:"code_book,omitempty"`
}

// jsonRedaction is what was erased.
type jsonRedaction struct {
	Players    bool   `json:"players"`
	Metadata   bool   `json:"metadata"`
	Parameters uint64 `json:"parameters"`
	Segments   uint64 `json:"segments"`
	Marks      uint64 `json:"marks"`
}

type jsonHashPart struct {
	Name  jsonText `json:"name"`
	Bytes int      `json:"bytes"`
}

type jsonMark struct {
	Tick   format.Tick `json:"tick"`
	Kind   jsonText    `json:"kind"`
	Player uint64      `json:"player"`
	Text   jsonText    `json:"text"`
}

type jsonGap struct {
	First    format.Tick `json:"first"`
	Last     format.Tick `json:"last"`
	Reason   jsonText    `json:"reason"`
	Declared string      `json:"declared_by"`
}

type jsonPlayer struct {
	ID       uint64     `json:"id"`
	Name     jsonText   `json:"name"`
	Team     jsonText   `json:"team,omitempty"`
	Observer bool       `json:"observer,omitempty"`
	Stays    []jsonStay `json:"stays"`
}

type jsonStay struct {
	Joined format.Tick  `json:"joined"`
	Left   *format.Tick `json:"left"`
}

type jsonLabel struct {
	Key   jsonText `json:"key"`
	Value jsonText `json:"value"`
}

// ticks is the range for people.
func (g jsonGap) ticks() string {
	if g.First == g.Last {
		return fmt.Sprintf("tick %d", g.First)
	}
	return fmt.Sprintf("ticks %d to %d", g.First, g.Last)
}

type jsonTorn struct {
	Offset int64 `json:"offset"`
	Bytes  int64 `json:"bytes"`
}

// jsonOrigin is the header of the file that the replay was converted from.
type jsonOrigin struct {
	Format jsonText `json:"format"`
	Header jsonText `json:"header"`
}

type jsonCode struct {
	Code    uint16      `json:"code"`
	Name    jsonText    `json:"name"`
	Passive bool        `json:"passive,omitempty"`
	Params  []jsonParam `json:"params"`
}

type jsonParam struct {
	Name     jsonText `json:"name"`
	Type     jsonText `json:"type,omitempty"`
	Personal bool     `json:"personal,omitempty"`
}

// unproven is said of formats that have no checksums and no end mark.
const unproven = "contents and completeness unproven"

// describe gathers what a file says about itself.
func describe(r *replay) *fileInfo {
	s := r.Summary()
	m := s.Meta
	i := &fileInfo{File: jsonText(r.path), Format: r.Source, Wrapping: r.Wrapping, State: r.state(), Complete: s.Complete() && !r.Unproven(),
		Session: jsonText(m.Session), Game: jsonText(m.Game), Build: jsonText(m.Build), Data: jsonText(m.Data), Map: jsonText(m.Map),
		Seed: m.Seed, TickRate: jsonRate(m.TickRate), FirstTick: m.FirstTick, Ticks: s.Ticks, Steps: s.Steps, Hashes: s.Hashes,
		HashBytes: m.HashBytes, Reports: s.Reports, Width: m.Width, StartedAt: clockTime(m.StartedAt), Bytes: r.Bytes,
		Keyframes: []format.Tick{}, Marks: []jsonMark{}, Gaps: []jsonGap{}, Players: []jsonPlayer{}, Labels: labels(m.Labels), Env: labels(m.Env)}
	if last, ok := s.LastTick(); ok {
		i.LastTick = &last
	}
	if r.Unproven() {
		i.Note = unproven
	}
	if s.End != nil {
		i.EndReason = jsonText(s.End.Reason)
	}
	if s.Digest != nil {
		i.Digest = s.Digest.String()
	}
	if r.Torn != nil {
		i.Torn = &jsonTorn{r.Torn.Offset, r.Torn.Size - r.Torn.Offset}
	}
	if m.Origin.Format != "" {
		i.Origin = &jsonOrigin{jsonText(m.Origin.Format), jsonText(m.Origin.Header)}
	}
	i.describeSeal(r)
	i.describeTimes(s)
	i.describeLists(s)
	i.describeBook(r.Book())
	return i
}

// describeSeal says who claims to have signed the file, since the content is
// not compared, and what was left out of what was signed.
func (i *fileInfo) describeSeal(r *replay) {
	for _, g := range r.Signatures() {
		i.SignedBy = append(i.SignedBy, g.Key.ID())
	}
	if a := r.Summary().Archive; a != nil {
		i.HashesLeft = a.HashesLeft
	}
	if red := r.Summary().Redaction; red != nil {
		i.Redacted = &jsonRedaction{red.Players, red.Metadata, red.Params, red.Segments, red.Marks}
	}
}

func (i *fileInfo) describeTimes(s *format.Summary) {
	if s.Timed {
		wall := float64(s.LastTime) / 1e6
		i.WallSeconds = &wall
	}
	if rate := s.Meta.TickRate.Float(); rate > 0 {
		game := float64(s.NextTick-s.Meta.FirstTick) / rate
		i.GameSeconds = &game
	}
}

func (i *fileInfo) describeLists(s *format.Summary) {
	for _, p := range s.Meta.HashParts {
		i.HashParts = append(i.HashParts, jsonHashPart{jsonText(p.Name), p.Bytes})
	}
	for _, k := range s.Keyframes {
		i.Keyframes = append(i.Keyframes, k.NextTick)
	}
	for _, m := range s.Marks {
		i.Marks = append(i.Marks, jsonMark{m.Tick, jsonText(m.Kind), m.Player, jsonText(m.Text)})
	}
	i.Gaps = describeGaps(s.Gaps, i.Format)
	for _, p := range s.Roster() {
		i.Players = append(i.Players, describePlayer(p))
	}
	i.PlayerCount = playerCount(s)
}

// playersLabel counts the players of a replay that does not list them, such
// as one that was RPLY1 or JSON lines.
const playersLabel = "players"

// playerCount is nil where the replay does not say how many players there
// were. Those who only watched do not count.
func playerCount(s *format.Summary) *int {
	n := 0
	for _, p := range s.Roster() {
		if !p.Observer {
			n++
		}
	}
	if len(s.Players) > 0 {
		return &n
	}
	for _, l := range s.Meta.Labels {
		if n, err := strconv.Atoi(l.Value); l.Key == playersLabel && err == nil && n >= 0 {
			return &n
		}
	}
	return nil
}

// describeGaps says who declared each gap. RPLY1 has no such declaration: its
// gaps show by the ticks that are missing.
func describeGaps(gaps []format.Gap, source string) []jsonGap {
	list := []jsonGap{}
	for _, g := range gaps {
		by := "client"
		switch {
		case source == "rply1":
			by = "nobody"
		case g.ByRecorder:
			by = "recorder"
		}
		list = append(list, jsonGap{g.First, g.Last, jsonText(g.Reason), by})
	}
	return list
}

func describePlayer(p format.Player) jsonPlayer {
	j := jsonPlayer{ID: p.ID, Name: jsonText(p.Name), Team: jsonText(p.Team), Observer: p.Observer, Stays: []jsonStay{}}
	for _, s := range p.Stays {
		stay := jsonStay{Joined: s.Joined}
		if !s.Open {
			stay.Left = &s.Left
		}
		j.Stays = append(j.Stays, stay)
	}
	return j
}

func (i *fileInfo) describeBook(b *format.CodeBook) {
	if b == nil {
		return
	}
	for _, c := range b.Codes {
		code := jsonCode{Code: c.Code, Name: jsonText(c.Name), Passive: c.Passive, Params: []jsonParam{}}
		for _, p := range c.Params {
			code.Params = append(code.Params, jsonParam{jsonText(p.Name), jsonText(p.Type), p.Personal})
		}
		i.Book = append(i.Book, code)
	}
}

func labels(list []format.Label) []jsonLabel {
	var out []jsonLabel
	for _, l := range list {
		out = append(out, jsonLabel{jsonText(l.Key), jsonText(l.Value)})
	}
	return out
}
