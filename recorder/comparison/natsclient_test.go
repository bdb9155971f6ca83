package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"reprise/format"
)

// TestNATSClient publishes ticks to a server in this process, and compares
// what each subject holds in the end with the rows of its session.
func TestNATSClient(t *testing.T) {
	const sessions, each = 20, 500
	for _, s := range []system{{name: "message per tick", nats: true, syncs: true}, {name: "gathered", nats: true, linger: 20 * time.Millisecond}} {
		t.Run(s.name, func(t *testing.T) {
			server, err := startNATS(t.TempDir(), false)
			if err != nil {
				t.Fatal(err)
			}
			defer server.WaitForShutdown()
			defer server.Shutdown()
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			c, err := dialNATS(ctx, s, server.ClientURL(), workload{sessions, 20}, 2)
			if err != nil {
				t.Fatal(err)
			}
			defer c.close()
			if err := c.open(ctx); err != nil {
				t.Fatal(err)
			}
			c.waits().on.Store(true)
			for range each {
				for session := range sessions {
					if err := c.tick(ctx, session, time.Now()); err != nil {
						t.Fatal(err)
					}
				}
			}
			if err := c.drain(ctx); err != nil {
				t.Fatal(err)
			}
			if got := c.acknowledged(); got != sessions*(each+1) {
				t.Errorf("%d ticks acknowledged, want %d", got, sessions*(each+1))
			}
			if got := len(c.waits().sorted()); got != sessions*each {
				t.Errorf("%d waits, want %d", got, sessions*each)
			}
			messages := compareSubjects(t, ctx, server.ClientURL(), sessions, each+1)
			if gathered := s.linger > 0; gathered != (messages < sessions*each) {
				t.Errorf("%d messages for %d ticks", messages, sessions*(each+1))
			}
		})
	}
}

// compareSubjects compares all subjects of two streams, and counts their
// messages.
func compareSubjects(t *testing.T, ctx context.Context, url string, sessions, each int) int {
	conn, err := nats.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	got, messages := map[string][]byte{}, 0
	for stream := range 2 {
		st, err := js.Stream(ctx, fmt.Sprintf("ticks-%d", stream))
		if err != nil {
			t.Fatal(err)
		}
		for seq := range st.CachedInfo().State.LastSeq {
			m, err := st.GetMsg(ctx, seq+1)
			if err != nil {
				t.Fatal(err)
			}
			if len(m.Data) > gatherBytes+rowBytes {
				t.Errorf("a message of %d bytes", len(m.Data))
			}
			got[m.Subject] = append(got[m.Subject], m.Data...)
			messages++
		}
	}
	for i := range sessions {
		var want []byte
		for tick := range each {
			if want, err = appendRow(want, i, format.Tick(tick)); err != nil {
				t.Fatal(err)
			}
		}
		if subject := fmt.Sprintf("ticks.%d.load-%06d", i%2, i); !bytes.Equal(got[subject], want) {
			t.Errorf("%s holds %d bytes, other than the %d bytes of its session's rows", subject, len(got[subject]), len(want))
		}
	}
	return messages
}

// TestNATSLinger wants ticks to leave once they have lingered, and not
// before.
func TestNATSLinger(t *testing.T) {
	server, err := startNATS(t.TempDir(), false)
	if err != nil {
		t.Fatal(err)
	}
	defer server.WaitForShutdown()
	defer server.Shutdown()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	c, err := dialNATS(ctx, system{nats: true, linger: time.Hour}, server.ClientURL(), workload{2, 20}, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	n := c.(*natsClient)
	for range 3 {
		if err := c.tick(ctx, 0, time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.beat(ctx, 0); err != nil {
		t.Fatal(err)
	}
	if got := len(n.sessions[0].due); got != 3 {
		t.Fatalf("%d ticks wait within the linger, want 3", got)
	}
	n.linger = time.Nanosecond
	time.Sleep(time.Microsecond)
	if err := c.beat(ctx, 0); err != nil {
		t.Fatal(err)
	}
	if got := len(n.sessions[0].due); got != 0 {
		t.Errorf("%d ticks wait after the linger, want 0", got)
	}
	if got := len(n.lanes[0].lingering); got != 0 {
		t.Errorf("%d sessions linger, want 0", got)
	}
}

// TestNATSRefused answers a message with an error: the client must tell, and
// not count it.
func TestNATSRefused(t *testing.T) {
	server, err := startNATS(t.TempDir(), false)
	if err != nil {
		t.Fatal(err)
	}
	defer server.WaitForShutdown()
	defer server.Shutdown()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	c, err := dialNATS(ctx, system{nats: true}, server.ClientURL(), workload{1, 20}, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	js, err := jetstream.New(c.(*natsClient).lanes[1].conn)
	if err != nil {
		t.Fatal(err)
	}
	if err := js.DeleteStream(ctx, "ticks-0"); err != nil {
		t.Fatal(err)
	}
	err = errors.Join(c.tick(ctx, 0, time.Now()), c.drain(ctx))
	if err == nil || errors.Is(err, context.DeadlineExceeded) || c.acknowledged() != 0 {
		t.Errorf("%v with %d ticks acknowledged, want an error and none", err, c.acknowledged())
	}
}
