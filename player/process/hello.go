package process

import (
	"errors"
	"fmt"

	"reprise/format"
)

// hello is the first message of a simulation.
type hello struct {
	// lowest and highest are the versions of the protocol that it speaks.
	lowest, highest uint16
	token           string
	// program is for people: the engine and its version.
	program string
	games   []gameInfo
	// data is, for each game, the hash of its data files. It does not travel
	// in the hello: see identity.
	data []string
}

// gameInfo is one game that a simulation offers.
type gameInfo struct {
	name, build string
	abilities   abilities
	// hashBytes is the width of its state hashes; 0 means whatever the
	// replay declares.
	hashBytes uint32
}

// abilities are what a game can do beyond playing.
type abilities uint32

// The bits of abilities are part of the protocol. They must not change.
const (
	canSave  abilities = 1
	canLoad  abilities = 2
	canDump  abilities = 4
	looksFar abilities = 8
)

// has reports whether all bits of b are set.
func (a abilities) has(b abilities) bool { return a&b == b }

const leastGame = 4 + 4 + 4 + 4

func (h *hello) append(dst []byte) []byte {
	start := len(dst)
	dst = beginFrame(dst, typeHello)
	dst = order.AppendUint16(dst, h.lowest)
	dst = order.AppendUint16(dst, h.highest)
	dst = appendText(dst, h.token)
	dst = appendText(dst, h.program)
	dst = appendCount(dst, len(h.games))
	for _, g := range h.games {
		dst = appendText(dst, g.name)
		dst = appendText(dst, g.build)
		dst = order.AppendUint32(dst, uint32(g.abilities))
		dst = order.AppendUint32(dst, g.hashBytes)
	}
	return endFrame(dst, start)
}

func (h *hello) parse(body []byte) error {
	c := cursor{body: body}
	h.lowest = c.u16("the lowest version")
	h.highest = c.u16("the highest version")
	h.token = c.text("the token")
	h.program = c.text("the program")
	h.games = make([]gameInfo, 0, c.count("games", leastGame))
	for range cap(h.games) {
		h.games = append(h.games, c.game())
	}
	return c.done()
}

func (c *cursor) game() gameInfo {
	g := gameInfo{name: c.text("a game's name"), build: c.text("a game's build"),
		abilities: abilities(c.u32("a game's abilities")), hashBytes: c.u32("a game's hash width")}
	if c.err == nil && g.hashBytes > format.MaxHashBytes {
		c.fail("game %q makes hashes of %d bytes, the most is %d", g.name, g.hashBytes, format.MaxHashBytes)
	}
	return g
}

// check refuses a hello that leaves nothing to talk about, up to a version of
// the protocol.
func (h *hello) check(most uint16) error {
	switch {
	case h.lowest > most || h.highest < LowestVersion || h.highest < h.lowest:
		return fmt.Errorf("it speaks versions %d to %d of the protocol, and the host %d to %d", h.lowest, h.highest, LowestVersion, most)
	case len(h.games) == 0:
		return errors.New("it offers no game")
	}
	return nil
}

// version is the highest that both sides speak.
func (h *hello) version() uint16 { return min(h.highest, Version) }

// dataOf is the hash of a game's data files; empty where it is not known.
func (h *hello) dataOf(game int) string {
	if game < len(h.data) {
		return h.data[game]
	}
	return ""
}

// identity is what a simulation of version 2 adds to its hello.
type identity struct {
	// data is the hash of the data files of each game, in the order of the
	// hello; empty where it is not known.
	data []string
}

const leastText = 4

func (i *identity) append(dst []byte) []byte {
	start := len(dst)
	dst = beginFrame(dst, typeIdentity)
	dst = appendCount(dst, len(i.data))
	for _, text := range i.data {
		dst = appendText(dst, text)
	}
	return endFrame(dst, start)
}

func (i *identity) parse(body []byte) error {
	c := cursor{body: body}
	i.data = list(&c, "games", leastText, func(c *cursor) string { return c.text("a game's data") })
	return c.done()
}

// welcome is the host's answer to a hello.
type welcome struct {
	version uint16
}

func (w *welcome) append(dst []byte) []byte {
	start := len(dst)
	dst = beginFrame(dst, typeWelcome)
	return endFrame(order.AppendUint16(dst, w.version), start)
}

func (w *welcome) parse(body []byte) error {
	c := cursor{body: body}
	w.version = c.u16("the version")
	return c.done()
}
