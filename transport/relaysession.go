package transport

import "reprise/format"

// RelayRequest says which session is to be opened.
type RelayRequest struct {
	Session string
	// Key is the producer's key, Epoch grows with every Open of it.
	Key   [KeySize]byte
	Epoch uint64
	// Opening is the framed opening chunks, the same bytes each time.
	Opening []byte
	// Wake is called after every change of the session; it must not block.
	Wake func()
}

// Standing is where a session stood when it was opened.
type Standing struct {
	// Received and Durable are the last chunks that the daemon has, and has
	// on disk.
	Received, Durable uint64
	// DurableTick is the first tick that is not on disk.
	DurableTick format.Tick
	// Totals are the counts up to Received.
	Totals format.Totals
	// Ending is set where the session was asked to be sealed before: it takes
	// no more chunks, and Progress.Sealed follows.
	Ending bool
	// Sealed is set, and nothing else, where the session was sealed before.
	Sealed *Sealed
}

// Sealed is the daemon's word that a session is sealed and durable.
type Sealed struct {
	Digest format.Digest
	// Name is the replay's name at the daemon.
	Name string
}

// Progress is how far a session has come.
type Progress struct {
	Durable     uint64
	DurableTick format.Tick
	Sealed      *Sealed
	// Err is why the session is over on this connection: a refusal, or an
	// error that matches ErrLink.
	Err error
}

// RelaySession is one session on one connection. One goroutine at a time sends.
type RelaySession struct {
	link     *relayLink
	alias    uint64
	wake     func()
	answered chan struct{}

	// The rest is guarded by link.mu.

	standing Standing
	now      Progress
	window   int64
	flying   int64 // bytes of flights
	flights  []flown
	over     bool // sealed, refused or left: the daemon drops what comes
}

// Standing is where the session stood when it was opened.
func (s *RelaySession) Standing() Standing {
	s.link.mu.Lock()
	defer s.link.mu.Unlock()
	return s.standing
}

// Progress is where the session stands now.
func (s *RelaySession) Progress() Progress {
	s.link.mu.Lock()
	defer s.link.mu.Unlock()
	return s.now
}

// Fits tells whether the daemon's window lets size more bytes go, behind
// ahead bytes that are to go first. One chunk always may, where nothing is
// under way.
func (s *RelaySession) Fits(ahead, size int) bool {
	s.link.mu.Lock()
	defer s.link.mu.Unlock()
	under := s.flying + int64(ahead)
	return under == 0 || under+int64(size) <= s.window
}

// Send sends the next chunk, whose sequence number is seq. It waits where
// the connection is slow.
func (s *RelaySession) Send(seq uint64, chunk []byte) error {
	l := s.link
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.out) > maxRelayOut && s.now.Err == nil {
		l.drained.Wait()
	}
	if s.now.Err != nil || s.over {
		return s.now.Err
	}
	s.flying += int64(len(chunk))
	s.flights = append(s.flights, flown{seq, len(chunk)})
	l.say(appendChunkFrame(l.out, s.alias, chunk))
	return nil
}

// Seal asks for the seal with the final counts, behind what was sent.
// Progress.Sealed is the answer.
func (s *RelaySession) Seal(t format.Totals) {
	s.link.mu.Lock()
	defer s.link.mu.Unlock()
	if s.now.Err == nil && !s.over {
		s.link.say((&seal{alias: s.alias, totals: t}).append(s.link.out))
	}
}

// Leave ends the session on this connection, unsealed.
func (s *RelaySession) Leave() {
	l := s.link
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.now.Err == nil && !s.over {
		l.say(appendLeave(l.out, s.alias))
		s.end()
	}
}

// end takes the session off its connection; link.mu is held.
func (s *RelaySession) end() {
	s.over = true
	delete(s.link.sessions, s.alias)
}

// answer lets Open go on; link.mu is held.
func (s *RelaySession) answer() {
	select {
	case <-s.answered:
	default:
		close(s.answered)
	}
}

// fail ends the session with err; link.mu is held.
func (s *RelaySession) fail(err error) {
	s.now.Err = err
	s.end()
	s.answer()
}
