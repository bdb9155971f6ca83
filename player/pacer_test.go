package player

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"reprise/format"
)

// metronome is a caller of a Pacer that looks at the clock when it likes.
type metronome struct {
	*Pacer
	now  time.Time
	next format.Tick
}

func newMetronome(num, den uint32) *metronome {
	m := &metronome{now: time.Unix(1, 0)}
	m.Pacer = NewPacer(&format.Metadata{TickRate: format.Rate{Num: num, Den: den}})
	m.Start(m.now)
	return m
}

// play lets d go by, in looks that are up to step apart.
func (m *metronome) play(d, step time.Duration, rng *rand.Rand) {
	for end := m.now.Add(d); m.now.Before(end); {
		m.next += format.Tick(m.Due(m.now, m.next))
		m.now = m.now.Add(min(end.Sub(m.now), 1+time.Duration(rng.Int64N(int64(step)))))
	}
}

// Ten minutes at any rate and speed, with changes at odd moments, are kept to
// a tick.
func TestPacerDoesNotDrift(t *testing.T) {
	for _, rate := range [][2]uint32{{60, 1}, {112, 5}, {30000, 1001}} {
		for _, speed := range []float64{0.1, 0.25, 1, 3, 64} {
			rng := rand.New(rand.NewPCG(uint64(rate[0]), uint64(10*speed)))
			m := newMetronome(rate[0], rate[1])
			want := 0.0
			for part := range 10 {
				s := speed * (1 + float64(part%2))
				if err := m.SetSpeed(m.now, s); err != nil {
					t.Fatal(err)
				}
				m.play(time.Minute, 300*time.Millisecond, rng)
				want += 60 * s * float64(rate[0]) / float64(rate[1])
			}
			m.next += format.Tick(m.Due(m.now, m.next))
			if got := float64(m.next); math.Abs(got-want) > 1.5 {
				t.Errorf("rate %v, speed %v: tick %v after 10 minutes, want %v", rate, speed, got, want)
			}
		}
	}
}

func TestPacerStartsAnewAfterALongPause(t *testing.T) {
	m := newMetronome(20, 1)
	if n := m.Due(m.now, 0); n != 1 {
		t.Fatalf("%d ticks due at first", n)
	}
	m.now = m.now.Add(900 * time.Millisecond)
	if n := m.Due(m.now, 1); n != 18 {
		t.Errorf("%d ticks due after a stall of 0.9 s, want 18", n)
	}
	m.now = m.now.Add(time.Hour)
	if n := m.Due(m.now, 19); n != 1 {
		t.Errorf("%d ticks due after an hour, want 1", n)
	}
	if wait := m.Wait(m.now, 20); wait != 50*time.Millisecond {
		t.Errorf("the next one is due in %v", wait)
	}
}

func TestPacerStopsAndMoves(t *testing.T) {
	m := newMetronome(20, 1)
	m.now = m.now.Add(75 * time.Millisecond)
	m.Stop(m.now)
	m.now = m.now.Add(time.Minute)
	if n := m.Due(m.now, 2); n != 0 {
		t.Errorf("%d ticks due while stopped", n)
	}
	m.Start(m.now)
	if wait := m.Wait(m.now, 2); wait != 25*time.Millisecond {
		t.Errorf("tick 2 is due in %v, want the half tick that was left", wait)
	}
	m.Move(m.now, 5000)
	if n, wait := m.Due(m.now, 5000), m.Wait(m.now, 5001); n != 1 || wait != 50*time.Millisecond {
		t.Errorf("%d due, the next one in %v", n, wait)
	}
	m.Skip(100)
	if wait := m.Wait(m.now, 5101); wait != 50*time.Millisecond {
		t.Errorf("the tick behind a gap is due in %v", wait)
	}
	if err := m.SetSpeed(m.now, Max); err != nil || m.Due(m.now, 5101) != math.MaxInt {
		t.Errorf("not all is due at speed Max (%v)", err)
	}
	for _, speed := range []float64{0, -1, math.NaN()} {
		if err := m.SetSpeed(m.now, speed); !errors.Is(err, ErrSpeed) || m.Speed() != Max {
			t.Errorf("speed %v: %v", speed, err)
		}
	}
}
