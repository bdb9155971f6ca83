package process

import (
	"math"

	"reprise/format"
	"reprise/player"
)

// reset describes the start of a replay.
type reset struct {
	// game is the game's position in the hello.
	game  uint32
	start player.Start
}

func (r *reset) append(dst []byte) []byte {
	begin := len(dst)
	dst = beginFrame(dst, typeReset)
	dst = order.AppendUint32(dst, r.game)
	dst = order.AppendUint64(dst, uint64(r.start.NextTick))
	dst = appendFlag(dst, r.start.State != nil)
	dst = appendText(dst, r.start.State)
	dst = appendMeta(dst, r.start.Meta)
	dst = appendPlayers(dst, r.start.Players)
	dst = appendBook(dst, r.start.Book)
	return endFrame(dst, begin)
}

func appendMeta(dst []byte, m *format.Metadata) []byte {
	dst = order.AppendUint64(dst, uint64(m.FirstTick))
	dst = order.AppendUint64(dst, m.Seed)
	for _, text := range [...]string{m.Map, m.Game, m.Build, m.Data, m.Session} {
		dst = appendText(dst, text)
	}
	dst = order.AppendUint32(dst, m.TickRate.Num)
	dst = order.AppendUint32(dst, m.TickRate.Den)
	dst = order.AppendUint64(dst, uint64(m.StartedAt))
	dst = order.AppendUint32(dst, uint32(m.HashBytes))
	dst = appendCount(dst, len(m.HashParts))
	for _, p := range m.HashParts {
		dst = appendText(dst, p.Name)
		dst = order.AppendUint32(dst, uint32(p.Bytes))
	}
	dst = append(dst, byte(m.Width))
	dst = appendLabels(dst, m.Labels)
	dst = appendLabels(dst, m.Env)
	dst = appendText(dst, m.Origin.Format)
	return appendText(dst, m.Origin.Header)
}

func appendLabels(dst []byte, labels []format.Label) []byte {
	dst = appendCount(dst, len(labels))
	for _, l := range labels {
		dst = appendText(dst, l.Key)
		dst = appendText(dst, l.Value)
	}
	return dst
}

func appendPlayers(dst []byte, players []format.Player) []byte {
	dst = appendCount(dst, len(players))
	for _, p := range players {
		dst = order.AppendUint64(dst, p.ID)
		dst = appendText(dst, p.Name)
		dst = appendText(dst, p.Team)
		dst = appendFlag(dst, p.Observer)
		dst = appendCount(dst, len(p.Stays))
		for _, s := range p.Stays {
			dst = order.AppendUint64(dst, uint64(s.Joined))
			dst = order.AppendUint64(dst, uint64(s.Left))
			dst = appendFlag(dst, s.Open)
		}
	}
	return dst
}

func appendBook(dst []byte, book *format.CodeBook) []byte {
	dst = appendFlag(dst, book != nil)
	if book == nil {
		return appendCount(dst, 0)
	}
	dst = appendCount(dst, len(book.Codes))
	for _, code := range book.Codes {
		dst = order.AppendUint16(dst, code.Code)
		dst = appendText(dst, code.Name)
		dst = appendFlag(dst, code.Passive)
		dst = appendCount(dst, len(code.Params))
		for _, p := range code.Params {
			dst = appendText(dst, p.Name)
			dst = appendText(dst, p.Type)
			dst = appendFlag(dst, p.Personal)
		}
	}
	return dst
}

// parse reads a reset. Its texts have memory of their own, and so has the
// state.
func (r *reset) parse(body []byte) error {
	c := cursor{body: body}
	r.game = c.u32("the game")
	r.start = player.Start{NextTick: format.Tick(c.u64("the next tick"))}
	r.start.State = c.state()
	r.start.Meta = c.meta()
	r.start.Players = list(&c, "players", leastPlayer, (*cursor).player)
	r.start.Book = c.book()
	return c.done()
}

// The least bytes of the items of lists.
const (
	leastHashPart = 4 + 4
	leastLabel    = 4 + 4
	leastPlayer   = 8 + 4 + 4 + 1 + 4
	leastStay     = 8 + 8 + 1
	leastCode     = 2 + 4 + 1 + 4
	leastParam    = 4 + 4 + 1
)

// list takes a list; nil where it is empty.
func list[T any](c *cursor, field string, least int, item func(*cursor) T) []T {
	n := c.count(field, least)
	if n == 0 {
		return nil
	}
	items := make([]T, 0, n)
	for range n {
		items = append(items, item(c))
	}
	return items
}

func (c *cursor) meta() *format.Metadata {
	m := &format.Metadata{FirstTick: format.Tick(c.u64("the first tick")), Seed: c.u64("the seed")}
	m.Map = c.text("the map")
	m.Game = c.text("the game")
	m.Build = c.text("the build")
	m.Data = c.text("the data")
	m.Session = c.text("the session")
	m.TickRate = format.Rate{Num: c.u32("the rate's numerator"), Den: c.u32("the rate's denominator")}
	m.StartedAt = int64(c.u64("the start time"))
	m.HashBytes = c.int32("the hash width")
	m.HashParts = list(c, "hash parts", leastHashPart, (*cursor).hashPart)
	m.Width = format.Width(c.u8("the command width"))
	m.Labels = list(c, "labels", leastLabel, (*cursor).label)
	m.Env = list(c, "facts", leastLabel, (*cursor).label)
	m.Origin.Format = c.text("the origin's format")
	if header := c.bytes("the origin's header"); len(header) > 0 {
		m.Origin.Header = append([]byte(nil), header...)
	}
	return m
}

// int32 takes a number that is not negative as an int.
func (c *cursor) int32(field string) int {
	v := c.u32(field)
	if v > math.MaxInt32 {
		c.fail("%s is %d", field, v)
		return 0
	}
	return int(v)
}

func (c *cursor) hashPart() format.HashPart {
	return format.HashPart{Name: c.text("a hash part's name"), Bytes: c.int32("a hash part's width")}
}

func (c *cursor) label() format.Label {
	return format.Label{Key: c.text("a label's key"), Value: c.text("a label's value")}
}

func (c *cursor) player() format.Player {
	return format.Player{ID: c.u64("a player's number"), Name: c.text("a player's name"), Team: c.text("a player's team"),
		Observer: c.flag("a player's observer flag"), Stays: list(c, "stays", leastStay, (*cursor).stay)}
}

func (c *cursor) stay() format.Stay {
	return format.Stay{Joined: format.Tick(c.u64("a join")), Left: format.Tick(c.u64("a leave")), Open: c.flag("a stay's open flag")}
}

func (c *cursor) book() *format.CodeBook {
	has := c.flag("the code book's flag")
	codes := list(c, "codes", leastCode, (*cursor).code)
	if !has && len(codes) > 0 {
		c.fail("%d codes without a code book", len(codes))
	}
	if !has || c.err != nil {
		return nil
	}
	return &format.CodeBook{Codes: codes}
}

func (c *cursor) code() format.CodeInfo {
	return format.CodeInfo{Code: c.u16("a code"), Name: c.text("a code's name"), Passive: c.flag("a code's passive flag"),
		Params: list(c, "parameters", leastParam, (*cursor).param)}
}

func (c *cursor) param() format.ParamInfo {
	return format.ParamInfo{Name: c.text("a parameter's name"), Type: c.text("a parameter's type"), Personal: c.flag("a parameter's personal flag")}
}

// state takes the keyframe; nil where there is none.
func (c *cursor) state() []byte {
	has := c.flag("the keyframe's flag")
	state := c.bytes("the keyframe")
	if !has && len(state) > 0 {
		c.fail("a keyframe of %d bytes where there is none", len(state))
	}
	if !has || c.err != nil {
		return nil
	}
	return append(make([]byte, 0, len(state)), state...)
}
