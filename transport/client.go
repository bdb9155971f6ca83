package transport

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"reprise/format"
)

// ClientConfig configures a Client. Zero values take the default that is
// named.
type ClientConfig struct {
	// TLS says how the daemon is known; see Trust. It must be set.
	TLS *tls.Config
	// Token is the access token.
	Token []byte
	// Agent introduces the program, for example "skirmish-server 1.4";
	// "reprise".
	Agent string
	// Background lets Dial return at once: recording begins before the
	// daemon is reached.
	Background bool

	// Spool is a folder for spool files, on a local disk; with none, what is
	// not durable is lost when the process ends.
	Spool string
	// SpoolLimit bounds one session's spool file; 1 GiB. A recording that
	// exceeds it goes on in memory.
	SpoolLimit int64
	// SessionMemory bounds the chunks of one session that are held in memory
	// until they are durable; 16 MiB.
	SessionMemory int
	// Memory bounds those of all sessions, with the keyframes that wait, of
	// which at most half are taken; 256 MiB.
	Memory int

	// ChunkLinger and ChunkBytes end a chunk; 100 ms and 16 KiB. A chunk goes
	// with the tick behind which no other is expected within the linger, by
	// the time between the ticks before, or with the hash of that tick. So a
	// tick waits no longer than the linger, and at most an eighth of it more.
	// If the game's process is killed, what waits is lost; with a spool,
	// nothing is but the open tick.
	ChunkLinger time.Duration
	ChunkBytes  int
	// WriteLinger gathers the frames of one write; 2 ms.
	WriteLinger time.Duration
	// DialTimeout bounds one try to reach one address; 3 s.
	DialTimeout time.Duration
	// DeadAfter is how long the daemon may be silent before the client
	// connects again; 3 s.
	DeadAfter time.Duration
	// WriteTimeout bounds every write: a daemon that lives but does not read
	// for so long is left; 30 s.
	WriteTimeout time.Duration
	// BackoffMin and BackoffMax bound the pause before another try, which
	// grows and is random; 50 ms and 5 s.
	BackoffMin, BackoffMax time.Duration

	// Socket makes the socket of a connection to a daemon, which the client
	// closes; nil makes one of the system's.
	Socket func(daemon *net.UDPAddr) (net.PacketConn, error)

	// OnError takes what goes wrong, for a log: refusals, gaps, spool
	// errors, lost connections (with an empty session). It is called by one
	// goroutine, which cuts no chunks meanwhile; it must not block for long.
	OnError func(session string, err error)
}

func (c ClientConfig) withDefaults() ClientConfig {
	set(&c.Agent, "reprise")
	set(&c.SpoolLimit, 1<<30)
	set(&c.SessionMemory, 16<<20)
	set(&c.Memory, 256<<20)
	set(&c.ChunkLinger, 100*time.Millisecond)
	c.ChunkLinger = min(c.ChunkLinger, maxLinger)
	set(&c.ChunkBytes, 16<<10)
	c.ChunkBytes = min(c.ChunkBytes, format.MaxRowBytes)
	set(&c.WriteLinger, 2*time.Millisecond)
	set(&c.DialTimeout, 3*time.Second)
	set(&c.DeadAfter, 3*time.Second)
	set(&c.WriteTimeout, 30*time.Second)
	set(&c.BackoffMin, 50*time.Millisecond)
	set(&c.BackoffMax, 5*time.Second)
	if c.Socket == nil {
		c.Socket = udpSocket
	}
	if c.OnError == nil {
		c.OnError = func(string, error) {}
	}
	return c
}

// Client is a game server's connection to its daemon. It reconnects by
// itself, and holds any number of recordings.
type Client struct {
	cfg    ClientConfig
	addrs  *addresses
	dial   func(ctx context.Context, addr string) (carrier, error)
	memory atomic.Int64 // what is not durable and held in memory

	began time.Time  // of the clock
	open  openChunks // of its recordings

	ctx     context.Context // ends with the client
	stop    context.CancelFunc
	workers sync.WaitGroup
	keeping chan struct{} // wakes the keeper
	writing chan struct{} // wakes the spooler
	bell    chan struct{} // wakes the sender of the link

	mu         sync.Mutex
	recordings map[string]*Recording
	link       *link
	linkErr    error // why there is no link
	closing    bool
	retries    []dueAt
	retryAt    time.Time // when the first of them is due
	complaints fifo[complaint]
	unheard    int // complaints that were dropped
	opens      fifo[*Recording]
	sendable   fifo[*Recording]
	spools     fifo[*Recording]
	retired    fifo[retired]
	links      int
	sentBytes  uint64
}

// dueAt is a recording that is due at a time.
type dueAt struct {
	r   *Recording
	due time.Time
}

type complaint struct {
	session string
	err     error
}

type retired struct {
	spool  *spool
	remove bool
}

// maxComplaints bounds what waits for OnError.
const maxComplaints = 256

// Dial connects to the first of addrs that answers ("host:port"). Without
// Background it tries each once and returns the errors of all, or ctx's.
func Dial(ctx context.Context, addrs []string, cfg ClientConfig) (*Client, error) {
	if cfg.TLS == nil {
		return nil, errors.New("a client needs a TLS configuration: see Trust")
	}
	list, err := newAddresses(addrs)
	if err != nil {
		return nil, err
	}
	c := newClient(list, cfg)
	c.dial = c.dialing().dialQUIC
	if err := c.start(ctx); err != nil {
		return nil, err
	}
	return c, nil
}

// dialing is how the client reaches its daemon.
func (c *Client) dialing() *dialing {
	return c.cfg.dialing(LowestVersion)
}

func (c *ClientConfig) dialing(lowest uint64) *dialing {
	return &dialing{tls: c.TLS, token: c.Token, agent: c.Agent, lowest: lowest, timeout: c.DialTimeout, silence: c.DeadAfter, write: c.WriteTimeout, socket: c.Socket}
}

func newClient(addrs *addresses, cfg ClientConfig) *Client {
	ctx, stop := context.WithCancel(context.Background())
	return &Client{cfg: cfg.withDefaults(), addrs: addrs, began: time.Now(), ctx: ctx, stop: stop,
		keeping: make(chan struct{}, 1), writing: make(chan struct{}, 1), bell: make(chan struct{}, 1),
		recordings: map[string]*Recording{}, linkErr: errNotYet}
}

var errNotYet = errors.New("not connected yet")

// start connects, unless in the background, and starts the goroutines.
func (c *Client) start(ctx context.Context) error {
	var first *link
	if !c.cfg.Background {
		l, err := c.tryAll(ctx)
		if err != nil {
			c.stop()
			return err
		}
		first = l
	}
	c.workers.Go(func() { c.run(first) })
	c.workers.Go(c.keep)
	if c.cfg.Spool != "" {
		c.workers.Go(c.spoolLoop)
	}
	return nil
}

// Err is nil while the client is connected, else why it is not.
func (c *Client) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.linkErr
}

// ClientStats are a client's figures.
type ClientStats struct {
	Connected bool
	// Daemon introduces the connected daemon; Address is its address.
	Daemon, Address string
	// Connects counts the connections so far.
	Connects int
	// Recordings counts those that have not ended.
	Recordings int
	// SentBytes counts what was written to all connections, Memory what is
	// held in memory until it is durable.
	SentBytes uint64
	Memory    int64
}

// Stats gives the present figures.
func (c *Client) Stats() ClientStats {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := ClientStats{Connects: c.links, Recordings: len(c.recordings), SentBytes: c.sentBytes, Memory: c.memory.Load()}
	if c.link != nil {
		s.Connected, s.Daemon, s.Address = true, c.link.ok.agent, c.link.c.RemoteAddr().String()
	}
	return s
}

// Open begins to record a new session. It does not wait for the daemon: a
// refusal, such as of an id that was used before, shows in Recording.Err and
// OnError. With a spool, ErrSpooled means that the spool has the session.
func (c *Client) Open(s Spec) (*Recording, error) {
	r, err := c.newRecording(&s)
	if err != nil {
		return nil, err
	}
	if c.cfg.Spool != "" {
		r.spool, err = createSpool(c.cfg.Spool, r.id, c.cfg.SpoolLimit, r.opening, r.producer())
		if err != nil {
			return nil, err
		}
		r.keepTail()
	}
	if err := c.adopt(r); err != nil {
		return nil, errors.Join(err, r.abandon(true))
	}
	return r, nil
}

// Continue records a session on from tick at, for a producer that has kept
// its key (s.Key) but neither memory nor spool. Ticks that are missing
// before at become a gap; ticks that are stored already are recorded again
// and compared, without their hashes. s says again what the session is;
// s.Players are all who have joined and not left. Continue waits until the
// daemon has all that comes before on disk. It is ErrSealed where the daemon
// finishes meanwhile a seal that the earlier process asked for.
func (c *Client) Continue(ctx context.Context, s Spec, at format.Tick) (*Recording, error) {
	if s.Key == [KeySize]byte{} {
		return nil, errors.New("to continue a session needs the key that opened it")
	}
	r, err := c.newRecording(&s)
	if err != nil {
		return nil, err
	}
	if at < s.Meta.FirstTick || at > format.MaxTick {
		return nil, fmt.Errorf("%w: continue at tick %d, the first is %d", format.ErrOrder, at, s.Meta.FirstTick)
	}
	r.continued, r.continuing, r.continueAt, r.halted = true, true, at, true
	r.elapsed += sinceWall(s.Meta.StartedAt)
	r.b.Skip(at)
	if err := c.adopt(r); err != nil {
		return nil, err
	}
	if err := r.await(ctx, r.settledBehind); err != nil {
		return nil, errors.Join(err, r.abandon(false))
	}
	return r, r.beginAfter(c.cfg.Spool)
}

// Resume records a session on from its spool, after a restart of the game
// server: all that was spooled and is not durable is sent. NextTick tells
// where to go on.
func (c *Client) Resume(session string) (*Recording, error) {
	if err := format.ValidSession(session); err != nil {
		return nil, err
	}
	if c.closed() {
		return nil, ErrClosed
	}
	if c.cfg.Spool == "" {
		return nil, errors.New("to resume a session needs ClientConfig.Spool")
	}
	s, err := openSpool(c.cfg.Spool, session, c.cfg.SpoolLimit)
	if err != nil {
		return nil, err
	}
	r, err := c.resume(s)
	if err != nil {
		return nil, errors.Join(err, s.retire(false))
	}
	if err := c.adopt(r); err != nil {
		return nil, errors.Join(err, r.abandon(false))
	}
	return r, nil
}

// Spooled lists the sessions that the spool holds, of this process and of
// earlier ones.
func (c *Client) Spooled() ([]string, error) {
	if c.cfg.Spool == "" {
		return nil, nil
	}
	return spooled(c.cfg.Spool)
}

// closed tells whether Close was called.
func (c *Client) closed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closing
}

// adopt takes a recording into the client.
func (c *Client) adopt(r *Recording) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing {
		return ErrClosed
	}
	if c.recordings[r.id] != nil {
		return fmt.Errorf("session %s is being recorded by this client", r.id)
	}
	c.recordings[r.id] = r
	c.opens.push(r)
	ring(c.bell)
	return nil
}

// Close waits until all that was recorded is durable, or ctx ends, and takes
// leave of the daemon. Recordings that were not sealed end with ErrClosed;
// their spool stays for Resume. An UndeliveredError says what is not durable.
func (c *Client) Close(ctx context.Context) error {
	recordings := c.beginClose()
	for _, r := range recordings {
		r.flush()
	}
	for _, r := range recordings {
		_ = r.await(ctx, func() bool { return r.allDurable() && !r.sealing })
	}
	err := undelivered(recordings)
	c.takeLeave(ctx)
	for _, r := range recordings {
		r.abandon(false)
	}
	c.stop()
	c.workers.Wait()
	return err
}

func (c *Client) beginClose() []*Recording {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closing = true
	recordings := make([]*Recording, 0, len(c.recordings))
	for _, r := range c.recordings {
		recordings = append(recordings, r)
	}
	return recordings
}

// takeLeave says goodbye on the link and waits until the daemon has
// confirmed everything, or the link or ctx ends.
func (c *Client) takeLeave(ctx context.Context) {
	c.mu.Lock()
	l := c.link
	c.mu.Unlock()
	if l == nil {
		return
	}
	l.leave()
	select {
	case <-l.ended:
	case <-ctx.Done():
		l.end(CodeNone, ErrClosed)
	}
}

// undelivered says what of the recordings is not durable.
func undelivered(recordings []*Recording) error {
	e := &UndeliveredError{Spooled: true}
	for _, r := range recordings {
		r.mu.Lock()
		if !r.over && !r.allDurable() {
			e.Sessions++
			e.Bytes += r.q.total
			e.Spooled = e.Spooled && r.spooling()
		}
		r.mu.Unlock()
	}
	if e.Sessions == 0 {
		return nil
	}
	return e
}

// newRecording makes a recording whose session has no chunks yet.
func (c *Client) newRecording(s *Spec) (*Recording, error) {
	if c.closed() {
		return nil, ErrClosed
	}
	meta := s.Meta
	if err := format.ValidSession(meta.Session); err != nil {
		return nil, err
	}
	set(&meta.Width, defaultWidth(s.Book))
	set(&meta.StartedAt, time.Now().UnixMicro())
	if meta.Env == nil {
		meta.Env = Machine()
	}
	r := &Recording{client: c, id: meta.Session, key: s.Key, times: s.Times, elapsed: -c.clock(), q: newQueue(),
		notes: notes{present: map[uint64]bool{}}, durable: meta.FirstTick, mayHaveTick: meta.FirstTick}
	if r.key == [KeySize]byte{} {
		rand.Read(r.key[:])
	}
	r.epoch = nextStart(0) << startShift
	r.describe(&meta)
	return r, r.makeOpening(&meta, s)
}

// describe enters what the metadata fixes for a recording.
func (r *Recording) describe(meta *format.Metadata) {
	r.width, r.hashBytes, r.firstTick = meta.Width, meta.HashBytes, meta.FirstTick
	r.b = *format.NewBatchBuilder(meta.Width, meta.HashBytes, meta.FirstTick)
	r.hashes, r.hashed = meta.HashBytes > 0, newHashed(meta.HashBytes)
}

func defaultWidth(book *format.CodeBook) format.Width {
	if book.Fits8() {
		return format.Width8
	}
	return format.Width16
}

// makeOpening frames metadata, code book and the players of the start.
func (r *Recording) makeOpening(meta *format.Metadata, s *Spec) error {
	if err := meta.Validate(); err != nil {
		return err
	}
	b := format.AppendChunk(nil, format.ChunkMeta, 0, format.AppendMeta(nil, meta))
	if s.Book != nil {
		if err := s.Book.Validate(); err != nil {
			return err
		}
		b = format.AppendChunk(b, format.ChunkBook, 0, format.AppendBook(nil, s.Book))
	}
	if len(s.Players) > 0 {
		if err := r.notes.addPlayers(s.Players); err != nil {
			return err
		}
		b = format.AppendChunk(b, format.ChunkPlayers, 0, format.AppendPlayers(nil, r.notes.salt(), r.notes.events))
		r.notes.events = nil
	}
	if len(b) > format.MaxOpening {
		return fmt.Errorf("%w: metadata, code book and players of %d bytes, the most is %d", format.ErrLimit, len(b), format.MaxOpening)
	}
	r.opening = b
	return nil
}

// producer is what the spool keeps beside the chunks.
func (r *Recording) producer() producer {
	p := producer{Key: hex.EncodeToString(r.key[:]), Start: r.epoch >> startShift, Times: r.times}
	if r.continued {
		p.Continued = &continued{At: r.continueAt, After: r.q.first - 1, Counted: r.counted, CountFrom: r.countFrom}
	}
	return p
}

// beginAfter starts a recording that Continue has placed.
func (r *Recording) beginAfter(folder string) (err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if folder != "" {
		r.spool, err = createSpool(folder, r.id, r.client.cfg.SpoolLimit, r.opening, r.producer())
		if err != nil {
			r.end(err, false)
			return err
		}
		r.keepTail()
	}
	r.continuing, r.halted = false, r.over
	return nil
}

// resume makes a recording from what its spool holds.
func (c *Client) resume(s *spool) (*Recording, error) {
	p, key, err := readProducer(s.path(producerSuffix))
	if err != nil {
		return nil, err
	}
	var was continued
	if p.Continued != nil {
		was = *p.Continued
	}
	h, err := s.scan(was.CountFrom)
	if err != nil {
		return nil, err
	}
	if err := s.cutTail(h.end, p.Continued == nil); err != nil {
		return nil, err
	}
	if len(h.chunks) == 0 {
		h.first = was.After + 1
	}
	h.next = max(h.next, was.At) // its chunks may all be without ticks
	h.begin = max(h.meta.FirstTick, was.At)
	last, _ := h.last()
	if p.Unproven == nil {
		p.Unproven = &last
	}
	p.Start = nextStart(p.Start)
	if err := s.writeProducer(p); err != nil {
		return nil, err
	}
	r := &Recording{client: c, id: s.id, key: key, epoch: p.Start << startShift, times: p.Times, spool: s, resumed: true,
		elapsed: sinceWall(h.meta.StartedAt) - c.clock(), opening: h.opening, continued: p.Continued != nil}
	r.describe(h.meta)
	r.restoreHistory(h, &was)
	r.unproven = true
	r.mayHave, r.mayHaveTick = h.upTo(*p.Unproven)
	err = r.recoverKeyframes(h.parts)
	if err == nil {
		err = r.recoverTail()
	}
	if err != nil {
		r.letGo()
	}
	return r, err
}

// restoreHistory enters what an earlier process recorded.
func (r *Recording) restoreHistory(h *history, was *continued) {
	r.b.Skip(h.next)
	r.q = queue{first: h.first, chunks: h.chunks}
	for _, c := range h.chunks {
		r.q.total += int64(c.size)
	}
	r.client.memory.Add(chunkCost * int64(len(h.chunks)))
	r.countFrom, r.counted = was.CountFrom, h.counted
	r.counted.Ticks += was.Counted.Ticks
	r.counted.Steps += was.Counted.Steps
	r.counted.Hashes += was.Counted.Hashes
	r.hashed, r.notes, r.lastTime = h.hashed, h.notes, h.lastTime
	r.missed.gaps, r.missed.bytes = h.gaps, h.gapBytes
	for _, g := range h.gaps {
		if g.Reason == noRoom {
			r.missed.ticks += uint64(g.Last - g.First + 1)
		}
	}
	r.keys.nextID, r.keys.half = h.lastID, h.half()
	r.durable = r.firstTick
}

// abandon ends a recording that its client gives up.
func (r *Recording) abandon(remove bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.end(ErrClosed, remove)
	return nil
}

// flush cuts what waits, without waiting for the linger.
func (r *Recording) flush() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		return
	}
	_ = r.finishCuts() // its error has ended the recording
	r.closing, r.halted = r.closing || !r.sealing, true
	r.client.ready(r)
}
