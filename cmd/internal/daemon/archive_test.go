package daemon

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"reprise/format"
	"reprise/recorder/archive"
)

// archiveAtOnce is a daemon that archives as soon and as fast as it can.
var archiveAtOnce = []string{"--archive-delay", "0s", "--archive-cpu-share", "1", "--inbox-settle", "100ms", "--file-interval", "50ms"}

// archivesOf finds the archives of a data folder by their names without the
// time.
func archivesOf(t testing.TB, data string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(filepath.Join(data, "archive"), func(path string, d os.DirEntry, err error) error {
		if name := filepath.Base(path); err == nil && strings.HasSuffix(name, ".rply") {
			found[name[:strings.LastIndex(name, "-")]] = path
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// record plays matches to their ends, side by side, and returns the ticks
// after their last.
func record(t testing.TB, p *process, ids []string) map[string]*recorded {
	t.Helper()
	c := dial(t, p.addr, p.pin)
	all := map[string]*recorded{}
	var playing sync.WaitGroup
	for i, id := range ids {
		r := &recorded{match: match{id: id, seed: uint64(i)}}
		all[id] = r
		playing.Go(func() {
			play := r.play(t, c)
			for range 150 {
				play.tick()
			}
			r.end = play.seal()
		})
	}
	playing.Wait()
	return all
}

// recorded is a match that was sealed.
type recorded struct {
	match
	end format.Tick
	// verified is the archive that was compared with the match.
	verified string
}

// A sealed match becomes an archive of the same content, which the listing
// finds, and its figures show.
func TestDaemonArchives(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	p := start(t, data, "127.0.0.1:0", archiveAtOnce...)
	all := record(t, p, []string{"one", "two", "three"})
	b := dropped("dropped", 1)
	drop(t, data, "upload.rply", b)
	bad := bytes.Clone(b)
	bad[len(bad)/2] ^= 1
	drop(t, data, "bad.rply", bad)
	eventually(t, "four archives", func() bool {
		return len(archivesOf(t, data)) == 4 && len(files(t, data, "sealed")) == 0 && len(files(t, data, "quarantine")) == 1
	})
	for id, r := range all {
		path := archivesOf(t, data)["room-"+id]
		r.whole(t, path, r.end)
		_, body := get(t, p.http, "/sessions/"+id)
		var listed struct{ File, State string }
		if err := json.Unmarshal([]byte(body), &listed); err != nil || filepath.Join(data, listed.File) != path || listed.State != "sealed" {
			t.Errorf("the listing has %s, %v; want %s", body, err, path)
		}
	}
	var m map[string]float64
	eventually(t, "figures", func() bool {
		m = figures(t, p.http)
		return m["reprise_archived_total"] == 4 && m["reprise_quarantined_total"] == 1
	})
	if m["reprise_archive_source_bytes_total"] <= 0 || m["reprise_archive_bytes_total"] <= 0 || m["reprise_archive_failing"] != 0 {
		t.Errorf("figures %v", m)
	}
	if reason, err := os.ReadFile(filepath.Join(data, "quarantine", "bad.rply.reason")); err != nil || !strings.Contains(string(reason), "reprise repair") {
		t.Errorf("reason %q, %v", reason, err)
	}
	p.Terminate()
	if code := p.ExitCode(patience); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// dropped is a small replay that was recorded elsewhere.
func dropped(id string, seed uint64) []byte {
	out := new(format.Buffer)
	meta := &format.Metadata{Session: id, Game: "match", Seed: seed, TickRate: format.Rate{Num: 60, Den: 1}, Width: format.Width16}
	w, err := format.NewWriter(out, meta, nil)
	if err != nil {
		panic(err)
	}
	for tick := range int64(200) {
		if err := w.Step(7, format.Int(tick), format.Int(int64(seed))); err != nil {
			panic(err)
		}
		if err := w.EndTick(); err != nil {
			panic(err)
		}
	}
	if err := w.Finish(format.EndSealed, ""); err != nil {
		panic(err)
	}
	return out.Bytes()
}

// drop moves a file into the inbox.
func drop(t testing.TB, data, name string, b []byte) {
	t.Helper()
	upload := filepath.Join(data, "upload~")
	if err := os.WriteFile(upload, b, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(upload, filepath.Join(data, "inbox", name)); err != nil {
		t.Fatal(err)
	}
}

// held is what must be in a data folder at every moment.
type held struct {
	matches map[string]*recorded
	drops   map[string][]byte // by name in the inbox
	done    map[string]string
}

// check: every match that was acknowledged as sealed, and every file that was
// dropped, is there, whole: as it came, or as an archive.
func (h *held) check(t testing.TB, data string) {
	t.Helper()
	archives := archivesOf(t, data)
	for id, r := range h.matches {
		path, archived := archives["room-"+id]
		if !archived {
			path = fileOf(t, data, id)
		}
		if r.verified != path {
			r.whole(t, path, r.end)
		}
		if archived {
			r.verified = path
		}
	}
	for name, b := range h.drops {
		path, archived := archives["room-"+strings.TrimSuffix(name, ".rply")]
		if !archived {
			path = filepath.Join(data, "inbox", name)
		}
		if h.done[name] != path {
			sameReplay(t, path, b)
		}
		if archived {
			h.done[name] = path
		}
	}
	if left := files(t, data, "quarantine"); len(left) > 0 {
		t.Fatalf("set aside: %v", left)
	}
}

// sameReplay compares a file with a replay.
func sameReplay(t testing.TB, path string, b []byte) {
	t.Helper()
	want, err := format.NewFile(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	if err := format.SameContent(want, opened(t, path)); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

// The daemon is killed at random moments, with matches running and archives
// being made: each source, or a whole archive of it, is there every time, and
// in the end all are archives, once.
func TestKilledWhileArchiving(t *testing.T) {
	rounds := 5
	if long() {
		rounds = 50
	}
	rng := rand.New(rand.NewPCG(seed(t), 1))
	data := filepath.Join(t.TempDir(), "data")
	h := &held{matches: map[string]*recorded{}, drops: map[string][]byte{}, done: map[string]string{}}
	args := append([]string{"--archive-workers", "2"}, archiveAtOnce...)
	halfway := 0
	for round := range rounds {
		p := start(t, data, "127.0.0.1:0", args...)
		c := dial(t, p.addr, p.pin)
		load := playAll(t, c, uint64(1000+round), 3)
		var ids []string
		for i := range 10 {
			ids = append(ids, fmt.Sprintf("r%d-%d", round, i))
		}
		for id, r := range record(t, p, ids) {
			h.matches[id] = r
		}
		for i := range 6 {
			name := fmt.Sprintf("drop-%d-%d.rply", round, i)
			h.drops[name] = dropped(strings.TrimSuffix(name, ".rply"), uint64(round*100+i))
			drop(t, data, name, h.drops[name])
		}
		time.Sleep(time.Duration(rng.IntN(250)) * time.Millisecond)
		load.halt()
		p.Kill()
		if n := len(files(t, data, "sealed")) + len(files(t, data, "inbox")); n > 0 {
			halfway++
		}
		h.check(t, data)
	}
	p := start(t, data, "127.0.0.1:0", args...)
	eventually(t, "all are archives", func() bool {
		return len(files(t, data, "sealed"))+len(files(t, data, "inbox")) == 0 && figures(t, p.http)["reprise_archive_queue"] == 0
	})
	h.check(t, data)
	if n := len(archivesOf(t, data)); n != len(h.matches)+len(h.drops) {
		t.Errorf("%d archives of %d matches and %d files", n, len(h.matches), len(h.drops))
	}
	t.Logf("%d kills, %d of them with work left; %d matches and %d dropped files, all there each time", rounds, halfway, len(h.matches), len(h.drops))
	if halfway == 0 {
		t.Error("no kill came in the middle of the work")
	}
}

func TestArchiveConfiguration(t *testing.T) {
	for text, want := range map[string]string{
		`archive_name = "x/<id>.rply"`:          "line 1: archive_name",
		`archive_level = "best"`:                "archive_level",
		"archive_hash_every = 0":                "archive_hash_every is 0",
		"archive_workers = 0":                   "archive_workers is 0",
		"archive_cpu_share = 0":                 "archive_cpu_share is 0",
		"archive_cpu_share = 1.5":               "archive_cpu_share is 1.5",
		`inbox_settle = "0s"`:                   "inbox_settle must be above 0",
		"\nretain_bytes = -1":                   "line 2: retain_bytes must not be negative",
		"retain_count = -1":                     "retain_count must not be negative",
		"retain_games = { x = { days = 3 } }":   "unknown key",
		"retain_games = { x = { count = -3 } }": `line 1: retain_games has a negative number for "x"`,
		`retain_age = "-1h"`:                    "not a time span",
	} {
		if _, err := load(t, text+"\n", nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one with %q", text, err, want)
		}
	}
	want := archive.Policy{Rule: archive.Rule{Age: time.Hour, Bytes: 1 << 30, Count: 7}, Unfinished: true,
		Games: map[string]archive.Rule{"chess": {Count: 5}, "a b": {Age: 720 * time.Hour, Bytes: 5 << 30}}}
	file := "retain_age = \"1h\"\nretain_bytes = \"1GiB\"\nretain_count = 7\nretain_unfinished = true\n"
	games := `{ chess = { count = 5 }, "a b" = { age = "720h", bytes = "5GiB" } }`
	for name, c := range map[string]struct {
		file string
		env  map[string]string
		args []string
	}{
		"inline":      {file: file + "retain_games = " + games + "\n"},
		"table":       {file: file + "[retain_games.chess]\ncount = 5\n[retain_games.\"a b\"]\nage = \"720h\"\nbytes = \"5GiB\"\n"},
		"environment": {file: file, env: map[string]string{"REPRISE_RETAIN_GAMES": games}},
		"flag":        {file: file + "retain_games = { go = { count = 1 } }\n", args: []string{"--retain-games", games}},
	} {
		cfg, err := load(t, c.file, c.env, c.args...)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := cfg.Policy(); !reflect.DeepEqual(got, want) {
			t.Errorf("%s gives\n%+v, want\n%+v", name, got, want)
		}
	}
	cfg, err := load(t, "pin_marks = \" desync, flag ,x\"\narchive_cpu_share = 1\n", nil, "--archive-workers", "3")
	if err != nil || !reflect.DeepEqual(cfg.pinMarks(), []string{"desync", "flag", "x"}) || cfg.ArchiveCPUShare != 1 || cfg.ArchiveWorkers != 3 {
		t.Errorf("%v, %+v", err, cfg)
	}
}

// Other bounds take effect with a reload; bad ones change nothing.
func TestRetentionIsReloaded(t *testing.T) {
	data, file := filepath.Join(t.TempDir(), "data"), filepath.Join(t.TempDir(), "reprised.toml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file+"~", []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(file+"~", file); err != nil {
			t.Fatal(err)
		}
	}
	write("retain_count = 9\n")
	p := start(t, data, "127.0.0.1:0", append([]string{"--config", file}, archiveAtOnce...)...)
	record(t, p, []string{"one", "two", "three", "four"})
	eventually(t, "four archives", func() bool { return len(archivesOf(t, data)) == 4 })
	write("retain_count = -1\n")
	eventually(t, "a refusal", func() bool { return strings.Contains(p.Log.String(), "line 1: retain_count must not be negative") })
	if m := figures(t, p.http); m["reprise_retain_bound/count"] != 9 || m["reprise_removed_total/count"] != 0 {
		t.Errorf("after a bad reload: bound %v, %v removed", m["reprise_retain_bound/count"], m["reprise_removed_total/count"])
	}
	write("retain_games = { match = { count = 3 } }\nretain_count = 2\n")
	eventually(t, "two archives", func() bool { return len(archivesOf(t, data)) == 2 })
	eventually(t, "figures", func() bool {
		m := figures(t, p.http)
		return m["reprise_retain_bound/count"] == 2 && m["reprise_removed_total/count"] == 2 && m["reprise_held/all"] == 2 && m["reprise_held_bytes"] > 0
	})
	if n := strings.Count(p.Log.String(), `msg="replay removed"`); n != 2 {
		t.Errorf("%d removals are logged, want 2", n)
	}
}
