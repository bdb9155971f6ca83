package process

import (
	"reprise/player"
)

// Handler is a simulation's side of the protocol without the socket: messages
// come in some other way, one at a time, and a welcome is answered by the
// hello. A game in a WebAssembly module is one (player/wasm/guest).
type Handler struct {
	server  *server
	program string
}

// NewHandler makes a Handler that offers games. Program is for people: the
// engine and its version.
func NewHandler(program string, games ...player.Linked) *Handler {
	return &Handler{server: newServer(nil, games), program: program}
}

// Handle answers one message, with its head. The answer is a message, too; it
// is valid until the next call.
func (h *Handler) Handle(message []byte) []byte {
	s := h.server
	s.out = s.out[:0]
	t, body, err := splitMessage(message)
	switch {
	case err != nil:
	case t == typeWelcome:
		hello := s.hello("", h.program, messageVersion)
		s.out = hello.append(s.out)
	default:
		err = s.handle(t, body)
	}
	if err != nil {
		b := broken{tick: s.tick.record.Tick, text: err.Error()}
		s.out, s.halted = b.append(s.out[:0]), true
	}
	return s.out
}
