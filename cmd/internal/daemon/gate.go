package daemon

import (
	"errors"
	"sync/atomic"

	"reprise/transport"
)

// connectionCeiling is what max_connections may be at most: the transport has
// it as a bound that does not change.
const connectionCeiling = 1 << 16

// gate bounds the connections, by a number that a reload may change. Those
// that are there are never touched.
type gate struct {
	most   atomic.Int64
	server atomic.Pointer[transport.Server] // nil: just starting
	// turnedAway counts the connections that were too many.
	turnedAway atomic.Uint64
}

func (g *gate) connections() int64 {
	if s := g.server.Load(); s != nil {
		return int64(s.Stats().Connections)
	}
	return 0
}

// admit decides on a new connection, which is counted already. It is told to
// try again.
func (g *gate) admit() error {
	if g.connections() <= g.most.Load() {
		return nil
	}
	g.turnedAway.Add(1)
	return &transport.Refusal{Code: transport.CodeUnavailable, Text: "the daemon has as many connections as it may"}
}

// errCrowded ends a handshake before it costs much.
var errCrowded = errors.New("too many connections")

// handshake decides on one that begins. Only a flood is refused here, without
// a reason that the other side could read.
func (g *gate) handshake() error {
	if g.connections() < 2*g.most.Load() {
		return nil
	}
	g.turnedAway.Add(1)
	return errCrowded
}
