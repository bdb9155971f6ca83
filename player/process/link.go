package process

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"reprise/player"
)

// lateness is by how much a deadline must be missed to show that this process
// itself did not run meanwhile, for example was stopped.
const lateness = 250 * time.Millisecond

// link is the connection to a child, with the goroutine that reads it.
type link struct {
	conn   net.Conn
	frames *frameReader
	child  *child
	// wake is signalled when a batch or a reply has come, or nothing will.
	wake chan struct{}
	// over is closed when the goroutine has ended.
	over chan struct{}

	mu       sync.Mutex
	expected expectations
	batches  []batch
	sizer    sizer
	answers  []answer
	// awaiting is the answer that a reset, load, save, dump or identify will
	// have, 0 while none is under way; reply is what came.
	awaiting messageType
	reply    *reply
	// dropping is set where answers mean nothing until the next reset.
	dropping bool
	// width and looksAhead are those of the present replay and game.
	width      int
	looksAhead bool
	timeout    time.Duration
	deadline   time.Time
	closing    bool
	// cause is the reason where this side ends the connection.
	cause error
	err   error
}

// reply is the answer to a reset, load, save, dump or identify.
type reply struct {
	kind    messageType
	refused refused
	state   []byte
	fields  []player.Field
	data    []string
}

func newLink(conn net.Conn, c *child) *link {
	l := &link{conn: conn, child: c,
		wake: make(chan struct{}, 1), over: make(chan struct{}), sizer: sizer{limit: 1}}
	l.frames = newFrameReader(l)
	go l.run()
	return l
}

// Read reads from the connection, and keeps the time: it waits as long as
// nothing is owed.
func (l *link) Read(p []byte) (int, error) {
	l.arm()
	for {
		n, err := l.conn.Read(p)
		if !errors.Is(err, os.ErrDeadlineExceeded) || !l.wasLate() {
			return n, err
		}
	}
}

// arm gives the child its time anew where it owes something.
func (l *link) arm() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.armLocked()
}

func (l *link) armLocked() {
	l.deadline = time.Time{}
	if len(l.batches) > 0 || l.awaiting != 0 {
		l.deadline = time.Now().Add(l.timeout)
	}
	// Of a closed connection the next read tells.
	_ = l.conn.SetReadDeadline(l.deadline)
}

// wasLate tells a child that did not answer from a process that did not run
// to hear it, and gives the child its time again. It does so too where more
// time was given just when the deadline passed.
func (l *link) wasLate() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	since := time.Since(l.deadline)
	late := since < 0 || since > lateness
	if late {
		l.armLocked()
	}
	return late
}

// run reads until the connection ends.
func (l *link) run() {
	defer close(l.over)
	err := l.receive()
	l.conclude(err)
	_ = l.conn.Close()
	l.signal()
}

func (l *link) receive() error {
	for {
		t, body, err := l.frames.next()
		if err != nil {
			return err
		}
		if err := l.handle(t, body); err != nil {
			return badMessage(t, err)
		}
	}
}

func (l *link) signal() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// handle takes one message.
func (l *link) handle(t messageType, body []byte) error {
	switch t {
	case typeDone:
		return l.takeDone(body)
	case typeFailed:
		return l.takeFailed(body)
	case typeBroken:
		return l.takeBroken(body)
	case typeFlushed:
		return l.takeFlushed(body)
	case typeReady, typeRefused, typeSaved, typeFields, typeIdentity:
		return l.takeReply(t, body)
	}
	return errOutOfPlace
}

func (l *link) takeDone(body []byte) error {
	var d done
	if err := d.parse(body); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dropping {
		return nil
	}
	if err := l.expected.oldest().checkDone(&d, l.width); err != nil {
		return err
	}
	l.expected.take()
	l.answers = append(l.answers, answer{tick: d.tick, ignored: d.ignored})
	a := &l.answers[len(l.answers)-1]
	a.wide = copy(a.hash[:], d.hash)
	return nil
}

func (l *link) takeFailed(body []byte) error {
	var f failed
	if err := f.parse(body); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dropping {
		return nil
	}
	if err := l.expected.oldest().checkFailed(&f, l.looksAhead); err != nil {
		return err
	}
	l.stopTicks(answer{tick: f.tick, ignored: f.ignored, failure: f.failure()})
	return nil
}

func (l *link) takeBroken(body []byte) error {
	var b broken
	if err := b.parse(body); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dropping {
		return nil
	}
	l.stopTicks(answer{tick: b.tick, broken: b.failure()})
	return nil
}

// stopTicks keeps the last answer: ticks behind it are not simulated.
func (l *link) stopTicks(last answer) {
	l.answers = append(l.answers, last)
	l.dropping = true
	l.expected.clear()
	l.signal()
}

func (l *link) takeFlushed(body []byte) error {
	if err := parseEmpty(body); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.batches) == 0 {
		return fmt.Errorf("%w: no flush was due", errBad)
	}
	b := l.batches[0]
	x := l.expected.oldest()
	mayHold := l.looksAhead && b.mode == flushSettled
	if !l.dropping && !mayHold && x != nil && l.expected.taken < b.end {
		return fmt.Errorf("%w: flushed, and tick %d was not answered", errBad, x.tick)
	}
	l.batches = append(l.batches[:0], l.batches[1:]...)
	l.sizer.returned(b, time.Now())
	l.signal()
	return nil
}

func (l *link) takeReply(t messageType, body []byte) error {
	r, err := parseReply(t, body)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.awaiting != t && (l.awaiting == 0 || t != typeRefused) {
		return errOutOfPlace
	}
	l.awaiting, l.reply = 0, r
	if t == typeReady {
		l.dropping = false
	}
	l.signal()
	return nil
}

func parseReply(t messageType, body []byte) (*reply, error) {
	r := &reply{kind: t}
	var err error
	switch t {
	case typeRefused:
		err = r.refused.parse(body)
	case typeSaved:
		var s saved
		err = s.parse(body)
		r.state = append([]byte{}, s.state...)
	case typeFields:
		var f fields
		err = f.parse(body)
		r.fields = f.list
	case typeIdentity:
		var i identity
		err = i.parse(body)
		r.data = i.data
	default:
		err = parseEmpty(body)
	}
	return r, err
}

// begin prepares for a new replay: what comes until the next ready belongs to
// the one before.
func (l *link) begin(width int, looksAhead bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dropping, l.width, l.looksAhead = true, width, looksAhead
	l.expected.clear()
	l.answers = l.answers[:0]
}

// ask notes that a reply is awaited.
func (l *link) ask(t messageType, timeout time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.awaiting, l.reply, l.timeout = t, nil, timeout
	l.armLocked()
}

// expect notes a batch that is about to be sent.
func (l *link) expect(ticks []expectation, mode flushMode, timeout time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.dropping {
		l.expected.add(ticks)
	}
	l.batches = append(l.batches, batch{mode: mode, ticks: len(ticks), end: l.expected.end(), sent: time.Now()})
	l.timeout = timeout
	if len(l.batches) == 1 {
		l.armLocked()
	}
}

// news is what the other goroutine has to know.
type news struct {
	// batches are under way, and the next should have batchTicks ticks.
	batches, batchTicks int
	// unanswered ticks were sent; answers wait to be collected.
	unanswered, answers int
	reply               *reply
	err                 error
}

// news tells how things are.
func (l *link) news() news {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.newsLocked()
}

func (l *link) newsLocked() news {
	return news{batches: len(l.batches), batchTicks: l.sizer.limit, unanswered: l.expected.len(),
		answers: len(l.answers), reply: l.reply, err: l.err}
}

// collect is news, and moves the answers that have come to the end of into.
func (l *link) collect(into []answer) ([]answer, news) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.newsLocked()
	into = append(into, l.answers...)
	l.answers = l.answers[:0]
	return into, n
}

// write sends messages. Where it fails, the goroutine that reads tells why.
func (l *link) write(messages []byte) {
	if _, err := l.conn.Write(messages); err != nil {
		_ = l.conn.Close()
	}
}

// end ends the connection because of err, and the child with it.
func (l *link) end(err error) {
	l.mu.Lock()
	l.cause = err
	l.mu.Unlock()
	_ = l.conn.Close()
}

// close says goodbye, gives the child the time to end by itself, and ends it.
func (l *link) close(most time.Duration) {
	l.mu.Lock()
	l.closing = true
	alive := l.err == nil
	l.mu.Unlock()
	if alive {
		_ = l.conn.SetWriteDeadline(time.Now().Add(most))
		_, _ = l.conn.Write(appendEmpty(nil, typeBye))
		l.child.awaitEnd(most)
	}
	l.child.kill()
	_ = l.conn.Close()
	<-l.over
}
