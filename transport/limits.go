package transport

import "time"

// ALPN names the protocol in the TLS handshake. Another major version is
// another name.
const ALPN = "reprise/1"

// Version is the revision of the protocol that this program speaks, and
// LowestVersion the oldest that it still speaks. Hello carries the lowest and
// the highest of a client.
const (
	Version       = 2
	LowestVersion = 1
)

// The revisions differ in what follows. The numbers must not change.
const (
	// versionList is the first with list and listing frames, and with the
	// flags of opened.
	versionList = 2
)

// Limits hold for every frame. A length is compared with its limit before
// anything is allocated.
const (
	// MaxFrame bounds the body of a frame. The largest is an open frame
	// with metadata, code book and players.
	MaxFrame = 8 << 20
	// MaxAlias is the highest alias of a session on a connection.
	MaxAlias = 1<<32 - 1
	// MaxToken bounds the access token of a hello frame.
	MaxToken = 4 << 10
	// MaxAgent bounds the names by which the two programs introduce
	// themselves.
	MaxAgent = 256
	// MaxRefusalText bounds the text of a refusal and of a drain frame;
	// longer ones are cut.
	MaxRefusalText = 1 << 10
	// MaxReplayName bounds the name of a sealed replay.
	MaxReplayName = 1 << 10
	// MaxAcks bounds the sessions of one ack frame.
	MaxAcks = 4096
	// MaxListed bounds the sessions of one listing frame, and MaxListedText
	// each of its texts; longer ones are cut.
	MaxListed     = 1000
	MaxListedText = 1 << 10
	// KeySize is the size of a producer's key.
	KeySize = 16
	// MaxHeartbeat is the longest interval that a side may ask for.
	MaxHeartbeat = 10 * time.Minute
)
