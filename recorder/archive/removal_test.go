package archive

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"reprise/format"
	"reprise/recorder"
)

// full is a store in which much is to be kept, with a rule that would leave
// nothing.
func full(t *testing.T, d simulated, l *ledger) *Archiver {
	t.Helper()
	now := time.Now()
	put(t, d, "live/room-running-20261129T120000Z.rply", make([]byte, 1<<20))
	l.ended["running"] = recorder.Status{ID: "running", State: recorder.StateLive, File: "live/room-running-20261129T120000Z.rply"}
	put(t, d, "sealed/notes.txt", []byte("somebody's"))
	put(t, d, "sealed/room-unknown-20261129T120000Z.rply", []byte("of no session"))
	put(t, d, "archive/clip.rply", match{id: "clip", ticks: 5}.bytes(t))
	for i, m := range []match{{id: "pinned", ticks: 9}, {id: "marked", ticks: 9, marks: []format.Mark{{Tick: 3, Kind: "flag"}}}, {id: "old", game: "chess", ticks: 9},
		{id: "desync", ticks: 9, reports: []format.Report{{At: 8, Of: 4, Peer: 1, Hash: hashOf(0, 4)}, {At: 8, Of: 5, Peer: 1, Hash: hashOf(1, 5)}}},
		{id: "peers", ticks: 9, reports: []format.Report{{At: 8, Of: 4, Peer: 1, Hash: hashOf(0, 4)}, {At: 8, Of: 4, Peer: 2, Hash: hashOf(0, 4)}}},
		{id: "unfinished", ticks: 9, end: format.EndUnfinished}, {id: "new", game: "chess", ticks: 9}} {
		l.record(t, d, m, now.Add(-time.Hour+time.Duration(i)*time.Minute))
	}
	a := opened(t, config(d, l))
	must(t, a.Pins().Set(Pin{Session: "Pinned", Kind: PinByHand}))
	a.rounds()
	l.record(t, d, match{id: "waiting", ticks: 9}, now)
	l.record(t, d, match{id: "reopenable", ticks: 9, end: format.EndUnfinished}, now)
	l.record(t, d, match{id: "unreadable", ticks: 9}, now.Add(-2*time.Hour))
	st, _ := l.Lookup("unreadable")
	put(t, d, st.File, []byte("damaged"))
	return a
}

func left(a *Archiver, d simulated) []string {
	var ids []string
	for _, e := range a.catalog.all() {
		ids = append(ids, e.ID)
	}
	for _, dir := range [...]string{sealedFolder, unfinishedFolder, "live"} {
		ids = append(ids, names(d, dir)...)
	}
	return ids
}

// The harshest rule takes only what may go: not what runs, is pinned, is
// unfinished, cannot be read, or was never the archiver's.
func TestRetentionKeepsWhatIsToBeKept(t *testing.T) {
	for name, unfinished := range map[string]bool{"unfinished kept": false, "unfinished let go": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, l := newSimulated(1), newLedger()
				a := full(t, d, l)
				var log logged
				a.log = log.logger()
				a.cfg.ReopenWindow = time.Hour
				a.SetPolicy(Policy{Rule: Rule{Bytes: 1, Count: 1, Age: time.Minute}, Unfinished: unfinished})
				must(t, a.retain(context.Background()))
				want := []string{"desync", "marked", "pinned"}
				if !unfinished {
					want = append(want, "unfinished")
				}
				st, _ := l.Lookup("unreadable")
				want = append(want, "sealed/notes.txt", "sealed/room-unknown-20261129T120000Z.rply", st.File)
				st, _ = l.Lookup("reopenable")
				want = append(want, st.File, "live/room-running-20261129T120000Z.rply")
				if got := left(a, d); !slices.Equal(got, want) {
					t.Errorf("left: %v\nwant: %v", got, want)
				}
				if _, ok := d.Bytes("archive/clip.rply"); !ok {
					t.Error("a file that is not in the catalog was removed")
				}
				for _, id := range []string{"old", "new", "peers", "waiting"} {
					if n := strings.Count(log.String(), `msg="replay removed" session=`+id+" "); n != 1 {
						t.Errorf("the removal of %s is logged %d times", id, n)
					}
					if _, ok := l.Lookup(id); !ok {
						t.Errorf("the ledger lost %s", id)
					}
				}
				stats := a.Stats()
				if len(stats.Unmet) == 0 || stats.Held != stats.Kept || stats.Removed[causeAge] == 0 || stats.RemovedBytes == 0 {
					t.Errorf("stats %+v, want bounds that are not met", stats)
				}
			})
		})
	}
}

// A pin that is set while replays are being removed holds.
func TestPinSetMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, l := newSimulated(1), newLedger()
		a := full(t, d, l)
		var log logged
		e := a.catalog.find("old")
		r := &Removal{Holding: Holding{ID: e.ID, File: e.File}}
		must(t, a.Pins().Set(Pin{Session: "OLD", Kind: PinByHand}))
		m := remover{a.disk, a.catalog, log.logger()}
		gone, err := m.remove(r)
		if _, there := d.Bytes(e.File); gone || err != nil || !there {
			t.Errorf("gone %v, %v, still there %v", gone, err, there)
		}
		if !strings.Contains(log.String(), "pinned meanwhile") {
			t.Errorf("log %s", log.String())
		}
		_, err = a.Pins().Release("old")
		must(t, err)
		if gone, err = m.remove(r); !gone || err != nil {
			t.Errorf("not removed: %v", err)
		}
	})
}

// An operator who takes a pin back has said so for good.
func TestPins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, l := newSimulated(1), newLedger()
		a := full(t, d, l)
		p := a.Pins()
		for id, kind := range map[string]string{"pinned": PinByHand, "MARKED": PinMarked, "desync": PinDesync} {
			if pin, ok, err := p.Find(id); err != nil || !ok || pin.Kind != kind {
				t.Errorf("%s has the pin %+v, %v, %v", id, pin, ok, err)
			}
			if was, err := p.Release(id); err != nil || !was {
				t.Errorf("releasing %s: %v, %v", id, was, err)
			}
			if was, err := p.Release(id); err != nil || was {
				t.Errorf("releasing %s again: %v, %v", id, was, err)
			}
		}
		if all, err := p.All(); err != nil || len(all) > 0 {
			t.Errorf("pins %v, %v", all, err)
		}
		e, _ := a.Find("marked")
		r, err := a.openReplay(e.File, unpaced)
		must(t, err)
		must(t, a.pinByContent("marked", r.File))
		if _, ok, _ := p.Find("marked"); ok {
			t.Error("a pin that was taken back is set again by itself")
		}
		must(t, p.Set(Pin{Session: "marked", Kind: PinByHand, Reason: "semi-final"}))
		put(t, d, "pins/pin-strange", []byte("{"))
		put(t, d, "pins/pin-half~new", []byte("{"))
		all, err := p.All()
		if err != nil || len(all) != 2 || all["marked"].String() != "hand: semi-final" || all["strange"].Kind != PinByHand {
			t.Errorf("pins %v, %v", all, err)
		}
		if err := p.Set(Pin{Session: "../x"}); err == nil {
			t.Error("a pin outside of its folder")
		}
	})
}

// What the preview says is what is removed.
func TestPreview(t *testing.T) {
	dir := t.TempDir()
	r, err := recorder.Open(recorder.Config{Dir: dir, SegmentBytes: 64 << 10, MinFreeBytes: -1})
	must(t, err)
	disk, err := openFolder(dir)
	must(t, err)
	defer disk.Close()
	for i := range 6 {
		m := match{id: fmt.Sprint("m-", i), game: []string{"chess", "go"}[i%2], ticks: 20, seed: uint64(i)}
		b := m.bytes(t)
		f, err := format.NewFile(readerOf(b), int64(len(b)))
		must(t, err)
		end := time.Now().Add(-time.Duration(10-i) * time.Hour)
		must(t, r.Enter(m.id, end, recorder.SealInfo{State: format.EndSealed, EndedAt: end, Bytes: int64(len(b)), Digest: *f.Summary().Digest}))
		st, _ := r.Lookup(m.id)
		put(t, disk, st.File, b)
	}
	cfg := config(nil, r)
	cfg.Dir, cfg.Disk = dir, nil
	cfg.Delay = 7 * time.Hour
	cfg.Policy = Policy{Rule: Rule{Count: 4}, Games: map[string]Rule{"go": {Age: 8 * time.Hour}}}
	a := opened(t, cfg)
	a.rounds()
	must(t, a.Pins().Set(Pin{Session: "m-0", Kind: PinByHand}))
	remove, unmet, kept, err := Preview(dir, cfg.Policy, 0, time.Now())
	must(t, err)
	if len(unmet) > 0 || len(kept) != 6 {
		t.Errorf("unmet %v, held %v", unmet, kept)
	}
	var ids []string
	for _, x := range remove {
		ids = append(ids, x.ID)
		if _, err := os.Stat(filepath.Join(dir, x.File)); err != nil {
			t.Error(err)
		}
	}
	if !slices.Equal(ids, []string{"m-1", "m-2"}) {
		t.Fatalf("the preview has %v", ids)
	}
	must(t, a.retain(context.Background()))
	for _, x := range remove {
		if _, err := os.Stat(filepath.Join(dir, x.File)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: %v", x.File, err)
		}
	}
	if again, _, kept, err := Preview(dir, cfg.Policy, 0, time.Now()); err != nil || len(again) > 0 || len(kept) != 4 {
		t.Errorf("afterwards: %v, %v, %v", again, kept, err)
	}
	must(t, a.release())
	must(t, r.Close(context.Background()))
}

func TestClock(t *testing.T) {
	const day, decade = 24 * time.Hour, 10 * 365 * 24 * time.Hour
	for name, steps := range map[string][]struct {
		wall   time.Time
		up     time.Duration
		newest time.Time
		want   string
	}{
		"a quiet month":  {{noon, 0, noon.Add(-29 * day), ""}, {noon.Add(day), day, noon.Add(-30 * day), ""}, {noon.Add(2 * day), 2 * day, noon.Add(-31 * day), ""}},
		"no session yet": {{noon, 0, time.Time{}, ""}},
		"a decade at the start": {{noon, time.Second, noon.Add(-decade), "ended 87600h0m0s ago"}, {noon.Add(day), day, noon.Add(-decade), "ended 87600h"},
			{noon.Add(day + time.Minute), day + time.Minute, noon.Add(-decade), ""}},
		"a decade meanwhile": {{noon, 0, noon, ""}, {noon.Add(decade), time.Minute, noon, "jumped ahead by 87599h59m0s"}, {noon.Add(decade + time.Hour), time.Hour, noon, "jumped ahead"},
			{noon.Add(decade + 2*day), 2 * day, noon, ""}},
		"back": {{noon, 0, noon, ""}, {noon.Add(-decade), time.Minute, noon, ""}},
		"slow": {{noon, 0, noon, ""}, {noon.Add(90 * time.Minute), time.Hour, noon, ""}},
	} {
		var c clock
		for i, s := range steps {
			if got := c.check(s.wall, s.up, s.newest); (got == "") != (s.want == "") || !strings.Contains(got, s.want) {
				t.Errorf("%s, look %d: %q, want %q", name, i, got, s.want)
			}
		}
	}
}

// A clock that jumps by ten years removes nothing by age; the other bounds
// hold.
func TestClockJump(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, l := newSimulated(1), newLedger()
		for i := range 4 {
			l.record(t, d, match{id: fmt.Sprint("m-", i), ticks: 9, seed: uint64(i)}, time.Now().Add(-10*365*24*time.Hour+time.Duration(i)*time.Hour))
		}
		cfg := config(d, l)
		cfg.Policy = Policy{Rule: Rule{Age: time.Hour, Count: 3}, Games: map[string]Rule{"": {Age: time.Minute}}}
		a := opened(t, cfg)
		a.rounds()
		if err := a.retain(context.Background()); err != nil || len(a.catalog.all()) != 3 || len(a.Stats().Unmet) != 1 {
			t.Errorf("error %v, %d archives left, stats %+v", err, len(a.catalog.all()), a.Stats())
		}
		time.Sleep(mistrust)
		if err := a.retain(context.Background()); err != nil || len(a.catalog.all()) > 0 {
			t.Errorf("a day later: %v, %d archives left", err, len(a.catalog.all()))
		}
	})
}

// Nothing outside of the data folder can be reached, by name or by link.
func TestFolder(t *testing.T) {
	outside, dir := t.TempDir(), t.TempDir()
	precious := filepath.Join(outside, "room.rply")
	must(t, os.WriteFile(precious, []byte("x"), 0o644))
	d, err := openFolder(dir)
	must(t, err)
	defer d.Close()
	must(t, makeFolder(d, "archive/2026"))
	if err := os.Symlink(outside, filepath.Join(dir, "archive/2026/11")); err != nil {
		t.Skip("no links here:", err)
	}
	must(t, os.Symlink(precious, filepath.Join(dir, "archive/linked.rply")))
	for _, name := range []string{"archive/2026/11/room.rply", "../" + filepath.Base(outside) + "/room.rply", precious} {
		if err := d.Remove(name); err == nil {
			t.Errorf("removed %s", name)
		}
		if _, err := d.OpenFile(name, false); err == nil {
			t.Errorf("opened %s", name)
		}
	}
	if list, err := d.List("archive"); err != nil || len(list) > 0 {
		t.Errorf("files %v, %v, want no links", list, err)
	}
	if list, err := d.Folders("archive/2026"); err != nil || len(list) > 0 {
		t.Errorf("folders %v, %v, want no links", list, err)
	}
	if _, err := os.Stat(precious); err != nil {
		t.Error(err)
	}
}
