package archive

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/klauspost/compress/zstd"

	"reprise/format"
	"reprise/recorder"
	"reprise/recorder/disktest"
)

// inRounds runs what a running archiver does, in virtual time.
func inRounds(a *Archiver, d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(roundInterval) {
		a.rounds()
	}
}

func gzipped(t testing.TB, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, err := w.Write(b)
	must(t, err)
	must(t, w.Close())
	return out.Bytes()
}

func zstded(t testing.TB, b []byte) []byte {
	t.Helper()
	w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	must(t, err)
	defer w.Close()
	return w.EncodeAll(b, nil)
}

// asJSON gives a replay as JSON lines.
func asJSON(t testing.TB, b []byte) []byte {
	t.Helper()
	f, err := format.NewFile(bytes.NewReader(b), int64(len(b)))
	must(t, err)
	var out bytes.Buffer
	must(t, format.WriteJSONL(&out, f, format.JSONLWriteOptions{}))
	return out.Bytes()
}

// anRPLY1 is a sample of that format.
func anRPLY1(t testing.TB) []byte {
	t.Helper()
	b, err := os.ReadFile("../../format/testdata/golden/rply1.rply")
	must(t, err)
	return b
}

// Every format that is read is filed: under its own id, or one that its name
// gives.
func TestInboxTakesEveryFormat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, l := newSimulated(1), newLedger()
		a := opened(t, config(d, l))
		plain := match{id: "own-id", game: "chess", ticks: 30, seed: 1, started: time.Now().Add(-48 * time.Hour)}.bytes(t)
		files := map[string][]byte{
			"plain.rply":        plain,
			"wrapped.rply.zst":  zstded(t, match{id: "in-zst", ticks: 30, seed: 2}.bytes(t)),
			"wrapped.rply.gz":   gzipped(t, match{id: "in-gz", ticks: 30, seed: 3}.bytes(t)),
			"lines.jsonl":       asJSON(t, match{id: "as-lines", ticks: 30, seed: 4}.bytes(t)),
			"lines.jsonl.gz":    gzipped(t, asJSON(t, match{id: "packed-lines", ticks: 30, seed: 5}.bytes(t))),
			"Old Match #7.rply": anRPLY1(t),
			"endless.rply":      match{id: "endless", ticks: 30, seed: 7, endless: true}.bytes(t),
		}
		for name, b := range files {
			put(t, d, path.Join(inboxFolder, name), b)
		}
		inRounds(a, 2*time.Minute)
		if left := append(names(d, inboxFolder), names(d, quarantineFolder)...); len(left) > 0 {
			t.Fatalf("not filed: %v", left)
		}
		for id, file := range map[string]string{"own-id": "plain.rply", "in-zst": "wrapped.rply.zst", "in-gz": "wrapped.rply.gz", "as-lines": "lines.jsonl",
			"packed-lines": "lines.jsonl.gz", "Old-Match-7": "Old Match #7.rply", "endless": "endless.rply"} {
			e, ok := a.Find(id)
			if !ok {
				t.Errorf("%s is not filed as %s: %v", file, id, a.catalog.all())
				continue
			}
			if err := holds(d, e.File, files[file]); err != nil {
				t.Errorf("%s: %v", file, err)
			}
			if st, ok := l.Lookup(id); !ok || st.Ended.Digest != e.Root {
				t.Errorf("the ledger has %s as %+v", id, st)
			}
		}
		if e, _ := a.Find("own-id"); !strings.HasPrefix(e.File, "archive/"+time.Now().Add(-49*time.Hour).UTC().Format("2006/01/")) {
			t.Errorf("filed as %s, not by its start", e.File)
		}
		if e, _ := a.Find("endless"); e.End != format.EndUnfinished {
			t.Errorf("a replay without an end is filed as %v", e.End)
		}
	})
}

// What cannot be filed is set aside, to the byte, with a reason that helps.
func TestQuarantine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, l := newSimulated(1), newLedger()
		good := match{id: "m-1", ticks: 40, seed: 1}.bytes(t)
		flipped := bytes.Clone(match{id: "m-2", ticks: 40, seed: 2}.bytes(t))
		flipped[len(flipped)/2] ^= 1
		newer := bytes.Clone(good)
		newer[len(format.Magic)] = format.VersionMajor + 1
		binary.BigEndian.PutUint32(newer[12:], crc32.Checksum(newer[:12], castagnoli))
		files := map[string]struct {
			b    []byte
			want string
		}{
			"torn.rply":    {good[:len(good)/2], "reprise repair"},
			"flipped.rply": {flipped, "damaged at offset"},
			"empty.rply":   {nil, "the file is empty"},
			"notes.txt":    {[]byte("hello"), "not a replay"},
			"newer.rply":   {newer, "newer than this program"},
			"torn.rply.gz": {gzipped(t, good)[:50], "gz wrapping ends early"},
			"zeros.rply":   {make([]byte, 5000), "not a replay"},
		}
		for name, f := range files {
			put(t, d, path.Join(inboxFolder, name), f.b)
		}
		a := opened(t, config(d, l))
		inRounds(a, 2*time.Minute)
		for name, f := range files {
			b, ok := d.Bytes(path.Join(quarantineFolder, name))
			reason, _ := d.Bytes(path.Join(quarantineFolder, name+reasonEnding))
			if !ok || !bytes.Equal(b, f.b) || !strings.Contains(string(reason), f.want) || !strings.Contains(string(reason), `"inbox/`+name+`"`) {
				t.Errorf("%s: there %v, same %v, reason %q, want %q in it", name, ok, bytes.Equal(b, f.b), reason, f.want)
			}
		}
		if st := a.Stats(); st.Quarantined != uint64(len(files)) || st.Archived > 0 || len(st.Troubles) > 0 {
			t.Errorf("stats %+v", st)
		}
		if left := append(names(d, inboxFolder), names(d, archiveFolder)...); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
	})
}

// A file that is still growing is left alone, whatever it looks like on the
// way; one that was moved in is taken in the first round.
func TestInboxWaitsForWholeFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, l := newSimulated(1), newLedger()
		a := opened(t, config(d, l))
		slow := asJSON(t, match{id: "slow", ticks: 60, seed: 1}.bytes(t))
		put(t, d, "inbox/moved.rply", match{id: "moved", ticks: 10}.bytes(t))
		put(t, d, "inbox/.hidden.rply", slow)
		put(t, d, "inbox/upload.rply.part", slow)
		live := match{id: "live", ticks: 60, seed: 3, endless: true}.bytes(t)
		for i := 1; i <= 20; i++ {
			put(t, d, "inbox/slow.jsonl", slow[:len(slow)*i/20])
			put(t, d, "inbox/live.rply", live[:len(live)*min(i, 10)/10])
			a.rounds()
			if _, ok := a.Find("moved"); !ok {
				t.Fatal("a whole file that was moved in is not filed at once")
			}
			if q := names(d, quarantineFolder); len(q) > 0 {
				t.Fatalf("set aside while it grew: %v", q)
			}
			time.Sleep(a.cfg.Settle - time.Millisecond)
		}
		inRounds(a, 10*time.Second)
		if _, ok := a.Find("slow"); !ok {
			t.Error("the file that had grown is not filed")
		}
		if _, ok := a.Find("live"); ok {
			t.Error("a replay without an end was taken after seconds")
		}
		inRounds(a, noEndSettle)
		if _, ok := a.Find("live"); !ok {
			t.Error("a replay without an end is not filed after a minute")
		}
		if left := names(d, inboxFolder); !slices.Equal(left, []string{"inbox/.hidden.rply", "inbox/upload.rply.part"}) {
			t.Errorf("left in the inbox: %v", left)
		}
	})
}

// A file whose bytes change in place, without growing, counts as changing
// where events tell so; one that looked whole too early is looked at again.
func TestInboxOfAFileWrittenBackwards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, l := newSimulated(1), newLedger()
		a := opened(t, config(d, l))
		whole := match{id: "back", ticks: 60}.bytes(t)
		for n := len(whole) - 100; n > 0; n -= len(whole) / 6 {
			part := bytes.Clone(whole)
			clear(part[:n])
			put(t, d, "inbox/back.rply", part)
			a.inbox.changed("inbox/back.rply")
			a.rounds()
			time.Sleep(time.Second)
		}
		put(t, d, "inbox/back.rply", whole)
		a.inbox.changed("inbox/back.rply")
		inRounds(a, 10*time.Second)
		if _, ok := a.Find("back"); !ok || len(names(d, quarantineFolder)) > 0 {
			t.Errorf("filed %v, quarantine %v", ok, names(d, quarantineFolder))
		}
	})
}

// The same content is filed once, in whatever wrapping; another content never
// takes an id that is taken.
func TestInboxIdsAndDuplicates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, l := newSimulated(1), newLedger()
		recorded := match{id: "m-1", ticks: 30, seed: 1}
		_, b := l.record(t, d, recorded, time.Now())
		l.record(t, d, match{id: "fresh", ticks: 30, seed: 8}, time.Now())
		fresh, _ := d.Bytes(names(d, sealedFolder)[0])
		if !strings.Contains(names(d, sealedFolder)[0], "fresh") {
			t.Fatal(names(d, sealedFolder))
		}
		cfg := config(d, l)
		cfg.Delay = time.Hour
		a := opened(t, cfg)
		put(t, d, "inbox/not-archived-yet.rply", fresh)
		inRounds(a, 10*time.Second)
		a.cfg.Delay = 0
		inRounds(a, 10*time.Second)
		put(t, d, "inbox/copy.rply", b)
		put(t, d, "inbox/copy.rply.gz", gzipped(t, b))
		put(t, d, "inbox/other.rply", match{id: "M-1", ticks: 31, seed: 2}.bytes(t))
		put(t, d, "inbox/other-still.rply", match{id: "m-1", ticks: 32, seed: 3}.bytes(t))
		inRounds(a, 10*time.Second)
		var ids []string
		for _, e := range a.catalog.all() {
			ids = append(ids, e.ID)
		}
		suffixed := 0
		for _, id := range ids {
			if strings.HasPrefix(strings.ToLower(id), "m-1-") && len(id) == len("m-1-")+8 {
				suffixed++
			}
		}
		if len(ids) != 4 || suffixed != 2 {
			t.Errorf("filed: %v", ids)
		}
		want := []string{"quarantine/copy.rply", "quarantine/copy.rply.gz", "quarantine/copy.rply.gz.reason", "quarantine/copy.rply.reason",
			"quarantine/not-archived-yet.rply", "quarantine/not-archived-yet.rply.reason"}
		if got := names(d, quarantineFolder); !slices.Equal(got, want) {
			t.Errorf("quarantine has %v", got)
		}
		for name, named := range map[string]string{"copy.rply": "session m-1, archive/", "not-archived-yet.rply": "session fresh, sealed/"} {
			if reason, _ := d.Bytes("quarantine/" + name + ".reason"); !strings.Contains(string(reason), named) {
				t.Errorf("the reason of %s is %q", name, reason)
			}
		}
	})
}

// A replay that was removed long ago may be put back.
func TestInboxTakesBackWhatWasRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, l := newSimulated(1), newLedger()
		_, b := l.record(t, d, match{id: "m-1", ticks: 30, seed: 1}, time.Now())
		a := opened(t, config(d, l))
		a.rounds()
		e, _ := a.Find("m-1")
		must(t, a.remove(&Removal{Holding: Holding{ID: "m-1", File: e.File}, Why: "older"}))
		put(t, d, "inbox/again.rply", b)
		inRounds(a, 10*time.Second)
		if e, ok := a.Find("m-1"); !ok || holds(d, e.File, b) != nil {
			t.Errorf("not back: %v, %v", ok, names(d, quarantineFolder))
		}
	})
}

func TestOwnID(t *testing.T) {
	long := strings.Repeat("long", 30)
	for _, c := range [...]struct{ name, session, want string }{
		{"inbox/x.rply", "own", "own"},
		{"inbox/room-m-42-20261129T190259Z.rply", "", "m-42"},
		{"inbox/Match of 3 July.rply.gz", "", "Match-of-3-July"},
		{"inbox/ö.rply", "", ""},
		{"inbox/...rply", "", ""},
		{"inbox/a:b.jsonl.zst", "not valid!", "a-b"},
		{"inbox/" + long + ".rply", "", long[:64]},
	} {
		if got := ownID(c.name, c.session); got != c.want {
			t.Errorf("%q with session %q has id %q, want %q", c.name, c.session, got, c.want)
		}
	}
	root := format.Digest{0xab, 0xcd, 0xef, 0x01}
	for own, want := range map[string]string{"": "file-abcdef01", "m": "m-abcdef01", long[:64]: long[:55] + "-abcdef01"} {
		if got := withDigest(own, root); got != want || format.ValidSession(got) != nil {
			t.Errorf("%q gives %q, want %q", own, got, want)
		}
	}
}

// Files of one name are set aside beside each other.
func TestQuarantineNames(t *testing.T) {
	d, l := newSimulated(1), newLedger()
	a := opened(t, config(d, l))
	for i := range 3 {
		put(t, d, "inbox/x.rply.gz", fmt.Append(nil, "bad ", i))
		must(t, a.quarantine("inbox/x.rply.gz", format.ErrNotReplay))
	}
	for i, name := range []string{"x.rply.gz", "x-2.rply.gz", "x-3.rply.gz"} {
		if b, _ := d.Bytes("quarantine/" + name); string(b) != fmt.Sprint("bad ", i) {
			t.Errorf("%s holds %q", name, b)
		}
	}
}

var _ Sessions = (*recorder.Recorder)(nil)

// Copies of one file that come at once, with several workers, are filed once.
func TestCopiesAtOnce(t *testing.T) {
	for round := range uint64(10) {
		synctest.Test(t, func(t *testing.T) {
			d, l := newSimulated(round), newLedger()
			d.SetDelay(func(disktest.Op, string) time.Duration { return time.Duration(rand.IntN(3)) * time.Millisecond })
			cfg := config(d, l)
			cfg.Workers, cfg.NewEncoder = len(encoders), eachEncoder()
			name, b := l.record(t, d, match{id: "m-1", ticks: 20, seed: round}, time.Now())
			if round%2 == 0 {
				l.ended, name = map[string]recorder.Status{}, ""
				must(t, d.Remove(names(d, sealedFolder)[0]))
			}
			for i := range 4 {
				put(t, d, fmt.Sprint("inbox/copy-", i, ".rply"), b)
			}
			a := opened(t, cfg)
			inRounds(a, 5*time.Minute)
			if list := names(d, archiveFolder); len(list) != 1 || len(a.catalog.all()) != 1 || holds(d, list[0], b) != nil {
				t.Errorf("archives %v", list)
			}
			aside := 4
			if name == "" {
				aside = 3
			}
			if list := names(d, quarantineFolder); len(list) != 2*aside {
				t.Errorf("set aside: %v", list)
			}
			if left := append(names(d, inboxFolder), names(d, sealedFolder)...); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}
