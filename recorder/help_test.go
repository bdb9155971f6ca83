package recorder

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path"
	"sync"
	"testing"
	"time"

	"reprise/format"
	"reprise/recorder/disktest"
)

const dataDir = "data"

// smallConfig is a recorder whose journal turns over quickly.
func smallConfig(disk FS) Config {
	return Config{Dir: dataDir, FS: disk, SegmentBytes: 128 << 10, Segments: 4, MaxSegments: 6, FileInterval: 500 * time.Millisecond,
		CheckpointInterval: 2 * time.Second, ResumeTimeout: time.Minute, ReopenWindow: time.Hour, MinFreeBytes: -1, SessionWindow: 16 << 10}
}

// key is the secret of a producer, by number.
func key(n byte) (k [16]byte) {
	k[0] = n
	return k
}

// metaOf is the metadata of the test sessions.
func metaOf(id string, first format.Tick) *format.Metadata {
	return &format.Metadata{Session: id, Game: "test", Seed: 7, TickRate: format.Rate{Num: 60, Den: 1}, FirstTick: first, HashBytes: 8, Width: format.Width16}
}

// openingOf frames metadata and a code book.
func openingOf(id string, first format.Tick) []byte {
	b := format.AppendChunk(nil, format.ChunkMeta, 0, format.AppendMeta(nil, metaOf(id, first)))
	book := &format.CodeBook{Codes: []format.CodeInfo{{Code: 300, Name: "move"}}}
	return format.AppendChunk(b, format.ChunkBook, 0, format.AppendBook(nil, book))
}

// tickRng makes a tick's content depend on session and tick alone.
func tickRng(id string, t format.Tick) *rand.Rand {
	seed := uint64(t) * 0x9e3779b97f4a7c15
	for _, c := range id {
		seed = seed*31 + uint64(c)
	}
	return rand.New(rand.NewPCG(seed, 1))
}

// tickHash is the state hash of a tick.
func tickHash(id string, t format.Tick) []byte {
	return binary.BigEndian.AppendUint64(nil, tickRng(id, t).Uint64())
}

// hashed tells which ticks have their hash with them; every seventh has
// none, unless it comes late.
func hashed(t format.Tick) bool { return t%7 != 3 }

// addTick puts the content of a tick into b.
func addTick(b *format.BatchBuilder, id string, t format.Tick) {
	rng := tickRng(id, t)
	for range rng.IntN(4) {
		params := make([]format.Value, rng.IntN(4))
		for i := range params {
			params[i] = format.Int(rng.Int64N(1 << 40))
		}
		if err := b.Step(uint16(rng.IntN(1000)), params...); err != nil {
			panic(err)
		}
	}
	b.EndTickAt(int64(t) * 16667)
	if hashed(t) {
		b.Hash(t, tickHash(id, t))
	}
}

// ticksChunk frames the ticks from first up to (not including) next.
func ticksChunk(id string, seq uint64, first, next format.Tick) []byte {
	b := format.NewBatchBuilder(format.Width16, 8, first)
	for t := first; t < next; t++ {
		addTick(b, id, t)
	}
	return format.AppendChunk(nil, format.ChunkTicks, seq, b.AppendBody(nil))
}

// wantTick is the content of a tick as a reader gives it, as one string.
func wantTick(id string, t format.Tick, late bool) string {
	key := struct {
		id   string
		t    format.Tick
		late bool
	}{id, t, late}
	if known, ok := wantTicks.Load(key); ok {
		return known.(string)
	}
	want := makeTick(id, t, late)
	wantTicks.Store(key, want)
	return want
}

// wantTicks remembers what wantTick gave.
var wantTicks sync.Map

func makeTick(id string, t format.Tick, late bool) string {
	b := format.NewBatchBuilder(format.Width16, 8, t)
	addTick(b, id, t)
	if late && !hashed(t) {
		b.Hash(t, tickHash(id, t))
	}
	batch, err := format.ParseBatch(b.AppendBody(nil), 8)
	if err != nil {
		panic(err)
	}
	r := batch.Reader()
	var rec format.TickRecord
	r.Next(&rec)
	return describe(&rec)
}

func describe(t *format.TickRecord) string {
	return fmt.Sprintf("%d: %d steps %x %x hash %x time %d", t.Tick, t.Steps, t.Commands, t.Params, t.Hash, t.Time)
}

// inbox collects the acknowledgements of one connection.
type inbox struct {
	mu      sync.Mutex
	last    Ack
	count   int
	sealed  *SealInfo
	stalled *Refusal
	err     error
	notices []string
	onAck   func(Ack)
	bad     error
}

func (in *inbox) notify(a Ack) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if a.Durable < in.last.Durable || a.Received < in.last.Received || a.DurableTick < in.last.DurableTick || a.Durable > a.Received {
		in.bad = fmt.Errorf("acknowledgement %+v after %+v", a, in.last)
	}
	in.last = a
	in.count++
	in.notices = append(in.notices, a.Notices...)
	if a.Sealed != nil {
		in.sealed = a.Sealed
	}
	if a.Stalled != nil {
		in.stalled = a.Stalled
	}
	if a.Err != nil {
		in.err = a.Err
	}
	if in.onAck != nil {
		in.onAck(a)
	}
}

func (in *inbox) get() inbox {
	in.mu.Lock()
	defer in.mu.Unlock()
	return inbox{last: in.last, count: in.count, sealed: in.sealed, stalled: in.stalled, err: in.err, notices: in.notices, bad: in.bad}
}

// waitFor polls in virtual or real time, with a bound that fails the test.
func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for range 20_000 {
		if ok() {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatalf("waited too long for %s", what)
}

func mustOpen(t *testing.T, cfg Config) *Recorder {
	t.Helper()
	r, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(canceled()) }) // where the test does not get to it
	return r
}

func mustClose(t *testing.T, r *Recorder) {
	t.Helper()
	if err := r.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// canceled is a context whose time is over.
func canceled() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// begin opens a session as producer 1, or resumes it with the next epoch.
func begin(t *testing.T, r *Recorder, id string, epoch uint64) (*Session, OpenReply, *inbox) {
	t.Helper()
	in := &inbox{}
	s, reply, err := r.OpenSession(OpenRequest{ID: id, Producer: key(1), Epoch: epoch, Opening: openingOf(id, 0), Notify: in.notify})
	if err != nil {
		t.Fatalf("opening %s: %v", id, err)
	}
	return s, reply, in
}

func mustAppend(t *testing.T, s *Session, chunk []byte) {
	t.Helper()
	if err := s.Append(chunk); err != nil {
		t.Fatal(err)
	}
}

func waitDurable(t *testing.T, in *inbox, seq uint64) {
	t.Helper()
	waitFor(t, fmt.Sprintf("the acknowledgement of %d", seq), func() bool { return in.get().last.Durable >= seq })
}

// seal declares what r has, and waits for the end.
func seal(t *testing.T, r *Recorder, s *Session, id string, in *inbox) *SealInfo {
	t.Helper()
	st, ok := r.Lookup(id)
	if !ok {
		t.Fatalf("session %s is not there", id)
	}
	if err := s.Seal(st.Totals); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the end of "+id, func() bool { return in.get().sealed != nil })
	return in.get().sealed
}

// wantRefusal checks the code of an error.
func wantRefusal(t *testing.T, err error, code Code) *Refusal {
	t.Helper()
	var r *Refusal
	if !errors.As(err, &r) || r.Code != code {
		t.Fatalf("got %v, want a refusal of code %v", err, code)
	}
	return r
}

// checkFile opens a replay from its bytes and checks all of it.
func checkFile(b []byte) (*format.File, error) {
	f, err := format.NewFile(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		return nil, err
	}
	_, err = f.Check()
	return f, err
}

// readTicks gives every tick of a replay as a string.
func readTicks(f *format.File) (ticks []format.Tick, texts []string, err error) {
	r := f.Reader()
	var rec format.TickRecord
	for {
		err := r.Next(&rec)
		if err == io.EOF {
			return ticks, texts, nil
		}
		if err != nil {
			return ticks, texts, err
		}
		ticks, texts = append(ticks, rec.Tick), append(texts, describe(&rec))
	}
}

// verifyTicks checks that a file holds exactly the ticks from first to
// before next, but for gaps, each once and as it was sent.
func verifyTicks(b []byte, id string, first, next format.Tick, missing func(format.Tick) bool) error {
	f, err := checkFile(b)
	if err != nil {
		return err
	}
	ticks, texts, err := readTicks(f)
	if err != nil {
		return err
	}
	i := 0
	for t := first; t < next; t++ {
		if missing != nil && missing(t) {
			continue
		}
		if i >= len(ticks) || ticks[i] != t {
			return fmt.Errorf("tick %d is missing: %d ticks, the summary has %+v", t, len(ticks), f.Summary().Totals)
		}
		if texts[i] != wantTick(id, t, false) && texts[i] != wantTick(id, t, true) {
			return fmt.Errorf("tick %d reads\n%s, sent was\n%s", t, texts[i], wantTick(id, t, false))
		}
		i++
	}
	if i != len(ticks) {
		return fmt.Errorf("tick %d stands behind the last one", ticks[i])
	}
	return nil
}

// declared tells the ticks that a file itself declares missing.
func declared(b []byte) func(format.Tick) bool {
	f, err := checkFile(b)
	if err != nil {
		return nil
	}
	return func(t format.Tick) bool {
		for _, g := range f.Summary().Gaps {
			if t >= g.First && t <= g.Last {
				return true
			}
		}
		return false
	}
}

// sealedBytes reads the finished file of a session.
func sealedBytes(t *testing.T, m *disktest.Disk, info *SealInfo) []byte {
	t.Helper()
	b, ok := m.Bytes(path.Join(dataDir, info.File))
	if !ok {
		t.Fatalf("%s is not there", info.File)
	}
	if int64(len(b)) != info.Bytes {
		t.Fatalf("%s has %d bytes, told were %d", info.File, len(b), info.Bytes)
	}
	return b
}
