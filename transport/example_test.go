package transport_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"reprise/format"
	"reprise/transport"
)

// memory is a Recorder that only counts.
type memory struct{ sink transport.Sink }

func (m memory) Open(_ transport.OpenRequest, sink transport.Sink) (transport.Session, transport.OpenReply, error) {
	return memory{sink}, transport.OpenReply{}, nil
}

func (m memory) Append(chunk []byte) error {
	c, _, err := format.ParseChunk(chunk)
	if err != nil {
		return err
	}
	b, err := format.ParseBatch(c.Body, 0)
	if err != nil {
		return err
	}
	m.sink.Ack(c.Seq, c.Seq, b.Next())
	return nil
}

func (m memory) Seal(t format.Totals) error {
	m.sink.Sealed(format.Digest{}, fmt.Sprintf("a replay of %d ticks and %d steps", t.Ticks, t.Steps))
	return nil
}

func (m memory) Detach() {}

// A daemon and a game server in one: the client pins the daemon's
// certificate, records three ticks and seals the session.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)

	keypair, err := transport.SelfSigned(dir)
	if err != nil {
		log.Fatal(err)
	}
	server, err := transport.Listen("127.0.0.1:0", keypair.Config(), transport.Config{Recorder: memory{}})
	if err != nil {
		log.Fatal(err)
	}
	defer server.Shutdown(ctx)

	tlsConfig, err := transport.Trust{Pin: keypair.Fingerprint().String()}.Config()
	if err != nil {
		log.Fatal(err)
	}
	client, err := transport.Dial(ctx, []string{server.Addr().String()}, transport.ClientConfig{TLS: tlsConfig})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close(ctx)

	rec, err := client.Open(transport.Spec{Meta: format.Metadata{Session: "match-17", Game: "skirmish"}})
	if err != nil {
		log.Fatal(err)
	}
	const move = 1
	for unit := range int64(3) {
		if err := rec.Step(move, format.Int(unit), format.Int(40), format.Int(25)); err != nil {
			log.Fatal(err)
		}
		if err := rec.EndTick(); err != nil {
			log.Fatal(err)
		}
	}
	if err := rec.Seal(ctx); err != nil {
		log.Fatal(err)
	}
	_, name, _ := rec.Sealed()
	fmt.Printf("ticks before %d are safe: %s\n", rec.Durable(), name)
	// Output: ticks before 3 are safe: a replay of 3 ticks and 3 steps
}
