package recorder

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"reprise/format"
	"reprise/recorder/disktest"
)

var (
	crashSeed   = flag.Uint64("crash.seed", 0, "seed of the crash tests; 0 takes the clock")
	crashRounds = flag.Int("crash.rounds", 1, "rounds of the crash tests, each with a seed of its own")
)

// world is a story of producers on a disk that fails, and what the recorder
// promised them.
type world struct {
	rng       *rand.Rand
	disk      *disktest.Disk
	r         *Recorder
	producers []*producer // all that ever were
	running   []*producer
	log       *slog.Logger
	openErr   error
	err       error
}

// producer records one session and remembers every promise.
type producer struct {
	w     *world
	id    string
	epoch uint64
	s     *Session
	in    *inbox
	seq   uint64
	next  format.Tick
	gaps  map[format.Tick]bool

	over  bool // ended on purpose
	mu    sync.Mutex
	acked promises
	// verified is the file as it was checked last.
	verified []byte
}

// promises are what was acknowledged over all connections.
type promises struct {
	opened  bool
	durable format.Tick
	seq     uint64
	sealed  *SealInfo
}

func newWorld(seed uint64, each bool) *world {
	rng := rand.New(rand.NewPCG(seed, seed^0xabcdef))
	w := &world{rng: rng, disk: disktest.New(rand.New(rand.NewPCG(seed, 77))), log: slog.New(slog.DiscardHandler)}
	w.disk.SetEach(each)
	if testing.Verbose() && os.Getenv("CRASH_LOG") != "" {
		w.log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	return w
}

func (w *world) open() bool {
	cfg := smallConfig(w.disk)
	cfg.SegmentBytes, cfg.Segments, cfg.MaxSegments = minSegmentBytes, 3, 4 // so that segments are used again
	cfg.Log = w.log
	r, err := Open(cfg)
	w.r, w.openErr = r, err
	return err == nil
}

// abandon stops a recorder whose machine is off.
func (w *world) abandon() {
	if w.r == nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = w.r.Close(ctx) // it cannot succeed: the disk is gone
	w.r = nil
}

func (w *world) crashed() bool {
	return w.disk.Off()
}

// fail notes the first broken promise.
func (w *world) fail(format string, args ...any) {
	if w.err == nil {
		w.err = fmt.Errorf(format, args...)
	}
}

// connect opens or resumes the session.
func (p *producer) connect() bool {
	p.epoch++
	had := p.promised()
	p.in = &inbox{onAck: p.promise}
	s, reply, err := p.w.r.OpenSession(OpenRequest{ID: p.id, Producer: key(1), Epoch: p.epoch, Opening: openingOf(p.id, 0), Notify: p.in.notify})
	if reply.Sealed != nil && reply.Sealed.State == format.EndSealed {
		p.promise(Ack{Sealed: reply.Sealed})
		return false
	}
	if err != nil {
		if !p.w.crashed() && !errors.Is(err, &Refusal{Code: CodeStorage}) && !errors.Is(err, &Refusal{Code: CodeBusy}) {
			p.w.fail("%s: opening: %v", p.id, err)
		}
		return false
	}
	if had.opened && (reply.NextTick < had.durable || reply.Durable < had.seq || !reply.Resumed) {
		p.w.fail("%s: opened at %+v, promised was %+v", p.id, reply, had)
	}
	p.s, p.seq, p.next, p.over = s, reply.Received, reply.NextTick, reply.Ending
	return true
}

// promise takes an acknowledgement.
func (p *producer) promise(a Ack) {
	if a.Stalled != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.acked.opened = true
	p.acked.durable, p.acked.seq = max(p.acked.durable, a.DurableTick), max(p.acked.seq, a.Durable)
	if a.Sealed != nil {
		p.acked.sealed = a.Sealed
	}
}

func (p *producer) promised() promises {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.acked
}

// send appends a chunk; a refusal for want of room is waited out.
func (p *producer) send(chunk []byte) bool {
	for range 200 {
		err := p.s.Append(chunk)
		if err == nil {
			return true
		}
		if p.w.crashed() {
			return false
		}
		if !errors.Is(err, &Refusal{Code: CodeWindow}) && !errors.Is(err, &Refusal{Code: CodeBusy}) {
			p.w.fail("%s: chunk %d: %v", p.id, p.seq, err)
			return false
		}
		time.Sleep(100 * time.Millisecond)
	}
	p.w.fail("%s: never got room", p.id)
	return false
}

// act does one random thing.
func (p *producer) act() {
	rng, w := p.w.rng, p.w
	n := format.Tick(1 + rng.IntN(60))
	switch k := rng.IntN(20); {
	case k < 9:
		p.seq++
		if p.send(ticksChunk(p.id, p.seq, p.next, p.next+n)) {
			p.next += n
		}
	case k < 11: // sent again from a little before
		from := p.next - min(p.next, format.Tick(rng.IntN(30)))
		if p.inGap(from, p.next) {
			return
		}
		p.seq++
		if p.send(ticksChunk(p.id, p.seq, from, p.next+n)) {
			p.next += n
		}
	case k < 12:
		p.seq++
		p.send(format.AppendChunk(nil, format.ChunkMark, p.seq, format.AppendMark(nil, format.Mark{Tick: p.next, Kind: "round", Text: "x"})))
	case k < 13:
		k := format.KeyframePart{ID: p.seq + 1, NextTick: p.next, Total: uint64(rng.IntN(40_000))}
		for ; k.Offset < k.Total; k.Offset += uint64(len(k.Data)) {
			k.Data = make([]byte, min(7000, k.Total-k.Offset))
			p.seq++
			if !p.send(format.AppendChunk(nil, format.ChunkKeyframe, p.seq, format.AppendKeyframePart(nil, k))) {
				return
			}
		}
	case k < 14:
		p.seq++
		if p.send(format.AppendChunk(nil, format.ChunkGap, p.seq, format.AppendGap(nil, format.Gap{First: p.next, Last: p.next + n - 1}))) {
			for t := p.next; t < p.next+n; t++ {
				p.gaps[t] = true
			}
			p.next += n
		}
	case k < 15:
		time.Sleep(time.Duration(rng.IntN(3000)) * time.Millisecond)
	case k < 16:
		p.s.Detach()
		p.connect()
	case k < 17 && rng.IntN(3) == 0:
		p.s.Detach()
		time.Sleep(90 * time.Second) // ends as unfinished
		if !w.crashed() {
			p.connect()
		}
	case k < 18 && rng.IntN(3) == 0:
		p.seal()
	default:
		time.Sleep(time.Duration(rng.IntN(20)) * time.Millisecond)
	}
}

func (p *producer) inGap(from, to format.Tick) bool {
	for t := from; t < to; t++ {
		if p.gaps[t] {
			return true
		}
	}
	return false
}

// seal ends the session, and waits a while.
func (p *producer) seal() {
	st, ok := p.w.r.Lookup(p.id)
	if !ok || p.s == nil {
		return
	}
	err := p.s.Seal(st.Totals)
	if err != nil {
		if !p.w.crashed() {
			p.w.fail("%s: seal: %v", p.id, err)
		}
		return
	}
	p.over = true
	for range 600 {
		if p.in.get().sealed != nil || p.w.crashed() {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	p.w.fail("%s: was never sealed", p.id)
}

func (w *world) newProducer() *producer {
	p := &producer{w: w, id: fmt.Sprintf("Match-%d", len(w.producers)), gaps: map[format.Tick]bool{}}
	w.producers = append(w.producers, p)
	return p
}

// story lets three producers act in turn until the disk is gone, or enough
// has happened.
func (w *world) story(steps int) {
	if !w.open() {
		return
	}
	for range steps {
		if w.crashed() || w.err != nil {
			return
		}
		i := w.rng.IntN(3)
		for i >= len(w.running) {
			w.running = append(w.running, w.newProducer())
		}
		p := w.running[i]
		switch {
		case p.over:
			w.running[i] = w.newProducer()
		case p.s == nil:
			p.connect()
		default:
			p.act()
		}
	}
}

// survive brings the disk back after a crash, which may be followed by
// others during the recovery.
func (w *world) survive(how disktest.Survival, again bool) {
	for try := 0; ; try++ {
		w.abandon()
		w.disk = w.disk.Crash(how)
		if again && try < 2 {
			at := 1 + w.rng.IntN(25)
			w.disk.SetFault(func(op int, _ disktest.Op, _ string) disktest.Fault { return disktest.Fault{Crash: op == at} })
		}
		ok := w.open()
		if ok && !w.crashed() {
			w.disk.SetFault(nil)
			w.checkSizes()
			return
		}
		if !w.crashed() {
			w.fail("recovery failed on a sound disk: %v", w.openErr)
			return
		}
	}
}

// checkSizes: right after the recovery no live file has more than the
// recorder knows of, unless it is still to be cut.
func (w *world) checkSizes() {
	for _, s := range w.r.all() {
		s.mu.Lock()
		size, name, known := s.written, w.r.path(s), !s.misplaced && s.state == StateDetached
		s.mu.Unlock()
		if b, ok := w.disk.Bytes(name); ok && known && int64(len(b)) > size {
			w.fail("%s has %d bytes, the recorder knows of %d", name, len(b), size)
		}
	}
}

// check holds the recorder to every promise: it goes on with each session
// that has not ended, seals it, and reads the files.
func (w *world) check() {
	for _, p := range w.producers {
		p.s = nil
		opened := p.promised().opened
		if !opened && p.epoch == 0 {
			continue
		}
		if _, ok := w.r.Lookup(p.id); opened && !ok {
			w.fail("%s: is gone", p.id)
			return
		}
		if opened {
			p.checkTaken()
		}
		for try := 0; p.promised().sealed == nil && !p.connect() && w.err == nil && try < 50; try++ {
			time.Sleep(100 * time.Millisecond) // it is just ending
		}
		if p.promised().sealed == nil && p.s != nil {
			if !p.over {
				p.seq++
				p.send(ticksChunk(p.id, p.seq, p.next, p.next+5))
				p.next += 5
			}
			p.seal()
		}
		if p.promised().sealed == nil {
			w.fail("%s: cannot be sealed", p.id)
		}
	}
	w.checkFiles()
}

// checkTaken tries the id in another spelling.
func (p *producer) checkTaken() {
	id := strings.ToLower(p.id)
	_, _, err := p.w.r.OpenSession(OpenRequest{ID: id, Producer: key(1), Epoch: 99, Opening: openingOf(id, 0)})
	if !errors.Is(err, &Refusal{Code: CodeExists}) {
		p.w.fail("%s: opened in another spelling: %v", p.id, err)
	}
}

func (w *world) checkFiles() {
	for _, p := range w.producers {
		had := p.promised()
		if had.sealed == nil || w.err != nil {
			continue
		}
		if found := w.disk.Find("room-" + p.id + "-"); len(found) != 1 || found[0] != path.Join(dataDir, had.sealed.File) {
			w.fail("%s: sealed as %s, there are %v", p.id, had.sealed.File, found)
			return
		}
		b, _ := w.disk.Bytes(path.Join(dataDir, had.sealed.File))
		if int64(len(b)) != had.sealed.Bytes || had.sealed.NextTick < had.durable {
			w.fail("%s: sealed as %+v with %d bytes, promised was tick %d", p.id, had.sealed, len(b), had.durable)
		}
		if !bytes.Equal(b, p.verified) {
			if err := verifyTicks(b, p.id, 0, had.sealed.NextTick, declared(b)); err != nil {
				w.fail("%s: %v", p.id, err)
			}
			p.verified = b
		}
		if bad := p.in.get().bad; bad != nil {
			w.fail("%s: %v", p.id, bad)
		}
	}
}

// end closes in order, opens again and finds the same files: a clean stop
// leaves nothing to replay.
func (w *world) end() {
	if w.err != nil || w.r == nil {
		w.abandon()
		return
	}
	if err := w.r.Close(context.Background()); err != nil {
		w.fail("closing: %v", err)
		return
	}
	w.disk = w.disk.Crash(disktest.SurviveNothing)
	if !w.open() {
		w.fail("does not open after a clean stop: %v", w.openErr)
		return
	}
	if n := w.r.Stats().Recovered; n != 0 {
		w.fail("%d journal records after a clean stop", n)
	}
	w.checkFiles()
	if err := w.r.Close(context.Background()); err != nil {
		w.fail("closing: %v", err)
	}
}

func (w *world) report(t *testing.T, seed uint64, what string) {
	t.Helper()
	if w.err == nil {
		return
	}
	t.Errorf("seed %d, %s: %v", seed, what, w.err)
}

func seedOf(t *testing.T) uint64 {
	seed := *crashSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d: repeat with -crash.seed=%d", seed, seed)
	return seed
}

const storySteps = 110

// TestCrashAtEveryOperation turns the machine off at each operation of a
// story, in turn, and holds the recovered recorder to what was promised.
func TestCrashAtEveryOperation(t *testing.T) {
	first := seedOf(t)
	for round := range *crashRounds {
		seed := first + uint64(round)
		for k := 1; !t.Failed(); k++ {
			how := disktest.Survival((k + int(seed)) % 3)
			var done bool
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(seed, k%2 == 0)
				w.disk.SetFault(func(op int, _ disktest.Op, _ string) disktest.Fault { return disktest.Fault{Crash: op == k} })
				w.story(storySteps)
				done = !w.crashed()
				w.survive(how, k%4 < 2)
				if w.err == nil {
					w.check()
				}
				w.end()
				w.report(t, seed, fmt.Sprintf("crash at operation %d, survival %d", k, how))
			})
			if done {
				t.Logf("%d operations", k-1)
				break
			}
		}
	}
}

// TestErrorAtEveryOperation lets operations of a story fail in turn, once or
// for a while: nothing may be lost, and all goes on by itself. One run tries
// every third operation, which ones depends on the seed.
func TestErrorAtEveryOperation(t *testing.T) {
	first := seedOf(t)
	for round := range *crashRounds {
		seed := first + uint64(round)
		for k := 1 + int(seed%3); !t.Failed(); k += 3 {
			errno := [...]error{syscall.EIO, syscall.ENOSPC}[k%2]
			length := [...]int{1, 1, 4}[k/3%3]
			var done bool
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(seed, k%4 < 2)
				w.disk.SetFault(func(op int, _ disktest.Op, _ string) disktest.Fault {
					if op >= k && op < k+length {
						return disktest.Fault{Err: errno}
					}
					return disktest.Fault{}
				})
				w.story(storySteps)
				for w.r == nil && w.disk.Operations() < k+length { // the fault was in Open
					w.story(storySteps)
				}
				if w.r == nil {
					w.story(storySteps)
				}
				done = w.disk.Operations() < k
				w.survive(disktest.SurviveNothing, false)
				if w.err == nil {
					w.check()
				}
				w.end()
				w.report(t, seed, fmt.Sprintf("%v at operation %d", errno, k))
			})
			if done {
				t.Logf("%d operations", k-1)
				break
			}
		}
	}
}
