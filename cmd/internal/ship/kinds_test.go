package ship

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"reprise/format"
	"reprise/transport"
)

const golden = "../../../format/testdata/golden"

// goldenFile reads a sample file of another package.
func goldenFile(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(golden, name))
	must(t, err)
	return b
}

func zipped(t *testing.T, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, err := w.Write(b)
	must(t, err)
	must(t, w.Close())
	return out.Bytes()
}

// Every format that can be opened is shipped whole.
func TestForeignFormats(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	dir := t.TempDir()
	content := map[string][]byte{
		"old.rply":            goldenFile(t, "rply1.rply"),
		"lines.jsonl":         goldenFile(t, "rply2-one-of-everything.jsonl"),
		"values.rply":         goldenFile(t, "rply2-every-value.rply"),
		"wrapped.rply.gz":     zipped(t, finished("wrapped", 41, 200).bytes(t)),
		"no-end.jsonl":        []byte(`{"format":"reprise-jsonl","version":1,"game":"x","tick_rate":20}` + "\n" + `{"t":0,"p":1,"c":2,"a":[3]}` + "\n"),
		"old-wrapped.rply.gz": zipped(t, goldenFile(t, "rply1.rply")),
	}
	want := map[string]*format.File{}
	for name, b := range content {
		f, err := format.NewFile(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		want[name] = f
		put(t, dir, name, b)
	}
	r := begin(t, h.config(dir))
	if err := r.wait(); err != nil {
		t.Fatal(err)
	}
	for name, f := range want {
		id := f.Summary().Meta.Session
		if id == "" {
			id = sessionOf(name)
		}
		raw := make([]byte, f.Raw().Size())
		_, err := f.Raw().ReadAt(raw, 0)
		must(t, err)
		same(t, raw, sealedOne(t, h.cfg.Data, id))
	}
	if got := once(t, h.config(dir)).summary(); got != (Summary{Before: len(content)}) {
		t.Errorf("the second run: %+v", got)
	}
}

// RPLY1 has no end mark: a file is whole once it no longer changes.
func TestRPLY1IsShippedOnceItRests(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	dir := t.TempDir()
	b := goldenFile(t, "rply1.rply")
	cfg := h.config(dir)
	cfg.Idle = 300 * time.Millisecond
	r := follow(t, cfg)
	path := put(t, dir, "old.rply", b[:len(b)/2])
	for _, c := range b[len(b)/2:] {
		time.Sleep(time.Millisecond)
		appendTo(t, path, []byte{c})
	}
	written := time.Now()
	r.await(EventSealed, "old.rply", 1)
	if rest := time.Since(written); rest < cfg.Idle/2 {
		t.Errorf("sealed %v after the last byte", rest)
	}
	f, err := format.Open(sealedOne(t, h.cfg.Data, "old"))
	must(t, err)
	defer f.Close()
	if want := opened(t, inMemory(b), int64(len(b))).Summary().Totals; f.Summary().Totals != want {
		t.Errorf("sealed with %+v, want %+v", f.Summary().Totals, want)
	}
	// What comes later has no place any more.
	appendTo(t, path, []byte{1})
	if e := r.await(EventFailed, "old.rply", 1); !errors.Is(e.Err, ErrReplaced) {
		t.Errorf("given up for %v, want ErrReplaced", e.Err)
	}
}

func TestTornForeignFilesAreNotSealed(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	dir := t.TempDir()
	b := goldenFile(t, "rply1.rply")
	lines := goldenFile(t, "rply2-one-of-everything.jsonl")
	put(t, dir, "old.rply", b[:len(b)-3])
	put(t, dir, "lines.jsonl", bytes.ReplaceAll(lines, []byte("match-7"), []byte("match-8"))[:len(lines)-3])
	put(t, dir, "left.jsonl", []byte(strings.ReplaceAll(string(lines), `"sealed"`, `"unfinished"`)))
	r := begin(t, h.config(dir))
	unsealed(t, r, Summary{Failed: 3})
	for file, want := range map[string]string{"old.rply": "torn at offset", "lines.jsonl": "torn at offset", "left.jsonl": "unfinished where it comes from"} {
		if err := failure(t, r, file); !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", file, err, want)
		}
	}
	if list := all(t, h.cfg.Data); len(list) != 3 {
		t.Errorf("the daemon has %v, want what was good of each", list)
	}
}

// The writer died between the end chunk and the trailer: all is there.
func TestAFileWithoutItsTrailerIsSealed(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	dir := t.TempDir()
	b := finished("headless", 42, 300).bytes(t)
	for cut, at := 0, format.HeaderSize; cut == 0; {
		c, n, err := format.ParseChunk(b[at:])
		must(t, err)
		at += n
		if c.Type == format.ChunkEnd {
			put(t, dir, "headless.rply", b[:at+5])
			cut = at
		}
	}
	once(t, h.config(dir))
	same(t, b, sealedOne(t, h.cfg.Data, "headless"))
}

func TestAFileThatEndedUnfinishedStaysSo(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	dir := t.TempDir()
	m := live("left", 43, 100)
	m.end, m.reason = format.EndUnfinished, "the producer never came back"
	put(t, dir, "left.rply", m.bytes(t))
	r := begin(t, h.config(dir))
	unsealed(t, r, Summary{Failed: 1})
	if err := failure(t, r, "left.rply"); !strings.Contains(err.Error(), m.reason) {
		t.Errorf("given up for %v, want the file's reason", err)
	}
	if list := files(t, h.cfg.Data, "left"); len(list) != 1 || filepath.Base(filepath.Dir(list[0])) == "sealed" {
		t.Errorf("the daemon has %v, want one that is not sealed", list)
	}
}

// Chunks of types that only newer programs know are kept, and a file without
// ticks is a session too.
func TestUnknownChunksAndNoTicks(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	dir := t.TempDir()
	tracker := format.NewTracker()
	b := format.AppendHeader(nil)
	add := func(typ format.ChunkType, seq uint64, body []byte) {
		c := format.Chunk{Type: typ, Seq: seq, Body: body}
		must(t, tracker.Add(c, int64(len(b))))
		b = format.AppendChunk(b, typ, seq, body)
	}
	add(format.ChunkMeta, 0, format.AppendMeta(nil, match{id: "newer", seed: 1}.meta()))
	add(0xA0, 1, []byte("of a newer program"))
	add(format.ChunkBook, 0, format.AppendBook(nil, match{}.book()))
	add(format.ChunkMark, 2, format.AppendMark(nil, format.Mark{Tick: 7, Kind: "k"}))
	add(0xA1, 0, []byte("written by a recorder"))
	footer, err := tracker.Footer(inMemory(b), int64(len(b)), format.EndSealed, "")
	must(t, err)
	b = append(b, footer...)
	put(t, dir, "newer.rply", b)
	once(t, h.config(dir))
	same(t, b, sealedOne(t, h.cfg.Data, "newer"))
	got, err := os.ReadFile(one(t, h.cfg.Data, "newer"))
	must(t, err)
	for _, want := range []string{"of a newer program", "written by a recorder"} {
		if !bytes.Contains(got, []byte(want)) {
			t.Errorf("the chunk %q is not at the daemon", want)
		}
	}
}

func TestOddNames(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	dir := t.TempDir()
	long := strings.Repeat("n", 200)
	names := []string{"düel 1.rply", "a b.rply", "a-b.rply", "..rply.rply", "Łódź\n.rply", "bad\xff.rply", "x.rply.rply", long + ".rply", "%41.rply", "~.rply"}
	content := map[string][]byte{}
	for i, name := range names {
		if strings.HasPrefix(name, ".") {
			continue
		}
		content[name] = finished("", uint64(50+i), 20+i).bytes(t)
		put(t, dir, name, content[name])
	}
	r := once(t, h.config(dir))
	ids := map[string]bool{}
	for name, b := range content {
		id := sessionOf(name)
		if ids[strings.ToLower(id)] {
			t.Errorf("two files have the id %s", id)
		}
		ids[strings.ToLower(id)] = true
		must(t, format.ValidSession(id))
		same(t, b, sealedOne(t, h.cfg.Data, id))
		if e := r.await(EventSealed, name, 1); e.Session != id {
			t.Errorf("%q is session %s, want %s", name, e.Session, id)
		}
	}
	if got := once(t, h.config(dir)).summary(); got != (Summary{Before: len(content)}) {
		t.Errorf("the second run: %+v", got)
	}
}

func TestSessionOfAName(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"match-17.rply": "match-17", "Match.jsonl": "Match", "m.rply.zst": "m", "a.b_c.rply.gz": "a.b_c",
		"a b.rply": "a-b-4f8f2b4c", "é.rply": "--4f8f2b4c", strings.Repeat("x", 70) + ".rply": strings.Repeat("x", 55) + "-4f8f2b4c",
	} {
		got := sessionOf(name)
		if i := strings.LastIndex(want, "4f8f2b4c"); i > 0 {
			if len(got) != len(want) || got[:i] != want[:i] {
				t.Errorf("%q gives %s, want %s and a hash", name, got, want[:i])
			}
			continue
		}
		if got != want {
			t.Errorf("%q gives %s, want %s", name, got, want)
		}
	}
	for _, name := range []string{".rply", ".a.rply", "a.txt", "rply", "a.rply.new", "a.zst"} {
		if _, ok := stem(name); ok {
			t.Errorf("%q counts as a replay", name)
		}
	}
}

// Two files name one session, and one names a session of another producer.
func TestIdsThatAreTaken(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	dir := t.TempDir()
	tls, err := trust(h.cfg.Data)
	must(t, err)
	c, err := transport.Dial(t.Context(), []string{h.addr}, transport.ClientConfig{TLS: tls})
	must(t, err)
	rec, err := c.Open(transport.Spec{Meta: format.Metadata{Session: "theirs"}})
	must(t, err)
	must(t, rec.Seal(t.Context()))
	must(t, c.Close(t.Context()))
	first, second := finished("double", 61, 100).bytes(t), finished("Double", 62, 100).bytes(t)
	put(t, dir, "a.rply", first)
	cfg := h.config(dir)
	once(t, cfg)
	put(t, dir, "b.rply", second)
	put(t, dir, "c.rply", finished("Theirs", 63, 100).bytes(t))
	r := begin(t, cfg)
	unsealed(t, r, Summary{Before: 1, Failed: 2})
	if err := failure(t, r, "b.rply"); !errors.Is(err, ErrTaken) || !strings.Contains(err.Error(), `"a.rply"`) {
		t.Errorf("b.rply: %v, want the file that has the id", err)
	}
	var refusal *transport.Refusal
	if err := failure(t, r, "c.rply"); !errors.As(err, &refusal) || refusal.Code != transport.CodeExists {
		t.Errorf("c.rply: %v, want that the session exists", err)
	}
	same(t, first, sealedOne(t, h.cfg.Data, "double"))
	if list := all(t, h.cfg.Data); len(list) != 2 {
		t.Errorf("the daemon has %v, want two replays", list)
	}
}

// Without its records ship cannot go on with a session, and says so.
func TestALostStateFolder(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	dir := t.TempDir()
	b := finished("lost", 64, 200).bytes(t)
	put(t, dir, "lost.rply", b)
	once(t, h.config(dir))
	must(t, os.RemoveAll(filepath.Join(dir, StateFolder)))
	r := begin(t, h.config(dir))
	unsealed(t, r, Summary{Failed: 1})
	var refusal *transport.Refusal
	if err := failure(t, r, "lost.rply"); !errors.As(err, &refusal) || refusal.Code != transport.CodeExists {
		t.Errorf("%v, want that the session exists", err)
	}
	same(t, b, sealedOne(t, h.cfg.Data, "lost"))
}

func TestOneShipAtATime(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	dir := t.TempDir()
	put(t, dir, "live.rply", live("live", 65, 30).bytes(t))
	r := follow(t, h.config(dir))
	r.await(EventStarted, "live.rply", 1)
	if err := Run(t.Context(), h.config(dir)); err == nil || !strings.Contains(err.Error(), "another ship") {
		t.Errorf("a second ship runs: %v", err)
	}
}

// What was sealed by the daemon when ship was killed is found sealed.
func TestKilledBetweenSealAndRecord(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	dir := t.TempDir()
	b := finished("between", 66, 300).bytes(t)
	put(t, dir, "between.rply", b)
	once(t, h.config(dir))
	path := filepath.Join(dir, StateFolder)
	book, err := openBook(path, dir)
	must(t, err)
	record := book.find("between.rply")
	record.Sealed = nil
	must(t, book.save(record, true))
	book.close()
	r := once(t, h.config(dir))
	if e := r.await(EventSealed, "between.rply", 1); e.Digest != digestOf(t, b) {
		t.Errorf("sealed with digest %v", e.Digest)
	}
}

// The daemon has sealed something else under the file's session and key.
func TestAnotherDigestIsNoSeal(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	dir := t.TempDir()
	cfg := h.config(dir)
	put(t, dir, "file.rply", finished("digest", 72, 100).bytes(t))
	once(t, cfg)
	m := finished("digest", 72, 100)
	m.again = 1
	put(t, dir, "file.rply", m.bytes(t))
	book, err := openBook(filepath.Join(dir, StateFolder), dir)
	must(t, err)
	record := book.find("file.rply")
	record.Sealed, record.Offset, record.Sum = nil, 0, ""
	must(t, book.save(record, true))
	book.close()
	cfg.Dispose = Remove
	for range 2 {
		r := begin(t, cfg)
		unsealed(t, r, Summary{Failed: 1})
		if err := failure(t, r, "file.rply"); !strings.Contains(err.Error(), "digest") {
			t.Errorf("%v, want that the digests differ", err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "file.rply")); err != nil {
		t.Errorf("the file was removed: %v", err)
	}
}

// Nothing is sent that the record does not vouch for.
func TestTheRecordComesFirst(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	dir := t.TempDir()
	b := finished("first", 73, 400).bytes(t)
	path := put(t, dir, "first.rply", b[:len(b)/2])
	r := follow(t, h.config(dir))
	wait(t, h, b[:len(b)/2])
	obstacle := filepath.Join(dir, StateFolder, recordName("first")+".new")
	must(t, os.Mkdir(obstacle, 0o755))
	appendTo(t, path, b[len(b)/2:])
	r.await(EventTrouble, "first.rply", 1)
	held(t, h, b[:len(b)/2])
	must(t, os.Remove(obstacle))
	r.await(EventSealed, "first.rply", 1)
	same(t, b, sealedOne(t, h.cfg.Data, "first"))
}

func TestFilesAreMovedOrRemoved(t *testing.T) {
	t.Parallel()
	for _, how := range []Disposal{Move, Remove} {
		h := newHost(t)
		dir := t.TempDir()
		b, later := finished("first", 67, 100).bytes(t), finished("second", 68, 100).bytes(t)
		cfg := h.config(dir)
		cfg.Dispose = how
		put(t, dir, "match.rply", b)
		put(t, dir, "bad.rply", live("bad", 69, 20).bytes(t))
		unsealed(t, begin(t, cfg), Summary{Sealed: 1, Unfinished: 1})
		put(t, dir, "match.rply", later)
		unsealed(t, begin(t, cfg), Summary{Sealed: 1, Unfinished: 1})
		same(t, b, sealedOne(t, h.cfg.Data, "first"))
		same(t, later, sealedOne(t, h.cfg.Data, "second"))
		left, err := filepath.Glob(filepath.Join(dir, "*.rply"))
		must(t, err)
		if fmt.Sprint(left) != fmt.Sprint([]string{filepath.Join(dir, "bad.rply")}) {
			t.Errorf("left are %v, want bad.rply", left)
		}
		sent, err := filepath.Glob(filepath.Join(dir, SentFolder, "*.rply"))
		must(t, err)
		if want := map[Disposal]int{Move: 2}[how]; len(sent) != want {
			t.Errorf("sent are %v, want %d", sent, want)
		}
		for _, path := range sent {
			if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, b) && !bytes.Equal(got, later) {
				t.Errorf("%s was changed: %v", path, err)
			}
		}
		records, err := filepath.Glob(filepath.Join(dir, StateFolder, "*.json"))
		must(t, err)
		if len(records) != 1 {
			t.Errorf("the records %v are left, want that of bad.rply", records)
		}
	}
}

// Hundreds of files grow at once, and few of them are open.
func TestHundredsOfFiles(t *testing.T) {
	const count, trailer = 200, 20
	h := newHost(t)
	dir := t.TempDir()
	content := make([][]byte, count)
	for i := range content {
		content[i] = finished(fmt.Sprintf("m-%03d", i), uint64(1000+i), 12).bytes(t)
		put(t, dir, fmt.Sprintf("m-%03d.rply", i), content[i][:len(content[i])-trailer])
	}
	before := descriptors()
	r := follow(t, h.config(dir))
	eventually(t, "every session is open", func() bool { return len(r.of(EventStarted, "")) == count })
	if now := descriptors(); now > before+30 {
		t.Errorf("%d files are open, %d were before", now, before)
	}
	for i, b := range content {
		appendTo(t, filepath.Join(dir, fmt.Sprintf("m-%03d.rply", i)), b[len(b)-trailer:])
	}
	eventually(t, "every session is sealed", func() bool { return len(r.of(EventSealed, "")) == count })
	for i, b := range content {
		same(t, b, sealedOne(t, h.cfg.Data, fmt.Sprintf("m-%03d", i)))
	}
}

// descriptors counts this process's open files; 0 where the system does not
// tell.
func descriptors() int {
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil || runtime.GOOS != "linux" {
		return 0
	}
	return len(list)
}

// More files than may be active take turns.
func TestFewPlacesForManyFiles(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	dir := t.TempDir()
	for i := range 12 {
		put(t, dir, fmt.Sprintf("few-%d.rply", i), finished("", uint64(i), 10).bytes(t))
	}
	cfg := h.config(dir)
	cfg.Active, cfg.batch = 2, 1
	r := once(t, cfg)
	if got := r.summary(); got != (Summary{Sealed: 12}) {
		t.Errorf("summary %+v", got)
	}
	active := 0
	for _, e := range r.events {
		switch e.Kind {
		case EventStarted:
			active++
		case EventSealed:
			active--
		}
		if active > cfg.Active {
			t.Fatalf("%d files are on their way at once, want at most %d", active, cfg.Active)
		}
	}
}

func TestConfigurationsThatAreRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := put(t, dir, "file", nil)
	for what, cfg := range map[string]Config{
		"no folder":    {},
		"no such one":  {Dir: filepath.Join(dir, "none")},
		"a file":       {Dir: file},
		"negative":     {Dir: dir, Idle: -1},
		"no daemon":    {Dir: dir},
		"disposal":     {Dir: dir, Dispose: 9},
		"state a file": {Dir: dir, State: file},
	} {
		if err := Run(t.Context(), cfg); err == nil || errors.Is(err, ErrUnsealed) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// Without Follow a daemon that does not answer is an error at once.
func TestNoDaemon(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	dir := t.TempDir()
	cfg := h.config(dir)
	cfg.Servers = []string{"127.0.0.1:1"}
	if err := Run(t.Context(), cfg); err == nil || errors.Is(err, ErrUnsealed) {
		t.Errorf("%v, want that the daemon is not reached", err)
	}
	h.stop()
	put(t, dir, "early.rply", finished("early", 71, 10).bytes(t))
	r := follow(t, h.config(dir))
	eventually(t, "a trouble", func() bool { return len(r.of(EventTrouble, "")) > 0 })
	h.start()
	r.await(EventSealed, "early.rply", 1)
}

// Real matches in the formats of other recorders.
func TestRealMatches(t *testing.T) {
	t.Parallel()
	const data = "../../../../shared/data"
	if _, err := os.Stat(data); err != nil {
		t.Skip("the real data is not there: it is looked for in ../shared/data beside the project")
	}
	h := newHost(t)
	dir := t.TempDir()
	want := map[string][]byte{}
	for _, path := range []string{"rply1/match-2p-5min.rply", "corpus/aoe2_de-13.08.jsonl.zst"} {
		b, err := os.ReadFile(filepath.Join(data, path))
		must(t, err)
		f, err := format.NewFile(bytes.NewReader(b), int64(len(b)))
		must(t, err)
		raw := make([]byte, f.Raw().Size())
		_, err = f.Raw().ReadAt(raw, 0)
		must(t, err)
		name := filepath.Base(path)
		want[sessionOf(name)] = raw
		put(t, dir, name, b)
	}
	once(t, h.config(dir))
	for id, raw := range want {
		same(t, raw, sealedOne(t, h.cfg.Data, id))
	}
}
