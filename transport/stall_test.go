package transport

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// stall tells the clients of all sessions that the disk is slow.
func (f *fakeRecorder) stall() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.sessions {
		s.sink.Stalled(Refusal{Code: CodeStorage, Text: "slow"})
	}
}

// A stall is told to the game of every session, opens none of them again, and
// holds back what follows until the daemon acknowledges something.
func TestStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.rec.delay = 5 * time.Second
		c := w.connect()
		recs, played := make([]*Recording, 50), make([]expected, 50)
		for i := range recs {
			recs[i], _ = c.Open(spec(fmt.Sprintf("match-%d", i)))
			played[i] = expected{first: 10}
			played[i].play(t, recs[i], 30)
		}
		time.Sleep(time.Second)
		w.rec.stall()
		time.Sleep(100 * time.Millisecond)
		sent := w.server.Stats().Chunks
		for i, r := range recs {
			var told *Refusal
			if !errors.As(r.Err(), &told) || told.Code != CodeStorage || !told.Temporary() {
				t.Errorf("%s: Err is %v", r.ID(), r.Err())
			}
			played[i].play(t, r, 30)
		}
		time.Sleep(2 * time.Second)
		if now := w.server.Stats().Chunks; now != sent {
			t.Errorf("%d chunks were sent during the stall", now-sent)
		}
		for i, r := range recs {
			if err := r.Wait(within(t, 20*time.Second), played[i].next()-1); err != nil || r.Err() != nil {
				t.Errorf("%s: Wait says %v, Err %v", r.ID(), err, r.Err())
			}
			w.sealAndCompare(r, &played[i])
		}
		if stats := w.server.Stats(); stats.Opened != 50 || stats.Refused != 0 || w.dials != 1 {
			t.Errorf("sessions were opened again: %+v, %d connections", stats, w.dials)
		}
		if n := len(w.reported()); n != 50 {
			t.Errorf("%d stalls were reported: %v", n, w.reported())
		}
		w.close(c)
	})
}

// A stall that is told while the session is being opened follows the opened
// frame; one behind an ack follows the ack.
func TestStallInOrder(t *testing.T) {
	slow := Refusal{Code: CodeStorage, Text: "slow"}
	for name, tell := range map[string]func(s *serverSession){
		"before opened": func(s *serverSession) {
			s.Stalled(slow)
			s.opened(nil, &OpenReply{Window: 1})
		},
		"behind an ack": func(s *serverSession) {
			s.opened(nil, &OpenReply{Window: 1})
			s.Ack(1, 0, 0)
			s.Stalled(slow)
		},
	} {
		c := newServerConn(newServer(Config{Recorder: newFakeRecorder()}), nil)
		s := &serverSession{conn: c, alias: 1}
		tell(s)
		c.version = Version
		out := c.gather(nil)
		want := (&stalled{alias: 1, refusal: slow}).append(nil)
		if n := len(out) - len(want); n <= 0 || string(out[n:]) != string(want) {
			t.Errorf("%s: the last frame is not the stall: % x", name, out)
		}
		s.Ack(s.received, 0, 0)
		if out := c.gather(nil); len(out) == 0 || out[0] != typeAck {
			t.Errorf("%s: no ack ends the stall: % x", name, out)
		}
	}
	s := &serverSession{conn: newServerConn(newServer(Config{Recorder: newFakeRecorder()}), nil), alias: 1}
	s.Stalled(slow)
	s.Ack(0, 0, 0)
	s.opened(nil, &OpenReply{Window: 1})
	if out := s.conn.gather(nil); out[0] != typeOpened || string(out) != string(append([]byte(nil), out[:2+int(out[1])]...)) {
		t.Errorf("a stall that was over is told: % x", out)
	}
}

// TestAliveWhileNothingMayGo: a client whose sessions all wait for the daemon's
// disk gives signs of life, though its game goes on and would have more to send.
func TestAliveWhileNothingMayGo(t *testing.T) {
	for _, waits := range []string{"for the disk", "for the window"} {
		t.Run(waits, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.rec.delay = time.Hour // until anything is acknowledged
				if waits == "for the window" {
					w.rec.window = 1
				}
				w.cfg.DeadAfter = 2 * time.Hour
				c := w.connect()
				r, err := c.Open(spec("match-1"))
				if err != nil {
					t.Fatal(err)
				}
				if err := r.EndTick(); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second)
				if waits == "for the disk" {
					w.rec.stall()
					time.Sleep(time.Second)
				}
				for range 60 * 20 { // a minute at 20 Hz
					if err := r.EndTick(); err != nil {
						t.Fatal(err)
					}
					r.Flush()
					time.Sleep(50 * time.Millisecond)
				}
				if n := c.Stats().Connects; n != 1 {
					t.Errorf("%d connections: %v", n, w.reported())
				}
				if r.q.sent != 1 || len(r.q.chunks) < 1000 {
					t.Errorf("%d of %d chunks were sent: the session did not wait", r.q.sent, len(r.q.chunks))
				}
				w.cut()
				_ = c.Close(within(t, time.Second))
			})
		})
	}
}

// TestStallBeforeOpened: what was told while the Recorder was still opening the
// session reaches the client in that order: acknowledged, then stalled.
func TestStallBeforeOpened(t *testing.T) {
	p := newPipe()
	c := newServerConn(newServer(Config{Recorder: newFakeRecorder()}), &p.b)
	c.version = Version
	s, err := c.addSession(&open{alias: 1, session: "match-1"})
	if err != nil {
		t.Fatal(err)
	}
	s.Ack(3, 2, 20)
	s.Stalled(Refusal{Code: CodeStorage})
	s.opened(nil, &OpenReply{Window: 100, Received: 1})
	var got []byte
	for b := c.gather(nil); len(b) > 0; {
		typ, length, head, err := frameHead(b)
		if err != nil {
			t.Fatal(err)
		}
		got, b = append(got, typ), b[head+length:]
	}
	if want := []byte{typeOpened, typeAck, typeStalled}; string(got) != string(want) {
		t.Errorf("frames %x, want %x", got, want)
	}
}
