package process

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"

	"reprise/format"
	"reprise/player"
	"reprise/player/games/skirmish"
	"reprise/player/games/tower"
	"reprise/player/internal/playtest"
)

func TestSkirmish(t *testing.T) {
	child := open(t, quick("skirmish"))
	start, ticks := playtest.Skirmish(t, 1500)
	report, err := player.Run(context.Background(), child, playtest.Source(ticks), player.EngineOptions{Start: start})
	if err != nil || report.TicksRun != 1500 || report.HashesCompared != 1500 || report.StepsRun == 0 {
		t.Errorf("%+v, %v", report, err)
	}
	local := player.NewLocal(new(skirmish.Game))
	sameRun(t, child, local, start, ticks, nil)
	state, err := child.Save(nil)
	if want := local.Game().(player.Saver).Save(nil); err != nil || !bytes.Equal(state, want) {
		t.Errorf("%d bytes saved, %v; want %d", len(state), err, len(want))
	}
	dump, err := child.Dump()
	if want := local.Game().(player.Dumper).Dump(); err != nil || !slices.Equal(dump, want) {
		t.Errorf("%d fields dumped, %v; want %d", len(dump), err, len(want))
	}
	start.State, start.NextTick = state, 1500
	if err := child.Reset(start); err != nil {
		t.Errorf("reset to the saved state: %v", err)
	}
	start.State = state[:len(state)-1]
	if err := child.Reset(start); !errors.Is(err, player.ErrStart) {
		t.Errorf("reset to a damaged state: %v", err)
	}
}

func TestSkirmishDesync(t *testing.T) {
	child := open(t, quick("skirmish"))
	start, ticks := playtest.Skirmish(t, 400)
	ticks[250].Hash = bytes.Clone(ticks[250].Hash)
	ticks[250].Hash[5] ^= 1
	_, err := player.Run(context.Background(), child, playtest.Source(ticks), player.EngineOptions{Start: start})
	var desync *player.DesyncError
	if !errors.As(err, &desync) || desync.Tick != 250 || desync.LastGood != 249 || desync.Part != "units" {
		t.Errorf("got %v", err)
	}
}

func TestTower(t *testing.T) {
	child := open(t, quick("tower"))
	run, err := tower.NewRun(5, "tower-4")
	if err != nil {
		t.Fatal(err)
	}
	s := playtest.NewScript(t)
	for more := true; more; {
		var turn tower.Turn
		var settled []tower.Settled
		if turn, settled, more = run.Next(); more {
			s.Tick(func(add func(uint16, ...format.Value)) { turn.Steps(add) })
		}
		for _, h := range settled {
			s.Ticks[h.Tick].Hash = h.Hash
		}
	}
	start := player.Start{Meta: tower.Metadata("tower-1", 5, "tower-4"), Book: tower.CodeBook()}
	report, err := player.Run(context.Background(), child, playtest.Source(s.Ticks), player.EngineOptions{Start: start})
	if err != nil || report.TicksRun != len(s.Ticks) || report.HashesCompared < 10 {
		t.Errorf("%+v, %v", report, err)
	}
	sameRun(t, child, player.NewTurns(tower.New()), start, s.Ticks, nil)
}

// TestLastStopsTheChildThere: the child is in the state after the last tick
// that was asked for, not behind what it was sent ahead.
func TestLastStopsTheChildThere(t *testing.T) {
	child := open(t, quick("skirmish"))
	start, ticks := playtest.Skirmish(t, 400)
	local := player.NewLocal(new(skirmish.Game))
	for _, last := range []format.Tick{0, 1, 137, 399} {
		for _, sim := range []player.Simulation{child, local} {
			report, err := player.Run(context.Background(), sim, playtest.Source(ticks), player.EngineOptions{Start: start, Last: &last})
			if err != nil || report.LastTick != last || !report.Complete {
				t.Fatalf("up to %d: %+v, %v", last, report, err)
			}
		}
		dump, err := child.Dump()
		if want := local.Game().(player.Dumper).Dump(); err != nil || !slices.Equal(dump, want) {
			t.Errorf("up to %d: %d fields, %v; want %d", last, len(dump), err, len(want))
		}
	}
}

// TestTraceWithoutHashes: a replay that declares no hashes can be traced, with
// a game that makes none then.
func TestTraceWithoutHashes(t *testing.T) {
	start, ticks := playtest.Skirmish(t, 50)
	start.Meta.HashBytes, start.Meta.HashParts = 0, nil
	for i := range ticks {
		ticks[i].Hash = nil
	}
	for name, sim := range map[string]player.Simulation{"child": open(t, quick("skirmish")), "local": player.NewLocal(new(skirmish.Game))} {
		traced := 0
		trace := func(_ format.Tick, hash []byte) error {
			if len(hash) != 0 {
				t.Errorf("%s: a hash of %d bytes", name, len(hash))
			}
			traced++
			return nil
		}
		_, err := player.Run(context.Background(), sim, playtest.Source(ticks), player.EngineOptions{Start: start, Trace: trace})
		if !errors.Is(err, player.ErrNothingCompared) || traced != 50 {
			t.Errorf("%s: %d ticks traced, %v", name, traced, err)
		}
	}
}
