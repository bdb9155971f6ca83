package transport

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"reprise/format"
)

const (
	// maxPending bounds the frames that wait to be written to one client,
	// beside acks: a client that asks and does not read is no longer read
	// itself.
	maxPending = 1 << 20
	// maxOpening bounds the opens of one connection that the Recorder works
	// on at once. One whose opening chunks are larger than largeOpening holds
	// the connection instead, so that memory stays bounded.
	maxOpening   = 32
	largeOpening = 256 << 10
	// partingTime is how long the daemon waits, after its last frame, for
	// the client to end the connection; and how long an ending connection
	// may take to deliver the reason.
	partingTime = 2 * time.Second
)

// serverConn is one connection of a daemon. One goroutine reads, one writes;
// the Recorder opens sessions on others.
type serverConn struct {
	server *Server
	c      carrier
	r      *frameReader
	token  []byte
	// version is the one that both speak.
	version uint64
	// heartbeat is how often the client wants to hear something; 0 for
	// never.
	heartbeat time.Duration

	opens   sync.WaitGroup // sessions that the Recorder is opening
	opening chan struct{}  // bounds them

	wake  chan struct{} // there is something to write
	room  chan struct{} // out was full, and has been taken
	ended chan struct{}
	once  sync.Once

	// The reader alone writes the next four: sessions and lastAlias with mu
	// held, so that it reads them without.

	sessions      aliasTable
	lastAlias     uint64
	closed        bool // the client has said close
	chunks, bytes atomic.Uint64
	// attention is set where the reader has to see to something between two
	// frames: out is full, or sessions are over.
	attention atomic.Bool

	_ [64]byte // what is above has cache lines of its own: acks come from elsewhere

	mu      sync.Mutex
	awake   bool             // the writer will gather
	round   uint64           // counts gatherings, from 1
	acks    []ack            // to write; those of alias 0 are written already
	out     []byte           // frames to write in front of them, in order
	live    int              // sessions that are not over
	left    []*serverSession // are over, and still in sessions
	listing bool             // a list frame is being answered
	closeBy time.Time        // set once the client has said close
	reason  *Refusal         // why the connection ended

	written []ack // the writer's: the memory of the last acks
}

func newServerConn(s *Server, c carrier) *serverConn {
	return &serverConn{server: s, c: c, r: newFrameReader(c), opening: make(chan struct{}, maxOpening), round: 1,
		wake: make(chan struct{}, 1), room: make(chan struct{}, 1), ended: make(chan struct{})}
}

// run serves the connection to its end and lets go of its sessions.
func (c *serverConn) run() {
	c.r.silence = c.server.cfg.HelloTimeout
	if err := c.greet(); err != nil {
		c.turnAway(c.refusal(err))
		return
	}
	c.r.silence = c.server.cfg.Silence
	var writer sync.WaitGroup
	writer.Go(c.write)
	err := c.read()
	c.end(c.refusal(err))
	writer.Wait()
	c.opens.Wait()
	c.detachAll()
}

// greet reads hello and answers it.
func (c *serverConn) greet() error {
	typ, body, err := c.r.next()
	if err != nil {
		return err
	}
	if typ != typeHello {
		return &FrameError{Frame: frameName(typ), What: "the first frame must be hello"}
	}
	h, err := parseHello(body)
	if err != nil {
		return err
	}
	if h.low > Version || h.high < LowestVersion {
		return refuse(CodeVersion, "the daemon speaks version %d to %d, the client %d to %d", LowestVersion, Version, h.low, h.high)
	}
	cfg := &c.server.cfg
	if cfg.Authorise != nil {
		if err := cfg.Authorise(h.token, c.c.RemoteAddr()); err != nil {
			return asRefusal(err, CodeUnauthorised)
		}
	}
	c.token, c.heartbeat, c.version = bytes.Clone(h.token), h.heartbeat, min(h.high, Version)
	ok := helloOK{version: c.version, heartbeat: cfg.Silence / 3, frame: MaxFrame, sessions: uint64(cfg.MaxSessions), agent: cutText(cfg.Agent, MaxAgent)}
	return writeWithin(c.c, ok.append(nil), cfg.WriteTimeout)
}

// asRefusal gives an error that is no refusal a code.
func asRefusal(err error, code Code) *Refusal {
	var r *Refusal
	if errors.As(err, &r) {
		return r
	}
	return refuse(code, "%v", err)
}

// refusal says what a client learns of the error that ended its connection.
func (c *serverConn) refusal(err error) *Refusal {
	var r *Refusal
	switch {
	case errors.As(err, &r):
		return r
	case errors.Is(err, ErrFrame):
		c.server.stats.malformed.Add(1)
		return refuse(CodeProtocol, "%v", err)
	case silent(err):
		c.server.stats.silentlyDeparted.Add(1)
		return refuse(CodeSilent, "nothing was heard for %v", c.r.quiet())
	case errors.Is(err, io.EOF):
		return &Refusal{}
	}
	return refuse(CodeNone, "%v", err)
}

// turnAway ends a connection that has not begun. The frame may overtake
// nothing, and where QUIC's close overtakes the frame it says the same.
func (c *serverConn) turnAway(r *Refusal) {
	_ = writeWithin(c.c, (&refused{refusal: *r}).append(nil), partingTime)
	c.end(r)
}

// end ends the connection; the first reason counts.
func (c *serverConn) end(r *Refusal) {
	c.once.Do(func() {
		c.mu.Lock()
		c.reason = r
		c.mu.Unlock()
		close(c.ended)
		c.c.End(r.Code, r.Text)
		if r.Code != CodeNone || r.Text != "" {
			c.server.cfg.Log.Info("connection ended", "remote", c.c.RemoteAddr().String(), "code", r.Code.String(), "reason", r.Text)
		}
	})
}

// read takes frames until the connection ends.
func (c *serverConn) read() error {
	for {
		typ, body, err := c.r.next()
		if err != nil {
			return err
		}
		if err := c.take(typ, body); err != nil {
			return err
		}
		if c.attention.Load() {
			if err := c.attend(); err != nil {
				return err
			}
		}
	}
}

// take handles one frame.
func (c *serverConn) take(typ byte, body []byte) error {
	if c.closed {
		return &FrameError{Frame: frameName(typ), What: "a frame after close"}
	}
	switch typ {
	case typeChunk:
		return c.takeChunk(body)
	case typeAlive:
		return parseEmpty(typ, body)
	case typeOpen:
		return c.takeOpen(body)
	case typeSeal:
		return c.takeSeal(body)
	case typeLeave:
		return c.takeLeave(body)
	case typeClose:
		return c.takeClose(body)
	case typeList:
		return c.takeList(body)
	}
	if typ >= frameOptional {
		return nil
	}
	return &FrameError{Frame: frameName(typ), What: "a client must not send it here"}
}

func (c *serverConn) takeOpen(body []byte) error {
	o, err := parseOpen(body)
	if err != nil {
		return err
	}
	s, err := c.addSession(&o)
	if s == nil {
		return err
	}
	req := OpenRequest{Session: o.session, Key: o.key, Epoch: o.epoch, ContinueAt: o.at, Continues: o.continues,
		Opening: o.opening, Token: c.token, Remote: c.c.RemoteAddr()}
	if len(req.Opening) > largeOpening {
		s.open(req)
		return nil
	}
	req.Opening = bytes.Clone(req.Opening)
	select {
	case c.opening <- struct{}{}:
	case <-c.ended:
		return io.EOF
	}
	c.opens.Go(func() {
		defer func() { <-c.opening }()
		s.open(req)
	})
	return nil
}

// addSession makes room for a session; nil where it was refused or the
// alias is wrong.
func (c *serverConn) addSession(o *open) (*serverSession, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if o.alias <= c.lastAlias {
		return nil, &FrameError{Frame: frameName(typeOpen), What: fmt.Sprintf("alias %d after alias %d: aliases ascend", o.alias, c.lastAlias)}
	}
	c.lastAlias = o.alias
	if r := c.admitLocked(); r != nil {
		c.server.stats.refused.Add(1)
		c.enqueueLocked((&refused{alias: o.alias, refusal: *r}).append(nil))
		return nil, nil
	}
	s := &serverSession{conn: c, alias: uint32(o.alias), id: o.session}
	c.sessions.add(s)
	c.live++
	c.server.stats.sessions.Add(1)
	return s, nil
}

func (c *serverConn) admitLocked() *Refusal {
	if most := c.server.cfg.MaxSessions; c.live >= most {
		return refuse(CodeUnavailable, "the connection has %d sessions, the most is %d", c.live, most)
	}
	c.server.mu.Lock()
	defer c.server.mu.Unlock()
	if d := c.server.draining; d != nil {
		return refuse(CodeDraining, "%s", d.text)
	}
	return nil
}

// leftLocked notes that a session is over; the reader takes it from the
// table.
func (c *serverConn) leftLocked(s *serverSession) {
	c.live--
	c.server.stats.sessions.Add(-1)
	c.left = append(c.left, s)
	c.attention.Store(true)
}

// attend forgets the sessions that are over, and holds the reader while too
// much waits to be written.
func (c *serverConn) attend() error {
	for c.tidy() {
		select {
		case <-c.room:
		case <-c.ended:
			return errors.New("the connection has ended")
		}
	}
	return nil
}

// tidy tells whether too much waits to be written.
func (c *serverConn) tidy() (full bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.left {
		c.sessions.remove(s)
	}
	c.left = nil
	full = len(c.out) > maxPending
	c.attention.Store(full)
	return full
}

// session finds an open session; nil where it has ended: what the client
// sent before it knew is dropped.
func (c *serverConn) session(typ byte, alias uint64) (*serverSession, error) {
	s := c.sessions.find(alias)
	switch {
	case s == nil && alias > c.lastAlias:
		return nil, &FrameError{Frame: frameName(typ), What: fmt.Sprintf("alias %d was never opened", alias)}
	case s == nil || s.is(sessionOver):
		return nil, nil
	case s.is(sessionOpening):
		return nil, &FrameError{Frame: frameName(typ), What: fmt.Sprintf("alias %d is not opened yet", alias)}
	}
	return s, nil
}

func (c *serverConn) takeChunk(body []byte) error {
	alias, framed, err := parseChunk(body)
	if err != nil {
		return err
	}
	s, err := c.session(typeChunk, alias)
	if s == nil {
		return err
	}
	seq, err := checkChunk(framed)
	if err != nil {
		s.fail(refusalFor(err))
		return nil
	}
	c.chunks.Add(1)
	c.bytes.Add(uint64(len(framed)))
	s.append(seq, framed)
	return nil
}

// checkChunk checks the frame of a chunk of a producer's stream.
func checkChunk(framed []byte) (seq uint64, err error) {
	chunk, n, err := format.ParseChunk(framed)
	switch {
	case err != nil:
		return 0, err
	case n != len(framed):
		return 0, refuse(CodeDamaged, "%d bytes after the chunk", len(framed)-n)
	case chunk.Seq == 0:
		return 0, refuse(CodeOrder, "a chunk without a sequence number")
	case !streamable(chunk.Type):
		return 0, refuse(CodeOrder, "a %v chunk is not part of a producer's stream", chunk.Type)
	}
	return chunk.Seq, nil
}

// streamable tells whether a producer sends chunks of the type: those of the
// opening and of the footer are not its to send.
func streamable(t format.ChunkType) bool {
	switch t {
	case format.ChunkTicks, format.ChunkGap, format.ChunkKeyframe, format.ChunkPlayers, format.ChunkHashes, format.ChunkMark, format.ChunkReports:
		return true
	}
	return !t.Known() && t.Optional()
}

func (c *serverConn) takeSeal(body []byte) error {
	f, err := parseSeal(body)
	if err != nil {
		return err
	}
	s, err := c.session(typeSeal, f.alias)
	if s == nil {
		return err
	}
	s.seal(f.totals)
	return nil
}

func (c *serverConn) takeLeave(body []byte) error {
	alias, err := parseLeave(body)
	if err != nil {
		return err
	}
	s, err := c.session(typeLeave, alias)
	if s == nil {
		return err
	}
	if s.over() {
		s.detach()
	}
	return nil
}

func (c *serverConn) takeClose(body []byte) error {
	if err := parseEmpty(typeClose, body); err != nil {
		return err
	}
	// Nothing more is to come, so that silence no longer means anything.
	c.r.silence = 0
	c.closed = true
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closeBy = time.Now().Add(c.server.cfg.CloseTimeout)
	c.wakeLocked()
	return nil
}

// drain tells the client to go.
func (c *serverConn) drain(d *drain) { c.enqueue(d.append(nil)) }

// detachAll lets go of every session that is left.
func (c *serverConn) detachAll() {
	for s := range c.sessions.all {
		if s.over() {
			s.detach()
		}
	}
}
