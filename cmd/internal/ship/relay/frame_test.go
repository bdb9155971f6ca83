package relay

import (
	"bytes"
	"encoding/hex"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"reprise/format"
	"reprise/transport"
)

// example is a frame of the protocol's worked example.
func example(t *testing.T, name string) []byte {
	t.Helper()
	page, err := os.ReadFile("../../../../transport/PROTOCOL.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, found := strings.Cut(string(page), "**"+name+"**\n\n```\n")
	block, _, ended := strings.Cut(after, "```")
	if !found || !ended {
		t.Fatalf("the protocol's page has no example of %s", name)
	}
	b, err := hex.DecodeString(strings.Join(strings.Fields(block), ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// body takes the frame's head off.
func body(t *testing.T, frame []byte) []byte {
	t.Helper()
	if int(frame[1]) != len(frame)-2 {
		t.Fatalf("frame of %d bytes says %d", len(frame), frame[1])
	}
	return frame[2:]
}

func exampleKey() (k [transport.KeySize]byte) {
	for i := range k {
		k[i] = 0xa0 + byte(i)
	}
	return k
}

// What this program writes is what the protocol's page shows.
func TestFramesAreThoseOfTheProtocol(t *testing.T) {
	open := body(t, example(t, "open"))
	opening := open[len(open)-(11+26):]
	chunk := body(t, example(t, "chunk"))[1:]
	for name, got := range map[string][]byte{
		"hello": appendHello(nil, time.Second, nil, "demo"),
		"open":  appendOpen(nil, 1, &Request{Session: "match-17", Key: exampleKey(), Epoch: 1, Opening: opening}),
		"chunk": appendChunk(nil, 1, chunk),
		"seal":  appendSeal(nil, 1, format.Totals{NextTick: 9, Ticks: 2, Steps: 1}),
		"leave": appendLeave(nil, 1),
		"close": appendFrame(nil, typeClose, nil),
		"alive": appendFrame(nil, typeAlive, nil),
	} {
		if want := example(t, name); !bytes.Equal(got, want) {
			t.Errorf("%s is\n%x\nwant\n%x", name, got, want)
		}
	}
}

// What a daemon writes is read as the protocol's page says.
func TestFramesAreReadAsTheProtocolSays(t *testing.T) {
	h, err := parseHelloOK(body(t, example(t, "hello-ok")))
	if err != nil || h.heartbeat != 3*time.Second || h.mostFrame != transport.MaxFrame {
		t.Errorf("hello-ok: %+v, %v", h, err)
	}
	o, err := parseOpened(body(t, example(t, "opened")))
	if err != nil || o != (opened{alias: 1, durableTick: 7, totals: format.Totals{NextTick: 7}, window: 4 << 20}) {
		t.Errorf("opened: %+v, %v", o, err)
	}
	var a ack
	err = parseAcks(body(t, example(t, "ack")), func(x ack) { a = x })
	if err != nil || a != (ack{alias: 1, received: 1, durable: 1, durableTick: 9}) {
		t.Errorf("ack: %+v, %v", a, err)
	}
	alias, bytes, err := parseWindow(body(t, example(t, "window")))
	if err != nil || alias != 1 || bytes != 64<<10 {
		t.Errorf("window: %d of session %d, %v", bytes, alias, err)
	}
	alias, s, err := parseSealed(body(t, example(t, "sealed")))
	if err != nil || alias != 1 || s.Name != "match-17" || s.Digest[31] != 0xd1 {
		t.Errorf("sealed: %d, %+v, %v", alias, s, err)
	}
	alias, r, err := parseRefused(body(t, example(t, "refused, conflict at 8")))
	if err != nil || alias != 1 || *r != (transport.Refusal{Code: transport.CodeConflict, Tick: 8, HasTick: true, Text: "differs"}) {
		t.Errorf("refused: %d, %+v, %v", alias, r, err)
	}
	alias, r, err = parseRefused(body(t, example(t, "refused, whole connection")))
	if err != nil || alias != 0 || r.Code != transport.CodeUnauthorised || r.HasTick {
		t.Errorf("refused: %d, %+v, %v", alias, r, err)
	}
}

// A frame that is cut, or has bytes too many, is an error.
func TestMalformedFrames(t *testing.T) {
	for name, parse := range map[string]func([]byte) error{
		"hello-ok":               func(b []byte) error { _, err := parseHelloOK(b); return err },
		"opened":                 func(b []byte) error { _, err := parseOpened(b); return err },
		"ack":                    func(b []byte) error { return parseAcks(b, func(ack) {}) },
		"window":                 func(b []byte) error { _, _, err := parseWindow(b); return err },
		"sealed":                 func(b []byte) error { _, _, err := parseSealed(b); return err },
		"refused, conflict at 8": func(b []byte) error { _, _, err := parseRefused(b); return err },
	} {
		whole := body(t, example(t, name))
		if err := parse(whole); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for n := range whole {
			if err := parse(whole[:n]); !errors.Is(err, ErrFrame) {
				t.Errorf("%s cut after %d bytes: %v", name, n, err)
			}
		}
		if err := parse(append(bytes.Clone(whole), 0)); !errors.Is(err, ErrFrame) {
			t.Errorf("%s with a byte too many: %v", name, err)
		}
	}
}
