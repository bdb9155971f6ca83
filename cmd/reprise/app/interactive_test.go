package app

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"

	"reprise/format"
	"reprise/player"
)

// ball is a game small enough to be played in the head: kicks move a ball,
// goals count.
type ball struct {
	state ballState
	// endTick may wait, or fail.
	endTick func(tick format.Tick) error
}

type ballState struct {
	Tick, Ball, Score0, Score1 int64
}

// The commands of ball.
const (
	kick  = 1
	goals = 2
	foul  = 3
)

func ballBook() *format.CodeBook {
	who := format.ParamInfo{Name: "player", Type: "int"}
	return &format.CodeBook{Codes: []format.CodeInfo{
		{Code: kick, Name: "kick", Params: []format.ParamInfo{who, {Name: "power", Type: "int"}}},
		{Code: goals, Name: "goal", Params: []format.ParamInfo{who}},
	}}
}

func (b *ball) Reset(start player.Start) error {
	b.state = ballState{Tick: int64(start.NextTick)}
	if start.State != nil {
		return b.Load(start.State)
	}
	return nil
}

func (b *ball) Step(_ format.Tick, step format.Step) (player.Result, error) {
	switch step.Code {
	case kick:
		power, _ := step.Params[1].Int64()
		b.state.Ball += power
	case goals:
		who, _ := step.Params[0].Int64()
		*[]*int64{&b.state.Score0, &b.state.Score1}[who]++
	default:
		return player.Failed, errors.New("the referee is away")
	}
	return player.Success, nil
}

func (b *ball) EndTick(tick format.Tick) error {
	b.state.Tick++
	if b.endTick != nil {
		return b.endTick(tick)
	}
	return nil
}

func (b *ball) Hash(dst []byte) []byte {
	h := fnv.New32a()
	binary.Write(h, binary.LittleEndian, &b.state)
	return h.Sum(dst)
}

func (b *ball) Save(dst []byte) []byte {
	dst, _ = binary.Append(dst, binary.LittleEndian, &b.state)
	return dst
}

func (b *ball) Load(state []byte) error {
	_, err := binary.Decode(state, binary.LittleEndian, &b.state)
	return err
}

func (b *ball) Dump() []player.Field {
	return []player.Field{{Name: "tick", Value: fmt.Sprint(b.state.Tick)}, {Name: "ball.x", Value: fmt.Sprint(b.state.Ball)},
		{Name: "score[0]", Value: fmt.Sprint(b.state.Score0)}, {Name: "score[1]", Value: fmt.Sprint(b.state.Score1)}}
}

// forgetful is a ball that cannot be saved.
type forgetful struct{ game *ball }

func (f forgetful) Reset(start player.Start) error { return f.game.Reset(start) }
func (f forgetful) Step(tick format.Tick, step format.Step) (player.Result, error) {
	return f.game.Step(tick, step)
}
func (f forgetful) EndTick(tick format.Tick) error { return f.game.EndTick(tick) }
func (f forgetful) Hash(dst []byte) []byte         { return f.game.Hash(dst) }
func (f forgetful) Dump() []player.Field           { return f.game.Dump() }

// court describes a recorded match of ball, 20 ticks a second.
type court struct {
	slow   bool // 5 ticks a second
	ticks  int
	every  int // a keyframe every so many ticks; 0 is none
	marks  []format.Mark
	gap    format.Gap  // only with Last
	broken format.Tick // the keyframe before it is bad; 0 is none
	flip   format.Tick // its hash is wrong; 0 is none
	foul   format.Tick // it has a step that fails; 0 is none
}

// steps are those of a tick.
func (c court) steps(tick format.Tick) [][]format.Value {
	var list [][]format.Value
	for i := range int64(tick % 3) {
		list = append(list, []format.Value{format.Int(kick), format.Int(i), format.Int(int64(tick) + i)})
	}
	if tick%50 == 49 {
		list = append(list, []format.Value{format.Int(goals), format.Int(int64(tick) / 50 % 2)})
	}
	if c.foul > 0 && tick == c.foul {
		list = append(list, []format.Value{format.Int(foul)})
	}
	return list
}

// record writes the match.
func (c court) record(t testing.TB) *replay {
	t.Helper()
	var out format.Buffer
	meta := &format.Metadata{Game: "ball", Build: "1.2", Map: "park", TickRate: format.Rate{Num: 20, Den: 1}, HashBytes: 4, Width: format.Width8}
	if c.slow {
		meta.TickRate.Num = 5
	}
	w, err := format.NewWriter(&out, meta, ballBook())
	must(t, err)
	game := new(ball)
	must(t, game.Reset(player.Start{}))
	for tick := range format.Tick(c.ticks) {
		must(t, c.before(w, game, tick))
		missing := c.gap.Last > 0 && c.gap.First <= tick && tick <= c.gap.Last
		for _, s := range c.steps(tick) {
			code, _ := s[0].Int64()
			if !missing {
				must(t, w.Step(uint16(code), s[1:]...))
			}
			if code != foul {
				game.Step(tick, format.Step{Code: uint16(code), Params: s[1:]})
			}
		}
		must(t, game.EndTick(tick))
		if missing {
			continue
		}
		must(t, w.EndTick())
		hash := game.Hash(nil)
		if c.flip > 0 && tick == c.flip {
			hash[0] ^= 1
		}
		must(t, w.Hash(tick, hash))
	}
	must(t, w.Finish(format.EndSealed, ""))
	f, err := format.NewFile(&out, int64(len(out.Bytes())))
	must(t, err)
	return &replay{File: f, path: "match.rply"}
}

// before writes what stands before a tick.
func (c court) before(w *format.Writer, game *ball, tick format.Tick) error {
	var err error
	if c.gap.Last > 0 && tick == c.gap.First {
		err = w.Gap(c.gap)
	}
	for _, m := range c.marks {
		if m.Tick == tick {
			err = errors.Join(err, w.Mark(m))
		}
	}
	if c.every > 0 && int(tick)%c.every == 0 && (c.gap.Last == 0 || tick <= c.gap.First || tick > c.gap.Last) {
		state := game.Save(nil)
		if c.broken > 0 && tick == c.broken {
			state[8] ^= 1
		}
		err = errors.Join(err, w.Keyframe(format.Keyframe{NextTick: tick, State: state}))
	}
	return err
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// sitting is a viewer in front of a made-up user, in virtual time.
type sitting struct {
	t    *testing.T
	v    *viewer
	game *ball
	msgs chan tea.Msg
	done chan struct{}
	quit bool
}

// sit runs a test of a viewer in virtual time, before the first tick.
func sit(t *testing.T, r *replay, saves bool, test func(s *sitting)) {
	t.Helper()
	game := new(ball)
	sim := player.NewLocal(game)
	if !saves {
		sim = player.NewLocal(forgetful{game})
	}
	sitWith(t, r, sim, func(s *sitting) {
		s.game = game
		test(s)
	})
}

// sitWith is sit with any simulation.
func sitWith(t *testing.T, r *replay, sim player.Simulation, test func(s *sitting)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(context.Background(), r.File, sim, player.SystemClock{}, player.PlaybackOptions{})
		v, err := newViewer(d, r, 1, r.Summary().Meta.FirstTick)
		must(t, err)
		s := &sitting{t: t, v: v, msgs: make(chan tea.Msg), done: make(chan struct{})}
		defer func() {
			d.close()
			close(s.done)
			time.Sleep(2 * time.Hour) // until the last timer is over
		}()
		s.run(v.Init())
		s.settle()
		test(s)
	})
}

// run does a command.
func (s *sitting) run(cmd tea.Cmd) {
	if cmd == nil {
		return
	}
	go func() {
		msg := cmd()
		select {
		case s.msgs <- msg:
		case <-s.done:
		}
	}()
}

// take hands a message to the viewer.
func (s *sitting) take(msg tea.Msg) {
	switch msg := msg.(type) {
	case nil:
		return
	case tea.QuitMsg:
		s.quit = true
		return
	case tea.BatchMsg:
		for _, cmd := range msg {
			s.run(cmd)
		}
		return
	}
	_, cmd := s.v.Update(msg)
	s.run(cmd)
}

// settle lets the viewer come to rest without any time going by.
func (s *sitting) settle() {
	for {
		synctest.Wait()
		select {
		case msg := <-s.msgs:
			s.take(msg)
		default:
			return
		}
	}
}

// wait lets time go by.
func (s *sitting) wait(d time.Duration) {
	over := time.After(d)
	for {
		select {
		case msg := <-s.msgs:
			s.take(msg)
		case <-over:
			s.settle()
			return
		}
	}
}

// specialKeys are the keys that are no text.
var specialKeys = map[string]tea.KeyPressMsg{
	"space": {Code: tea.KeySpace, Text: " "}, "left": {Code: tea.KeyLeft}, "right": {Code: tea.KeyRight},
	"home": {Code: tea.KeyHome}, "end": {Code: tea.KeyEnd}, "pgup": {Code: tea.KeyPgUp}, "pgdown": {Code: tea.KeyPgDown},
	"up": {Code: tea.KeyUp}, "down": {Code: tea.KeyDown}, "tab": {Code: tea.KeyTab}, "esc": {Code: tea.KeyEscape},
	"enter": {Code: tea.KeyEnter}, "backspace": {Code: tea.KeyBackspace},
	"shift+right": {Code: tea.KeyRight, Mod: tea.ModShift}, "ctrl+c": {Code: 'c', Mod: tea.ModCtrl},
}

// hit presses keys, and does not wait.
func (s *sitting) hit(names ...string) {
	for _, name := range names {
		msg, ok := specialKeys[name]
		if !ok {
			msg = tea.KeyPressMsg{Code: []rune(name)[0], Text: name}
		}
		s.take(msg)
	}
}

// press presses keys, and lets each have its effect.
func (s *sitting) press(names ...string) {
	for _, name := range names {
		s.hit(name)
		s.settle()
	}
}

// enter types a line behind a key.
func (s *sitting) enter(key, text string) {
	s.hit(key)
	for _, r := range text {
		s.hit(string(r))
	}
	s.press("enter")
}

// at checks where the viewer stands, and that the state is the right one.
func (s *sitting) at(tick format.Tick, step int) {
	s.t.Helper()
	if s.v.at.next != tick || s.v.at.within != step {
		s.t.Errorf("at tick %d step %d, want %d step %d (problem %v, notice %q)", s.v.at.next, s.v.at.within, tick, step, s.v.problem, s.v.notice)
	}
}
