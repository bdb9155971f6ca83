package lab

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"reprise/cmd/internal/load"
	"reprise/format"
	"reprise/transport"
)

// Game servers open the same id at the same moment, again and again, and the
// daemon is killed among it. Each id is one game server's: its replay is that
// one's, the others are told that the id is taken.
func TestSameIDAtOnce(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	d := start(t, data, freePort(t))
	const rivals = 4
	var clients [rivals]*transport.Client
	for i := range clients {
		clients[i] = dial(t, d.addr, d.pin, hasty)
	}
	var promises []load.Promise
	for round := range pick(6, 200) {
		var sessions []*load.Session
		for i, c := range clients {
			s, err := load.Open(c, load.Script{Session: load.SessionID("wanted", round), Number: round*rivals + i, StepBytes: 60})
			if err == nil {
				err = s.Tick()
			}
			if err != nil {
				t.Fatal(err)
			}
			sessions = append(sessions, s)
		}
		if round%2 == 1 {
			d.Kill()
			d = start(t, data, d.addr)
		}
		promises = append(promises, theOne(t, sessions))
	}
	d.terminate()
	verdict(t, data, promises)
}

// theOne waits until one of the rivals has the session and the others are
// refused, and has it sealed.
func theOne(t *testing.T, sessions []*load.Session) load.Promise {
	t.Helper()
	var one *load.Session
	for _, s := range sessions {
		r := s.Recording
		eventually(t, "an answer for "+r.ID(), func() bool { return r.Durable() > 0 || final(r.Err()) != nil })
		var refusal *transport.Refusal
		switch err := r.Err(); {
		case r.Durable() == 0 && (!errors.As(err, &refusal) || refusal.Code != transport.CodeExists):
			t.Errorf("%s: refused with %v, want %v", r.ID(), err, transport.CodeExists)
		case r.Durable() > 0 && one != nil:
			t.Fatalf("%s belongs to two game servers", r.ID())
		case r.Durable() > 0:
			one = s
		}
	}
	if one == nil {
		t.Fatalf("%s belongs to nobody", sessions[0].Recording.ID())
	}
	if err := one.Recording.Seal(within(t, patience)); err != nil {
		t.Fatal(err)
	}
	return one.Promise()
}

// A game server comes back without its spool and goes on at a later tick: what
// is between is a declared gap, and the replay never passes for a whole one.
func TestResumedWithoutTheTicksBetween(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	d := start(t, data, freePort(t))
	script := load.Script{Session: "torn", Rate: 60, StepBytes: 60, StartedAt: 1}
	client := dial(t, d.addr, d.pin, hasty)
	first, err := load.Open(client, script)
	if err != nil {
		t.Fatal(err)
	}
	const lost, back = 300, 901
	ticks := func(s *load.Session, n int) {
		t.Helper()
		for range n {
			if err := s.Tick(); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Recording.Wait(within(t, patience), s.Recording.NextTick()-1); err != nil {
			t.Fatal(err)
		}
	}
	ticks(first, lost)
	d.Kill()
	abandon(client)
	d = start(t, data, d.addr)
	time.Sleep(time.Second) // its next epoch is a second of the clock
	second, err := load.Continue(within(t, patience), dial(t, d.addr, d.pin, hasty), script, first.Recording.Key(), back)
	if err != nil {
		t.Fatal(err)
	}
	ticks(second, 100)
	if err := second.Recording.Seal(within(t, patience)); err != nil {
		t.Fatal(err)
	}
	d.terminate()
	p := second.Promise()
	p.LeftOut = []format.Gap{{First: lost, Last: back - 1}}
	verdict(t, data, []load.Promise{p})
	f, err := format.Open(replays(t, data)[0])
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s := f.Summary()
	if s.Complete() || len(s.Gaps) != 1 || s.Gaps[0].First != lost || s.Gaps[0].Last != back-1 || !s.Gaps[0].ByRecorder {
		t.Errorf("the replay is complete (%v), and declares %+v; want a gap from tick %d to %d, by the recorder", s.Complete(), s.Gaps, lost, back-1)
	}
}
