package process

import "fmt"

// The versions of the protocol that this package speaks. They must not change,
// only grow.
const (
	// LowestVersion is the first one.
	LowestVersion = 1
	// Version is the highest; it added identify and identity.
	Version = 2
	// messageVersion is the one of simulations without a socket.
	messageVersion = 1
)

// messageType says what a message is.
type messageType uint8

// The types of messages are part of the protocol. They must not change.
const (
	// From the simulation to the host.
	typeHello   messageType = 1
	typeReady   messageType = 2
	typeRefused messageType = 3
	typeDone    messageType = 4
	typeFailed  messageType = 5
	typeBroken  messageType = 6
	typeFlushed messageType = 7
	typeSaved   messageType = 8
	typeFields  messageType = 9
	// typeIdentity is of version 2.
	typeIdentity messageType = 10

	// From the host to the simulation.
	typeWelcome messageType = 101
	typeReset   messageType = 102
	typeTick    messageType = 103
	typeFlush   messageType = 104
	typeSave    messageType = 105
	typeLoad    messageType = 106
	typeDump    messageType = 107
	typeBye     messageType = 108
	// typeIdentify is of version 2.
	typeIdentify messageType = 109
)

// Limits of a message's length, its type byte included.
const (
	// mostLength bounds a message without a saved state in it. The largest
	// is a tick of a mebibyte of one-byte list elements, written as eight
	// bytes each.
	mostLength = 16 << 20
	// mostStateLength bounds a message with a saved state, which is the
	// largest keyframe that a replay holds, and what stands around it.
	mostStateLength = 1<<30 + 64<<20
	// mostFieldsLength bounds the dump of a state.
	mostFieldsLength = 256 << 20
	// mostAnswerLength bounds what a simulation says of itself or a tick.
	mostAnswerLength = 1 << 20
)

type messageInfo struct {
	name string
	most int
}

var messages = map[messageType]messageInfo{
	typeHello:    {"hello", mostAnswerLength},
	typeReady:    {"ready", mostAnswerLength},
	typeRefused:  {"refused", mostAnswerLength},
	typeDone:     {"done", mostAnswerLength},
	typeFailed:   {"failed", mostAnswerLength},
	typeBroken:   {"broken", mostAnswerLength},
	typeFlushed:  {"flushed", mostAnswerLength},
	typeSaved:    {"saved", mostStateLength},
	typeFields:   {"fields", mostFieldsLength},
	typeIdentity: {"identity", mostAnswerLength},
	typeWelcome:  {"welcome", mostLength},
	typeReset:    {"reset", mostStateLength},
	typeTick:     {"tick", mostLength},
	typeFlush:    {"flush", mostLength},
	typeSave:     {"save", mostLength},
	typeLoad:     {"load", mostStateLength},
	typeDump:     {"dump", mostLength},
	typeBye:      {"bye", mostLength},
	typeIdentify: {"identify", mostLength},
}

// String gives the message's name.
func (t messageType) String() string {
	if info, known := messages[t]; known {
		return info.name
	}
	return fmt.Sprintf("message %d", uint8(t))
}

// badMessage says which message err is about.
func badMessage(t messageType, err error) error {
	return fmt.Errorf("%q: %w", t.String(), err)
}

var (
	errUnknown    = fmt.Errorf("%w: unknown in version %d of the protocol", errBad, Version)
	errOutOfPlace = fmt.Errorf("%w: out of place", errBad)
)

// parseEmpty checks the body of a message that has none.
func parseEmpty(body []byte) error {
	c := cursor{body: body}
	return c.done()
}
