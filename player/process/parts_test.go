package process

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"reprise/format"
)

func TestCheckDone(t *testing.T) {
	plain, asked := &expectation{tick: 4, steps: 2}, &expectation{tick: 4, steps: 2, asked: true}
	for _, c := range []struct {
		x     *expectation
		d     done
		width int
		want  string // empty: good
	}{
		{plain, done{tick: 4, ignored: 2}, 8, ""},
		{asked, done{tick: 4, hash: make([]byte, 8)}, 8, ""},
		{asked, done{tick: 4, hash: make([]byte, 5)}, 0, ""},
		{nil, done{tick: 4}, 8, "none was due"},
		{plain, done{tick: 3}, 8, "tick 3 was answered where tick 4 was due"},
		{plain, done{tick: 4, ignored: 3}, 8, "3 ignored steps in a tick of 2"},
		{plain, done{tick: 4, hash: []byte{1}}, 1, "not asked for"},
		{asked, done{tick: 4}, 8, "no hash"},
		{asked, done{tick: 4}, 0, ""},
		{asked, done{tick: 4, hash: make([]byte, 7)}, 8, "7 bytes where 8 are declared"},
	} {
		switch err := c.x.checkDone(&c.d, c.width); {
		case c.want == "" && err != nil, c.want != "" && (!errors.Is(err, errBad) || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%+v for %+v: %v, want %q", c.d, c.x, err, c.want)
		}
	}
}

func TestCheckFailed(t *testing.T) {
	x := &expectation{tick: 4, steps: 2}
	for _, c := range []struct {
		x      *expectation
		f      failed
		looks  bool
		wanted bool
	}{
		{x, failed{tick: 4, at: 4, step: 1}, false, true},
		{x, failed{tick: 4, at: 4, step: 2}, true, false},
		{x, failed{tick: 4, at: 5, step: 7}, true, true},
		{x, failed{tick: 4, at: 5}, false, false},
		{x, failed{tick: 5, at: 5}, true, false},
		{nil, failed{tick: 4, at: 4}, true, false},
	} {
		if err := c.x.checkFailed(&c.f, c.looks); (err == nil) != c.wanted {
			t.Errorf("%+v: %v", c.f, err)
		}
	}
}

// A batch that leaves just when a step fails is flushed without an answer.
func TestFailureWithABatchUnderWay(t *testing.T) {
	here, there := net.Pipe()
	defer func() { _, _ = here.Close(), there.Close() }()
	l := &link{conn: here, wake: make(chan struct{}, 1)}
	l.expect([]expectation{{tick: 1, steps: 1}, {tick: 2}}, flushSettled, time.Minute)
	f := failed{tick: 1, at: 1}
	for _, step := range []struct {
		name string
		do   func() error
	}{
		{"failed", func() error { return l.handle(typeFailed, f.append(nil)[frameHead:]) }},
		{"next batch", func() error { l.expect([]expectation{{tick: 3}}, flushSettled, time.Minute); return nil }},
		{"flushed", func() error { return l.handle(typeFlushed, nil) }},
		{"flushed again", func() error { return l.handle(typeFlushed, nil) }},
	} {
		if err := step.do(); err != nil {
			t.Errorf("%s: %v", step.name, err)
		}
	}
	answers, n := l.collect(nil)
	if len(answers) != 1 || answers[0].failure == nil || n.batches != 0 || n.unanswered != 0 {
		t.Errorf("answers %+v, %+v", answers, n)
	}
}

func TestExpectationsKeepOrder(t *testing.T) {
	var q expectations
	next, due := format.Tick(0), format.Tick(0)
	for round := range 1000 {
		var more []expectation
		for range round % 7 {
			more = append(more, expectation{tick: next})
			next++
		}
		q.add(more)
		for range min(round%5, q.len()) {
			if q.oldest().tick != due {
				t.Fatalf("tick %d is the oldest, want %d", q.oldest().tick, due)
			}
			q.take()
			due++
		}
		if q.end() != uint64(next) || q.taken != uint64(due) {
			t.Fatalf("%d taken of %d, want %d of %d", q.taken, q.end(), due, next)
		}
	}
	if cap(q.list) > 8*(q.len()+10) {
		t.Errorf("%d ticks take the memory of %d", q.len(), cap(q.list))
	}
	q.clear()
	if q.oldest() != nil || q.taken != uint64(next) {
		t.Errorf("after clear: %d taken, want %d", q.taken, next)
	}
}

// The size of batches settles where one takes about ten milliseconds.
func TestSizer(t *testing.T) {
	for _, perTick := range []time.Duration{time.Microsecond, 30 * time.Microsecond, time.Millisecond, 3 * time.Millisecond, 100 * time.Millisecond, time.Minute} {
		for _, start := range []int{1, mostBatchTicks} {
			s := sizer{limit: start}
			now := time.Unix(0, 0)
			for range 30 {
				b := batch{ticks: s.limit, sent: now}
				now = now.Add(time.Duration(b.ticks) * perTick)
				s.returned(b, now)
			}
			took := time.Duration(s.limit) * perTick
			if took > 2*batchTime && s.limit > 1 || took < batchTime/2 && s.limit < mostBatchTicks {
				t.Errorf("ticks of %v, from %d on: batches of %d take %v", perTick, start, s.limit, took)
			}
		}
	}
	s := sizer{limit: 8}
	if s.returned(batch{sent: time.Unix(0, 0)}, time.Unix(5, 0)); s.limit != 8 {
		t.Errorf("a flush without ticks makes the limit %d", s.limit)
	}
}

func TestTail(t *testing.T) {
	var passed strings.Builder
	out := &tail{out: &passed}
	if lines := out.lines(); lines != nil {
		t.Errorf("lines of nothing: %q", lines)
	}
	var all strings.Builder
	for i := range 5000 {
		text := fmt.Sprintf("line %d\r\n", i)
		all.WriteString(text)
		if n, err := out.Write([]byte(text)); n != len(text) || err != nil {
			t.Fatal(n, err)
		}
	}
	lines := out.lines()
	if passed.String() != all.String() || len(lines) != tailLines || lines[0] != "line 4980" || lines[19] != "line 4999" {
		t.Errorf("%d lines: %q", len(lines), lines)
	}
	if _, err := out.Write([]byte(strings.Repeat("x", 10*tailBytes) + "\nthe end\x1b[0m")); err != nil {
		t.Fatal(err)
	}
	lines = out.lines()
	if len(lines) != 2 || len(lines[0]) > mostReason+len("…") || lines[1] != "the end\uFFFD[0m" || len(out.kept) > 2*tailBytes {
		t.Errorf("%d lines of %d kept bytes", len(lines), len(out.kept))
	}
}

// A tail whose reader is gone still takes everything.
func TestTailOfABrokenPipe(t *testing.T) {
	reader, writer := io.Pipe()
	_ = reader.Close()
	out := &tail{out: writer}
	if n, err := out.Write([]byte("text")); n != 4 || err != nil || len(out.lines()) != 1 {
		t.Errorf("%d, %v, %q", n, err, out.lines())
	}
}

// suspended is a connection of a process that was stopped: its first read
// finds the deadline long past.
type suspended struct {
	net.Conn
	by    time.Duration
	link  *link
	reads int
}

func (s *suspended) SetReadDeadline(time.Time) error { return nil }

func (s *suspended) Read(p []byte) (int, error) {
	if s.reads++; s.reads > 1 {
		return copy(p, "late"), nil
	}
	s.link.deadline = time.Now().Add(-s.by)
	return 0, os.ErrDeadlineExceeded
}

func TestStoppedHostDoesNotBlameTheChild(t *testing.T) {
	for by, want := range map[time.Duration]error{time.Minute: nil, time.Millisecond: os.ErrDeadlineExceeded} {
		conn := &suspended{by: by}
		l := &link{conn: conn, batches: []batch{{ticks: 1}}, timeout: time.Second}
		conn.link = l
		if _, err := l.Read(make([]byte, 8)); err != want {
			t.Errorf("a deadline missed by %v: %v, want %v", by, err, want)
		}
	}
}
