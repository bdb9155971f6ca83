package archive

import (
	"context"
	"errors"
	"fmt"
	"path"
	"testing"
	"time"

	"reprise/format"
	"reprise/recorder/disktest"
)

// scene is a data folder with work to do, before a crash.
type scene struct {
	ledger *ledger
	disk   simulated
	// whole are the replays that must be there at every moment, by id.
	whole map[string][]byte
}

func newScene(t testing.TB, seed uint64) *scene {
	s := &scene{ledger: newLedger(), disk: newSimulated(seed), whole: map[string][]byte{}}
	for i := range 3 {
		id := fmt.Sprintf("match-%d", i)
		_, b := s.ledger.record(t, s.disk, match{id: id, game: "chess", ticks: 40, seed: uint64(i),
			marks: []format.Mark{{Tick: 7, Kind: []string{"kill", "flag", "kill"}[i]}}}, noon.Add(time.Duration(i)*time.Minute))
		s.whole[id] = b
	}
	s.whole["offline"] = match{id: "offline", ticks: 20, seed: 9}.bytes(t)
	put(t, s.disk, "inbox/from-a-server.rply", s.whole["offline"])
	return s
}

// config leaves the layout as it is: what counts here is the order of
// operations.
func (s *scene) config() Config {
	cfg := config(s.disk, s.ledger)
	cfg.NewEncoder = func() Encoder { return copier{} }
	return cfg
}

// crashAt works on the scene until the machine is turned off at an operation;
// false where it is done before that.
func (s *scene) crashAt(op int) bool {
	s.disk.SetFault(func(number int, _ disktest.Op, _ string) disktest.Fault { return disktest.Fault{Crash: number == op} })
	a, err := openStill(s.config())
	if err == nil {
		_ = a.audit(context.Background())
		a.rounds()
	}
	return s.disk.Off()
}

// after takes the disk as a crash leaves it.
func (s *scene) after(how disktest.Survival) { s.disk = simulated{s.disk.Crash(how)} }

// check: every replay is there, whole, and no file has no bytes.
func (s *scene) check() error {
	for id, want := range s.whole {
		if err := kept(s.disk, want); err != nil {
			return fmt.Errorf("replay %s is not there: %w", id, err)
		}
	}
	for _, name := range names(s.disk, archiveFolder) {
		if b, _ := s.disk.Bytes(name); len(b) == 0 {
			return fmt.Errorf("%s has no bytes", name)
		}
	}
	return nil
}

// finished: all is archived once, under its name, and nothing is left over.
func (s *scene) finished() error {
	a, err := openStill(s.config())
	if err != nil {
		return err
	}
	if err := a.audit(context.Background()); err != nil {
		return err
	}
	a.rounds()
	for id, want := range s.whole {
		e, ok := a.Find(id)
		if !ok {
			return fmt.Errorf("the catalog lacks %s", id)
		}
		if err := holds(s.disk, e.File, want); err != nil {
			return fmt.Errorf("%s: %w", e.File, err)
		}
	}
	for _, dir := range [...]string{sealedFolder, inboxFolder, workFolder, quarantineFolder} {
		if left := names(s.disk, dir); len(left) > 0 {
			return fmt.Errorf("left over: %v", left)
		}
	}
	if list := names(s.disk, archiveFolder); len(list) != len(s.whole) {
		return fmt.Errorf("archives %v, want %d", list, len(s.whole))
	}
	if pin, ok, err := a.pins.Find("match-1"); err != nil || !ok || pin.Kind != PinMarked {
		return fmt.Errorf("match-1 has the pin %+v, %v, %v; want it pinned by its mark", pin, ok, err)
	}
	return nil
}

// The machine is turned off at every operation of the archiver's: a source,
// or an archive with its content, is always there, and the next start goes on
// to the same end.
func TestCrashAtEveryOperation(t *testing.T) {
	for how := range disktest.Survival(disktest.Survivals) {
		t.Run(fmt.Sprint("survival ", how), func(t *testing.T) {
			op, crashes := 0, 0
			for {
				s := newScene(t, uint64(op))
				done := s.disk.Operations()
				op++
				if !s.crashAt(done + op) {
					break
				}
				crashes++
				log := s.disk.Log()
				s.after(how)
				if err := errors.Join(s.check(), s.finished()); err != nil {
					t.Fatalf("crash at operation %d: %v\n%s", op, err, log[len(log)-min(len(log), 12):])
				}
			}
			if crashes < 40 {
				t.Errorf("only %d crashes", crashes)
			}
		})
	}
}

// The recovery itself is cut off, again and again.
func TestCrashDuringRecovery(t *testing.T) {
	for first := 1; ; first += 7 {
		s := newScene(t, uint64(first))
		if !s.crashAt(s.disk.Operations() + first) {
			return
		}
		for second := 1; ; second += 5 {
			s.after(disktest.SurviveSome)
			if err := s.check(); err != nil {
				t.Fatalf("crashes at operations %d, then up to %d: %v", first, second, err)
			}
			if !s.crashAt(second) {
				break
			}
		}
		s.disk.SetFault(nil)
		if err := s.finished(); err != nil {
			t.Fatalf("crash at operation %d: %v", first, err)
		}
	}
}

// Each operation fails once, with the machine running: nothing is lost, and
// the work is done by the next rounds.
func TestFailureOfEveryOperation(t *testing.T) {
	for op := 1; ; op++ {
		s := newScene(t, uint64(op))
		done, failed := s.disk.Operations(), false
		s.disk.SetFault(func(number int, _ disktest.Op, _ string) disktest.Fault {
			if number == done+op {
				failed = true
				return disktest.Fault{Err: errors.New("input/output error")}
			}
			return disktest.Fault{}
		})
		a, err := openStill(s.config())
		if err == nil {
			_ = a.audit(context.Background())
			a.rounds()
		}
		if !failed {
			return
		}
		s.disk.SetFault(nil)
		if err := errors.Join(s.check(), s.finished()); err != nil {
			log := s.disk.Log()
			t.Fatalf("failure at operation %d: %v\n%s", op, err, log[done+op-min(op, 5):done+op])
		}
	}
}

// An encoder that makes a mistake costs nothing but time.
func TestWrongArchiveIsNoticed(t *testing.T) {
	s := newScene(t, 1)
	cfg := s.config()
	other := match{id: "match-0", ticks: 40, seed: 77}.bytes(t)
	cfg.NewEncoder = func() Encoder { return cheat{other} }
	var log logged
	cfg.Log = log.logger()
	a := opened(t, cfg)
	a.rounds()
	if err := s.check(); err != nil {
		t.Error(err)
	}
	if list := names(s.disk, archiveFolder); len(list) > 0 {
		t.Errorf("wrong archives were filed: %v", list)
	}
	if st := a.Stats(); st.Failing < 3 || st.Archived > 0 || st.Troubles[troubleArchiver] == "" {
		t.Errorf("stats %+v, want failures to show\n%s", st, &log)
	}
	if list := names(s.disk, workFolder); len(list) > 0 {
		t.Errorf("left over: %v", list)
	}
	if base := path.Base(names(s.disk, sealedFolder)[0]); base == "" {
		t.Error("no source")
	}
}
