package guest

import (
	"errors"
	"slices"
	"testing"

	"reprise/format"
	"reprise/player"
	"reprise/player/games/marbles"
	"reprise/player/process"
)

// TestServe speaks with a game as the host of its module does.
func TestServe(t *testing.T) {
	Serve("marbles in Go", marbles.Factory())
	var d process.Dialogue
	if err := d.TakeHello(handler.Handle(d.AppendWelcome(nil))); err != nil || d.Program() != "marbles in Go" {
		t.Fatalf("%q, %v", d.Program(), err)
	}
	offers := d.Offers()
	if len(offers) != 1 || offers[0].Name != marbles.Name || offers[0].Build != marbles.Build || !offers[0].CanDump {
		t.Errorf("offers %+v", offers)
	}
	start := player.Start{Meta: marbles.Metadata(3)}
	local := player.NewLocal(new(marbles.Game))
	if err := local.Reset(start); err != nil {
		t.Fatal(err)
	}
	message, err := d.AppendReset(nil, start)
	if err == nil {
		err = d.TakeReady(handler.Handle(message))
	}
	if err != nil {
		t.Fatal(err)
	}
	for tick := range format.Tick(50) {
		record := format.TickRecord{Tick: tick, Width: format.Width16}
		if message, err = d.AppendTick(message[:0], &record, true); err != nil {
			t.Fatal(err)
		}
		o, err := d.TakeTick(handler.Handle(message))
		if err != nil {
			t.Fatal(err)
		}
		err = local.Advance(&record, true, func(want player.Outcome) error {
			if o.Tick != want.Tick || string(o.Hash) != string(want.Hash) {
				t.Errorf("tick %d: hash %x, want %x", tick, o.Hash, want.Hash)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	fields, err := d.TakeFields(handler.Handle(d.AppendDump(nil)))
	if want := local.Game().(player.Dumper).Dump(); err != nil || !slices.Equal(fields, want) {
		t.Errorf("dump %v, %v", fields, err)
	}
	start.State = []byte("of another game")
	if message, err = d.AppendReset(nil, start); err != nil {
		t.Fatal(err)
	}
	if err := d.TakeReady(handler.Handle(message)); !errors.Is(err, player.ErrStart) {
		t.Errorf("a keyframe: %v", err)
	}
	var fault *player.SimulationError
	if _, err := d.TakeTick(handler.Handle([]byte{1, 0, 0, 0, 99})); !errors.As(err, &fault) {
		t.Errorf("an unknown message: %v", err)
	}
}
