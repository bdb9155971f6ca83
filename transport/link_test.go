package transport

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"reprise/format"
)

// A daemon that sends nonsense ends the connection, not the client: it says
// so and connects again.
func TestMalformedDaemon(t *testing.T) {
	opened1 := (&opened{alias: 1, window: 1 << 20, totals: format.Totals{NextTick: 10}, durableTick: 10}).append(nil, Version)
	for name, frames := range map[string][]byte{
		"no hello-ok":                  nil,
		"a client's frame":             appendLeave(nil, 1),
		"an unknown type":              {0x5f, 0},
		"closed without close":         appendFrame(nil, typeClosed),
		"opened twice":                 join(opened1, opened1),
		"an alias that was not opened": (&window{alias: 9}).append(nil),
		"an ack of the same":           appendAcks(nil, []ack{{alias: 9}}),
		"an ack of what was not sent":  join(opened1, appendAcks(nil, []ack{{alias: 1, received: 5, durable: 5}})),
		"a length over the limit":      {typeAck, 0xff, 0xff, 0xff, 0xff, 0x0f},
		"another version":              (&helloOK{version: Version + 1}).append(nil),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.cfg.Background = true
				c := newClient(&addresses{list: []string{"a:1"}}, w.cfg)
				dials := 0
				c.dial = func(ctx context.Context, addr string) (carrier, error) {
					if dials++; dials > 1 {
						return w.dial(ctx, addr)
					}
					p := newPipe()
					go nonsense(&p.b, name, frames)
					return &p.a, nil
				}
				r, err := c.Open(spec("match-1"))
				if err != nil {
					t.Fatal(err)
				}
				if err := c.start(t.Context()); err != nil {
					t.Fatal(err)
				}
				e := expected{first: 10}
				e.play(t, r, 100)
				w.sealAndCompare(r, &e)
				w.close(c)
				var refusal *Refusal
				if errs := w.reported(); len(errs) == 0 || !errors.Is(errs[0], ErrFrame) && !errors.As(errs[0], &refusal) {
					t.Errorf("reported %v", errs)
				}
			})
		})
	}
}

// nonsense is a daemon that reads everything and writes these frames.
func nonsense(c *pipeEnd, name string, frames []byte) {
	r := newFrameReader(c)
	if _, _, err := r.next(); err != nil {
		return
	}
	switch name {
	case "no hello-ok":
		c.Write(appendFrame(nil, typeAlive))
	case "another version":
		c.Write(frames)
	default:
		c.Write((&helloOK{version: Version, heartbeat: time.Second, frame: MaxFrame}).append(nil))
		r.next() // the open frame
		c.Write(frames)
	}
	io.Copy(io.Discard, c)
}

// A stream of frames of all sizes reads back, however it is cut into reads;
// cut short, it ends as what it is.
func TestFrameReader(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 1))
	var stream []byte
	var bodies [][]byte
	ends := map[int]bool{0: true}
	for _, size := range []int{0, 1, 127, 128, 1000, readBuffer - 3, readBuffer, 100_000, 300_000, 5, 1 << 20, 40_000} {
		body := make([]byte, size)
		for i := range body {
			body[i] = byte(rnd.Uint32())
		}
		bodies = append(bodies, body)
		stream = appendFrame(stream, typeChunk, body)
		ends[len(stream)] = true
	}
	read := func(b []byte) (n int, err error) {
		c := &pieces{b: b, rnd: rnd}
		r := newFrameReader(c)
		for ; ; n++ {
			typ, body, err := r.next()
			if err != nil {
				return n, err
			}
			if typ != typeChunk || !bytes.Equal(body, bodies[n]) {
				t.Fatalf("frame %d: %s of %d bytes", n, frameName(typ), len(body))
			}
		}
	}
	if n, err := read(stream); n != len(bodies) || err != io.EOF {
		t.Errorf("%d frames, %v", n, err)
	}
	var cuts []int
	for end := range ends {
		cuts = append(cuts, end, end+1, end+2, end+3, end+4, end+4+readBuffer)
	}
	for range 200 {
		cuts = append(cuts, rnd.IntN(len(stream)))
	}
	for _, cut := range cuts {
		if cut > len(stream) {
			continue
		}
		want := io.ErrUnexpectedEOF
		if ends[cut] {
			want = io.EOF
		}
		if _, err := read(stream[:cut]); err != want {
			t.Fatalf("cut at %d: %v, expected %v", cut, err, want)
		}
	}
}

// A frame that announces much and brings nothing costs no memory.
func TestAnnouncedLength(t *testing.T) {
	c := &pieces{b: []byte{typeOpen, 0x80, 0x80, 0x80, 0x04, 1, 2, 3}, rnd: rand.New(rand.NewPCG(1, 1))}
	r := newFrameReader(c)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, _, err := r.next(); err != io.ErrUnexpectedEOF {
		t.Errorf("%v", err)
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20 {
		t.Errorf("%d bytes were allocated for 3", n)
	}
}

// pieces is a carrier that gives its bytes in pieces of any size.
type pieces struct {
	pipeEnd
	b   []byte
	rnd *rand.Rand
}

func (p *pieces) Read(b []byte) (int, error) {
	if len(p.b) == 0 {
		return 0, io.EOF
	}
	n := copy(b[:1+p.rnd.IntN(len(b))], p.b)
	p.b = p.b[n:]
	return n, nil
}

func (p *pieces) SetReadDeadline(time.Time) error { return nil }

// TestOpenOnFullLink: on a slow link that others keep full, a session that is
// opened waits for a part of a write, and not for all that could be sent.
func TestOpenOnFullLink(t *testing.T) {
	l := &link{client: newClient(&addresses{list: []string{"a:1"}}, ClientConfig{})}
	chunk := make([]byte, 1000)
	n := 0
	for l.offer(1, chunk) {
		if n++; n > writeSize {
			t.Fatal("a chunk is always taken")
		}
	}
	if len(l.out) > turnSize+2*len(chunk) || l.filled() {
		t.Errorf("%d bytes were taken, a turn is %d and a write %d", len(l.out), turnSize, writeSize)
	}
}
