package main

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"reprise/format"
)

// natsClient publishes ticks to JetStream: one stream, one subject for each
// session. It publishes with a reply subject of its own for each message that
// is not acknowledged, which costs it less than the futures of package
// jetstream, and the server the same.
type natsClient struct {
	w        workload
	linger   time.Duration
	meter    meter
	acked    atomic.Uint64
	failure  atomic.Pointer[string]
	lanes    []*lane
	sessions []natsSession
}

// natsSession gathers the ticks of a session; the first of them was made at
// since.
type natsSession struct {
	subject string
	next    format.Tick
	rows    []byte
	due     []time.Time
	since   time.Time
}

// lane is one connection. Its free slots are numbers of replies that no
// message waits for.
type lane struct {
	client  *natsClient
	conn    *nats.Conn
	replies []string
	free    chan int
	mu      sync.Mutex
	slots   [][]time.Time // when the ticks of a message were due
	// lingering are the sessions that gather ticks, the oldest first.
	lingering []lingering
}

type lingering struct {
	session int
	since   time.Time
}

// Slots bound the messages of a connection that are not acknowledged.
const (
	slots = 2048
	// largeSlots is for messages of gatherBytes each: JetStream refuses what
	// exceeds its queue of 128 MiB.
	largeSlots = 512
	// syncSlots is for a stream that syncs every message: JetStream
	// acknowledges only when it has worked off all that it found in its
	// queue, so a longer one delays, and gains nothing.
	syncSlots = 32
)

func slotsFor(s system, w workload) int {
	switch {
	case s.syncs:
		return syncSlots
	case w.rate == 0 && s.linger > 0:
		return largeSlots
	}
	return slots
}

// dialNATS connects as many game servers and creates the streams.
func dialNATS(ctx context.Context, s system, addr string, w workload, streams int) (client, error) {
	c := &natsClient{w: w, linger: s.linger, sessions: make([]natsSession, w.sessions)}
	for range connections {
		l, err := c.dialLane(addr, slotsFor(s, w))
		if err != nil {
			c.close()
			return nil, err
		}
		c.lanes = append(c.lanes, l)
	}
	if err := c.createStreams(ctx, streams); err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

func (c *natsClient) createStreams(ctx context.Context, n int) error {
	js, err := jetstream.New(c.lanes[0].conn)
	if err != nil {
		return err
	}
	for i := range n {
		_, err := js.CreateStream(ctx, jetstream.StreamConfig{Name: fmt.Sprintf("ticks-%d", i), Subjects: []string{fmt.Sprintf("ticks.%d.*", i)}, Storage: jetstream.FileStorage})
		if err != nil {
			return fmt.Errorf("creating stream %d: %w", i, err)
		}
	}
	for i := range c.sessions {
		c.sessions[i].subject = fmt.Sprintf("ticks.%d.load-%06d", i%n, i)
	}
	return nil
}

func (c *natsClient) dialLane(url string, n int) (*lane, error) {
	conn, err := nats.Connect(url, nats.SkipSubjectValidation())
	if err != nil {
		return nil, err
	}
	l := &lane{client: c, conn: conn, replies: make([]string, n), free: make(chan int, n), slots: make([][]time.Time, n)}
	inbox := conn.NewInbox()
	for i := range l.replies {
		l.replies[i] = inbox + "." + strconv.Itoa(i)
		l.free <- i
	}
	if _, err := conn.Subscribe(inbox+".*", l.take); err != nil {
		conn.Close()
		return nil, err
	}
	return l, conn.Flush()
}

// take takes an acknowledgement.
func (l *lane) take(m *nats.Msg) {
	now := time.Now()
	slot, err := strconv.Atoi(m.Subject[strings.LastIndexByte(m.Subject, '.')+1:])
	if err != nil || slot >= len(l.slots) || !bytes.Contains(m.Data, []byte(`"seq":`)) {
		text := fmt.Sprintf("JetStream answers %.200q", m.Data)
		l.client.failure.CompareAndSwap(nil, &text)
		return
	}
	l.mu.Lock()
	due := l.slots[slot]
	l.mu.Unlock()
	for _, at := range due {
		l.client.meter.add(now.Sub(at))
	}
	l.client.acked.Add(uint64(len(due)))
	l.free <- slot
}

// open makes the subjects known with a tick each.
func (c *natsClient) open(ctx context.Context) error {
	for i := range c.sessions {
		if err := c.tick(ctx, i, time.Now()); err != nil {
			return err
		}
	}
	return c.drain(ctx)
}

func (c *natsClient) tick(ctx context.Context, session int, due time.Time) error {
	s, l := &c.sessions[session], c.lanes[session%connections]
	var err error
	if s.rows, err = appendRow(s.rows, session, s.next); err != nil {
		return err
	}
	s.next++
	s.due = append(s.due, due)
	switch {
	case c.linger == 0, len(s.rows) >= gatherBytes:
		return l.publish(ctx, s)
	case len(s.due) == 1 && c.w.rate > 0:
		s.since = time.Now()
		l.lingering = append(l.lingering, lingering{session, s.since})
	}
	return nil
}

// beat publishes what has lingered.
func (c *natsClient) beat(ctx context.Context, connection int) error {
	return c.lanes[connection].expire(ctx, time.Now().Add(-c.linger))
}

// expire publishes the sessions that have gathered since before a time.
func (l *lane) expire(ctx context.Context, before time.Time) error {
	done := 0
	for _, x := range l.lingering {
		if x.since.After(before) {
			break
		}
		done++
		s := &l.client.sessions[x.session]
		// Else its bytes ended the message earlier.
		if len(s.due) > 0 && s.since.Equal(x.since) {
			if err := l.publish(ctx, s); err != nil {
				return err
			}
		}
	}
	l.lingering = append(l.lingering[:0], l.lingering[done:]...)
	return nil
}

// publish sends what a session has gathered, once a slot is free.
func (l *lane) publish(ctx context.Context, s *natsSession) error {
	if err := l.client.failed(); err != nil {
		return err
	}
	var slot int
	select {
	case slot = <-l.free:
	case <-ctx.Done():
		return ctx.Err()
	}
	l.mu.Lock()
	l.slots[slot], s.due = s.due, l.slots[slot][:0]
	l.mu.Unlock()
	err := l.conn.PublishRequest(s.subject, l.replies[slot], s.rows)
	s.rows = s.rows[:0]
	return err
}

// room has nothing to do: publish waits.
func (c *natsClient) room(ctx context.Context, _ int) error { return ctx.Err() }

func (c *natsClient) acknowledged() uint64 { return c.acked.Load() }

// drain must not run beside tick.
func (c *natsClient) drain(ctx context.Context) error {
	made := uint64(0)
	for i := range c.sessions {
		s := &c.sessions[i]
		made += uint64(s.next)
		if len(s.due) == 0 {
			continue
		}
		if err := c.lanes[i%connections].publish(ctx, s); err != nil {
			return err
		}
	}
	for c.acked.Load() < made {
		if err := c.failed(); err != nil {
			return err
		}
		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return c.failed()
}

// failed is the first answer that was no acknowledgement.
func (c *natsClient) failed() error {
	if text := c.failure.Load(); text != nil {
		return fmt.Errorf("%s", *text)
	}
	return nil
}

func (c *natsClient) waits() *meter { return &c.meter }

func (c *natsClient) close() {
	for _, l := range c.lanes {
		l.conn.Close()
	}
}
