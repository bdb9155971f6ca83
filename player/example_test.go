package player_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"reprise/format"
	"reprise/player"
)

// A chest is opened by an active step; the passive step behind it holds what
// the player chose from it.
func ExampleSandbox() {
	const open, choose = 1, 2
	system := player.NewSystem(player.SystemOptions{})
	system.Register(choose, player.NewPassive(player.TypeString))
	system.Register(open, player.Func(func(step format.Step) (player.Result, error) {
		choice, err := system.Sandbox().GetPassive()
		if err != nil {
			return player.Failed, err
		}
		chest, _ := step.Params[0].Int64()
		fmt.Printf("chest %d: %s\n", chest, choice.Step.Params[0].Str())
		choice.Next(player.Success)
		return player.Success, nil
	}, player.TypeInt))

	system.Record(open, format.Int(7))
	system.Record(choose, format.String("sword"))
	system.Record(open, format.Int(9))
	system.Record(choose, format.String("key"))

	sandbox, err := system.CreateSandbox(0, nil, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	err = sandbox.Play()
	fmt.Println("ended:", sandbox.Ended(), err)
	// Output:
	// chest 7: sword
	// chest 9: key
	// ended: true <nil>
}

// counter is a lockstep game that counts ticks.
type counter struct{ ticks uint32 }

func (c *counter) Reset(player.Start) error { c.ticks = 0; return nil }
func (c *counter) Step(format.Tick, format.Step) (player.Result, error) {
	return player.Success, nil
}
func (c *counter) EndTick(format.Tick) error { c.ticks++; return nil }
func (c *counter) Hash(dst []byte) []byte    { return binary.BigEndian.AppendUint32(dst, c.ticks) }

// ticks is a source of four empty ticks, the third with a wrong hash.
type ticks struct{ next format.Tick }

func (s *ticks) Next() (player.Item, error) {
	if s.next == 4 {
		return player.Item{}, io.EOF
	}
	hash := binary.BigEndian.AppendUint32(nil, uint32(s.next)+1)
	if s.next == 2 {
		hash[0] = 0xff
	}
	s.next++
	return player.Item{Tick: &format.TickRecord{Tick: s.next - 1, Hash: hash}}, nil
}

func ExampleRun() {
	meta := &format.Metadata{Game: "counter", HashBytes: 4}
	sim := player.NewLocal(&counter{})
	report, err := player.Run(context.Background(), sim, &ticks{}, player.EngineOptions{Start: player.Start{Meta: meta}})
	fmt.Println("ticks run:", report.TicksRun, "hashes compared:", report.HashesCompared)
	var desync *player.DesyncError
	if errors.As(err, &desync) {
		fmt.Println(desync)
	}
	// Output:
	// ticks run: 3 hashes compared: 3
	// desync at tick 2: recorded ff000003, simulated 00000003 (last good hash at tick 1)
}
