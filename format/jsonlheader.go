package format

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"
)

const originJSONL = "jsonl"

// jsonlHeader is what the first line says.
type jsonlHeader struct {
	meta *Metadata
	// ticks is the number of recorded ticks, gaps not counted; known tells
	// whether the line says it.
	ticks uint64
	known bool
	// codes is the number of code lines that follow, or noCodes where there
	// is no code book, or jsonlUnknown where the line does not say.
	codes int
	// hashes tells whether the line gives the width of hashes.
	hashes bool
	salt   []byte
	// players is the number of players, as the line spells it; it becomes a
	// label, for metadata have no other place for it.
	players string
}

// playersLabel is the label of a number of players.
const playersLabel = "players"

const (
	noCodes      = -1
	jsonlUnknown = -2
)

// parseJSONLHeader reads the first line. Keys that it does not know are kept
// with the line, as the replay's origin.
func parseJSONLHeader(line []byte) (*jsonlHeader, error) {
	h := &jsonlHeader{meta: &Metadata{Width: Width16}, codes: jsonlUnknown}
	j := &jsonText{b: line}
	named := false
	seen := map[string]bool{}
	j.need('{')
	for first := true; j.more('}', first); first = false {
		key := strings.Clone(j.key())
		if j.err == nil && seen[key] {
			j.fail("key %.40q stands twice", key)
		}
		seen[key] = true
		named = named || key == "game" || key == "tick_rate" || key == "ticks"
		h.member(j, key)
		if j.err != nil {
			return nil, fmt.Errorf("key %.40q: %w", key, j.err)
		}
	}
	if err := j.end(); err != nil {
		return nil, err
	}
	if !named {
		return nil, fmt.Errorf("no header: it has none of the keys game, tick_rate and ticks")
	}
	return h, h.finish(line)
}

func (h *jsonlHeader) member(j *jsonText, key string) {
	m := h.meta
	switch key {
	case "session":
		m.Session = j.text(key)
	case "game":
		m.Game = j.text(key)
	case "build":
		m.Build = j.numberOrText(key)
	case "data":
		m.Data = j.text(key)
	case "seed":
		m.Seed = j.uint(key, math.MaxUint64)
	case "map":
		m.Map = j.text(key)
	case "tick_rate":
		m.TickRate = j.rate()
	case "first_tick":
		m.FirstTick = j.tick(key)
	case "ticks":
		h.ticks, h.known = j.uint(key, MaxJSONLTicks), true
	case "started_at":
		m.StartedAt = j.startedAt()
	case "hash_bytes":
		m.HashBytes, h.hashes = int(j.uint(key, MaxHashBytes)), true
	case "hash_parts":
		m.HashParts = j.hashParts()
	case "width":
		m.Width = Width(j.uint(key, 16))
	case "labels":
		m.Labels = j.labels()
	case "env":
		m.Env = j.labels()
	case "personal":
		m.Personal = j.texts("a personal key")
	case "salt":
		h.salt = j.hex(key, SaltBytes)
	case "codes":
		if h.codes = noCodes; !j.word("null") {
			h.codes = int(j.uint(key, MaxCodes))
		}
	case "players":
		h.players = j.count()
	case "origin":
		m.Origin = j.origin()
	case "newer_fields":
		m.unknown = j.base64()
	default:
		j.pass(maxJSONDepth)
	}
}

// finish checks the metadata, and keeps the line where it says more, or says
// it in another way, than the line that would be written for it.
func (h *jsonlHeader) finish(line []byte) error {
	if h.meta.Origin.Format == "" && !bytes.Equal(bytes.TrimRight(line, "\r"), h.append(nil)) {
		h.meta.Origin = Origin{Format: originJSONL, Header: bytes.Clone(line)}
	}
	h.labelPlayers()
	m, err := ParseMeta(AppendMeta(nil, h.meta))
	if err != nil {
		return h.meta.complaint(err)
	}
	h.meta = m
	return nil
}

// labelPlayers adds the label, where the line has none of that name and room
// for it.
func (h *jsonlHeader) labelPlayers() {
	m := h.meta
	named := slices.ContainsFunc(m.Labels, func(l Label) bool { return l.Key == playersLabel })
	if h.players != "" && !named && len(m.Labels) < MaxLabels {
		m.Labels = append(m.Labels, Label{playersLabel, h.players})
	}
}

// count gives the digits of an integer from 0 on; any other value is passed
// over.
func (j *jsonText) count() string {
	if c := j.peek(); c < '0' || c > '9' {
		j.pass(maxJSONDepth)
		return ""
	}
	text, integer := j.number()
	if !integer || len(text) > 20 {
		return ""
	}
	return string(text)
}

// complaint gives the reason without the place in bytes that nobody sees.
func (m *Metadata) complaint(err error) error {
	if reason := m.Validate(); reason != nil {
		return reason
	}
	return err
}

// append appends the line that is written for the header.
func (h *jsonlHeader) append(dst []byte) []byte {
	m := h.meta
	key := func(name string) {
		dst = append(dst, ',', '"')
		dst = append(dst, name...)
		dst = append(dst, '"', ':')
	}
	text := func(name, s string) {
		if s != "" {
			key(name)
			dst = appendJSONString(dst, s)
		}
	}
	number := func(name string, v uint64) {
		if v != 0 {
			key(name)
			dst = strconv.AppendUint(dst, v, 10)
		}
	}
	dst = append(dst, `{"game":`...)
	dst = appendJSONString(dst, m.Game)
	text("build", m.Build)
	text("data", m.Data)
	text("session", m.Session)
	number("seed", m.Seed)
	text("map", m.Map)
	key("tick_rate")
	dst = appendRate(dst, m.TickRate)
	number("first_tick", uint64(m.FirstTick))
	if h.known {
		key("ticks")
		dst = strconv.AppendUint(dst, h.ticks, 10)
	}
	if m.StartedAt != 0 {
		key("started_at")
		dst = appendStartedAt(dst, m.StartedAt)
	}
	key("hash_bytes")
	dst = strconv.AppendInt(dst, int64(m.HashBytes), 10)
	if len(m.HashParts) > 0 {
		key("hash_parts")
		dst = appendHashParts(dst, m.HashParts)
	}
	if m.Width != Width16 {
		number("width", uint64(m.Width))
	}
	if len(m.Labels) > 0 {
		key("labels")
		dst = appendLabels(dst, m.Labels)
	}
	if len(m.Env) > 0 {
		key("env")
		dst = appendLabels(dst, m.Env)
	}
	if len(m.Personal) > 0 {
		key("personal")
		for i, k := range m.Personal {
			dst = appendJSONString(append(dst, "[,"[min(i, 1)]), k)
		}
		dst = append(dst, ']')
	}
	if len(h.salt) > 0 {
		key("salt")
		dst = appendHex(dst, h.salt)
	}
	key("codes")
	if h.codes < 0 {
		dst = append(dst, "null"...)
	} else {
		dst = strconv.AppendInt(dst, int64(h.codes), 10)
	}
	if m.Origin.Format != "" {
		key("origin")
		dst = append(dst, `{"format":`...)
		dst = appendJSONString(dst, m.Origin.Format)
		dst = append(dst, `,"header":`...)
		dst = append(appendBase64(dst, m.Origin.Header), '}')
	}
	if len(m.unknown) > 0 {
		key("newer_fields")
		dst = appendBase64(dst, m.unknown)
	}
	return append(dst, '}')
}

func appendBase64(dst, b []byte) []byte {
	dst = append(dst, '"')
	dst = base64.StdEncoding.AppendEncode(dst, b)
	return append(dst, '"')
}

func appendHex(dst, b []byte) []byte {
	dst = append(dst, '"')
	dst = hex.AppendEncode(dst, b)
	return append(dst, '"')
}

// hex reads a string of n bytes in hexadecimal digits.
func (j *jsonText) hex(field string, n int) []byte {
	s := j.strBytes()
	b, err := hex.AppendDecode(nil, s)
	if j.err == nil && (err != nil || n > 0 && len(b) != n || len(b) == 0 || len(b) > MaxHashBytes) {
		j.fail("%s is %.80q: hexadecimal digits of the declared number of bytes, 1 to %d", field, s, MaxHashBytes)
	}
	return b
}

// numberOrText reads a text that others may have written as a number.
func (j *jsonText) numberOrText(field string) string {
	if c := j.peek(); c == '-' || c >= '0' && c <= '9' {
		text, _ := j.number()
		return string(text)
	}
	return j.text(field)
}

// rate reads ticks per second: a number, exact as it is spelled, or a
// fraction like "1000/3".
func (j *jsonText) rate() Rate {
	s := j.numberOrText("tick_rate")
	if j.err != nil {
		return Rate{}
	}
	r, ok := parseRate(s)
	if !ok {
		j.fail("%.40q is no rate of two numbers below 2^32: write it as a decimal like 22.4 or a fraction like \"1000/3\"", s)
	}
	return r
}

func parseRate(s string) (Rate, bool) {
	if num, den, ok := strings.Cut(s, "/"); ok {
		n, errN := strconv.ParseUint(num, 10, 32)
		d, errD := strconv.ParseUint(den, 10, 32)
		return Rate{uint32(n), uint32(d)}, errN == nil && errD == nil && n > 0 && d > 0
	}
	if len(s) > 40 || strings.ContainsAny(s, "eE_xXpP+-") {
		return Rate{}, false
	}
	q, ok := new(big.Rat).SetString(s)
	if !ok || q.Num().BitLen() > 32 || q.Denom().BitLen() > 32 {
		return Rate{}, false
	}
	if q.Sign() == 0 {
		return Rate{}, true
	}
	return Rate{uint32(q.Num().Uint64()), uint32(q.Denom().Uint64())}, true
}

// appendRate appends the decimal that means exactly r, or a fraction where
// none gives these two numbers.
func appendRate(dst []byte, r Rate) []byte {
	s := r.String()
	if back, ok := parseRate(s); !ok || back != r || strings.Contains(s, "/") {
		return fmt.Appendf(dst, `"%d/%d"`, r.Num, r.Den)
	}
	return append(dst, s...)
}

// startedAt reads a time as RFC 3339, or as microseconds since 1970.
func (j *jsonText) startedAt() int64 {
	if j.peek() != '"' {
		v, ok := j.numberValue().Int64()
		if !ok {
			j.fail("not an integer of microseconds since 1970")
		}
		return v
	}
	s := j.str()
	t, err := time.Parse(time.RFC3339, s)
	if j.err == nil && (err != nil || t.Nanosecond()%1000 != 0) {
		j.fail("%.40q is not a time of RFC 3339 with at most six digits of a second", s)
	}
	return t.UnixMicro()
}

func appendStartedAt(dst []byte, micros int64) []byte {
	t := time.UnixMicro(micros).UTC()
	if y := t.Year(); y < 0 || y > 9999 {
		return strconv.AppendInt(dst, micros, 10)
	}
	dst = append(dst, '"')
	dst = t.AppendFormat(dst, time.RFC3339Nano)
	return append(dst, '"')
}

func (j *jsonText) hashParts() []HashPart {
	var parts []HashPart
	j.need('[')
	for first := true; j.more(']', first); first = false {
		var p HashPart
		j.members(func(key string) {
			switch key {
			case "name":
				p.Name = j.text(key)
			case "bytes":
				p.Bytes = int(j.uint(key, MaxHashBytes))
			default:
				j.fail("key %.40q of a hash part: use name and bytes", key)
			}
		})
		parts = append(parts, p)
	}
	return parts
}

func appendHashParts(dst []byte, parts []HashPart) []byte {
	for i, p := range parts {
		dst = append(dst, "[,"[min(i, 1)])
		dst = append(dst, `{"name":`...)
		dst = appendJSONString(dst, p.Name)
		dst = fmt.Appendf(dst, `,"bytes":%d}`, p.Bytes)
	}
	return append(dst, ']')
}

// members reads an object; each reads a member's value.
func (j *jsonText) members(each func(key string)) {
	j.need('{')
	for first := true; j.more('}', first); first = false {
		each(j.key())
	}
}

// labels reads pairs: [["key","value"],…] keeps their order and doubles, an
// object is taken as well.
func (j *jsonText) labels() []Label {
	var labels []Label
	if j.peek() == '{' {
		j.members(func(key string) {
			key = strings.Clone(key)
			labels = append(labels, Label{key, j.text("a label")})
		})
		return labels
	}
	j.need('[')
	for first := true; j.more(']', first); first = false {
		j.need('[')
		l := Label{Key: j.text("a label's key")}
		j.need(',')
		l.Value = j.text("a label's value")
		j.need(']')
		labels = append(labels, l)
	}
	return labels
}

// texts reads an array of strings.
func (j *jsonText) texts(what string) (list []string) {
	j.need('[')
	for first := true; j.more(']', first); first = false {
		list = append(list, j.text(what))
	}
	return list
}

func appendLabels(dst []byte, labels []Label) []byte {
	for i, l := range labels {
		dst = append(dst, "[,"[min(i, 1)], '[')
		dst = append(appendJSONString(dst, l.Key), ',')
		dst = append(appendJSONString(dst, l.Value), ']')
	}
	return append(dst, ']')
}

func (j *jsonText) origin() Origin {
	var o Origin
	j.members(func(key string) {
		switch key {
		case "format":
			o.Format = j.text(key)
		case "header":
			o.Header = j.base64()
		default:
			j.fail("key %.40q of the origin: use format and header", key)
		}
	})
	return o
}

// codeLine reads a line of the code book.
func (j *jsonText) codeLine() CodeInfo {
	var c CodeInfo
	seen := map[string]bool{}
	j.members(func(key string) {
		key = strings.Clone(key)
		if seen[key] {
			j.fail("key %.40q stands twice", key)
		}
		seen[key] = true
		switch key {
		case "code":
			c.Code = uint16(j.uint(key, math.MaxUint16))
		case "name":
			c.Name = j.text(key)
		case "passive":
			c.Passive = j.bool()
		case "params":
			c.Params = j.codeParams()
		default:
			j.fail("key %.40q in a code line: use code, name, passive and params", key)
		}
	})
	if j.err == nil && !seen["code"] {
		j.fail("a code line without its code")
	}
	return c
}

func (j *jsonText) codeParams() []ParamInfo {
	var params []ParamInfo
	j.need('[')
	for first := true; j.more(']', first); first = false {
		var p ParamInfo
		j.members(func(key string) {
			switch key {
			case "name":
				p.Name = j.text(key)
			case "type":
				p.Type = j.text(key)
			case "personal":
				p.Personal = j.bool()
			default:
				j.fail("key %.40q of a parameter: use name, type and personal", key)
			}
		})
		params = append(params, p)
	}
	return params
}

func appendCodeLine(dst []byte, c *CodeInfo) []byte {
	dst = fmt.Appendf(dst, `{"code":%d`, c.Code)
	if c.Name != "" {
		dst = appendJSONString(append(dst, `,"name":`...), c.Name)
	}
	if c.Passive {
		dst = append(dst, `,"passive":true`...)
	}
	for i, p := range c.Params {
		if i == 0 {
			dst = append(dst, `,"params":`...)
		}
		dst = append(dst, "[,"[min(i, 1)])
		dst = appendJSONString(append(dst, `{"name":`...), p.Name)
		if p.Type != "" {
			dst = appendJSONString(append(dst, `,"type":`...), p.Type)
		}
		if p.Personal {
			dst = append(dst, `,"personal":true`...)
		}
		dst = append(dst, '}')
	}
	if len(c.Params) > 0 {
		dst = append(dst, ']')
	}
	return append(dst, '}')
}

// playerParam is the name of the parameter that JSON lines write as p.
const playerParam = "player"

// PlayerFirst tells whether the code's first parameter is the player.
func (c *CodeInfo) PlayerFirst() bool {
	return c != nil && len(c.Params) > 0 && c.Params[0].Name == playerParam
}
