package app

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"

	"reprise/format"
	"reprise/player"
)

// lookPause is how long the shown state may be behind while the replay plays.
const lookPause = 100 * time.Millisecond

// viewer is the interactive player: what is shown, and what is to be done. It
// never waits: the desk works in commands, one piece at a time, and between
// two pieces the keys decide what comes next.
type viewer struct {
	desk  *desk
	clock player.Clock
	pacer *player.Pacer
	// heading names the replay; summary, book and marks are the replay's.
	heading heading
	summary *format.Summary
	book    *format.CodeBook
	marks   []format.Mark
	// side is how many keyframes a side file gave.
	side int

	width, height int
	// now is the time of the present message.
	now time.Time

	at      place
	playing bool
	job     job
	jobs    int  // how many jobs there were
	working bool // a piece is under way
	// beating is set while a timer will show how far a long piece is.
	beating bool
	reached format.Tick
	// alarm is the number of the last timer; waiting is set while it runs,
	// until rings.
	alarm   int
	waiting bool
	rings   time.Time

	state  statePanel
	stale  bool // the state panel shows another place
	looked time.Time
	steps  stepPanel
	// stepsHeld is set while up and down scroll the steps, not the state.
	stepsHeld bool

	// problem is what went wrong last, notice what else there is to say.
	problem error
	notice  string
	// told is the desync that playing was halted for.
	told   *player.DesyncError
	prompt *prompt
	help   bool
	sought string // what was searched last
}

// heading names the replay.
type heading struct {
	path, state string
}

// job is a move or a search that is under way.
type job struct {
	kind jobKind
	id   int
	to   goal
	// codes are searched, from tick to.tick on; what names them.
	codes map[uint16]bool
	what  string
	// began and from are when and where it began. mending is set for a move
	// to the tick that the game failed in.
	began   time.Time
	from    format.Tick
	mending bool
}

type jobKind uint8

const (
	jobNone jobKind = 0
	// jobSeek goes to a place by the nearest keyframe, jobPlay plays all
	// ticks up to it.
	jobSeek   jobKind = 1
	jobPlay   jobKind = 2
	jobSearch jobKind = 3
)

// rang says that a timer is over.
type rang int

// beat says that a piece of work may have taken long.
type beat struct{}

// beatPause is the time between two looks at a piece that takes long.
const beatPause = 200 * time.Millisecond

func newViewer(d *desk, r *replay, speed float64, from format.Tick) (*viewer, error) {
	s := r.Summary()
	v := &viewer{desk: d, clock: d.clock, pacer: player.NewPacer(s.Meta), heading: heading{r.path, r.state()},
		summary: s, book: r.Book(), marks: slices.Clone(s.Marks), width: 80, height: 24, now: d.clock.Now()}
	slices.SortStableFunc(v.marks, func(a, b format.Mark) int { return cmp.Compare(a.Tick, b.Tick) })
	v.at.next = s.Meta.FirstTick
	if err := v.pacer.SetSpeed(v.now, speed); err != nil {
		return nil, err
	}
	v.seek(goal{tick: from})
	return v, nil
}

// Init begins with the first piece of work.
func (v *viewer) Init() tea.Cmd { return tea.Batch(v.pump(), v.beat()) }

// Update takes a message, and says what is to be done next.
func (v *viewer) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	v.now = v.clock.Now()
	var cmd tea.Cmd
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		v.width, v.height = msg.Width, msg.Height
	case tea.KeyPressMsg:
		cmd = v.press(msg)
	case tea.PasteMsg:
		v.paste(msg.Content)
	case tea.ResumeMsg:
		v.pacer.Move(v.now, v.at.next)
	case moved:
		v.takeMove(msg)
	case sight:
		v.takeSight(msg)
	case searched:
		v.takeSearch(msg)
	case rang:
		v.waiting = v.waiting && int(msg) != v.alarm
	case beat:
		v.beating = false
	}
	v.reached = format.Tick(v.desk.reached.Load())
	return v, tea.Batch(cmd, v.pump(), v.beat())
}

// beat makes sure that the screen is drawn while a piece is under way.
func (v *viewer) beat() tea.Cmd {
	if !v.working || v.beating {
		return nil
	}
	v.beating = true
	clock := v.clock
	return func() tea.Msg {
		<-clock.After(beatPause)
		return beat{}
	}
}

// pump begins the next piece of work, if there is any.
func (v *viewer) pump() tea.Cmd {
	resting := v.job.kind == jobNone && !v.playing
	switch {
	case v.working:
		return nil
	case v.job.kind != jobNone:
		return v.work(v.piece())
	case v.stale && (resting || v.now.Sub(v.looked) >= max(lookPause, 8*v.state.took)):
		return v.work(func() tea.Msg { return v.desk.look() })
	case v.playing:
		return v.playOn()
	}
	return nil
}

func (v *viewer) work(piece tea.Cmd) tea.Cmd {
	v.working = true
	v.desk.begin()
	return piece
}

// piece is the next piece of the job. It holds no part of the viewer but the
// desk.
func (v *viewer) piece() tea.Cmd {
	d, j := v.desk, v.job
	switch j.kind {
	case jobSearch:
		return func() tea.Msg {
			found := d.search(j.to.tick, j.codes)
			found.job = j.id
			return found
		}
	case jobPlay:
		return func() tea.Msg { return d.play(j.to.tick).of(j.id) }
	}
	return func() tea.Msg { return d.seek(j.to).of(j.id) }
}

func (m moved) of(job int) moved {
	m.job = job
	return m
}

// playOn plays what is due, or waits for it.
func (v *viewer) playOn() tea.Cmd {
	next := v.at.next
	if next >= v.summary.NextTick {
		v.pause()
		v.stale = true
		return v.pump()
	}
	due := v.pacer.Due(v.now, next)
	if due == 0 {
		return v.wait(v.pacer.Wait(v.now, next))
	}
	to := v.stretch(next, due)
	d := v.desk
	return v.work(func() tea.Msg { return d.play(to) })
}

// stretch is the end of the ticks from next on that are played in one piece:
// up to a gap, or over the one that begins here.
func (v *viewer) stretch(next format.Tick, due int) format.Tick {
	to := v.summary.NextTick
	if rest := to - next; rest > format.Tick(due) {
		to = next + format.Tick(due)
	}
	for _, g := range v.summary.Gaps {
		switch {
		case g.First <= next && next <= g.Last:
			return g.Last + 1
		case next < g.First && g.First < to:
			to = g.First
		}
	}
	return to
}

// wait sets a timer, unless there is one that rings soon enough.
func (v *viewer) wait(d time.Duration) tea.Cmd {
	rings := v.now.Add(d)
	if v.waiting && !v.rings.After(rings) {
		return nil
	}
	v.waiting, v.rings = true, rings
	v.alarm++
	clock, alarm := v.clock, v.alarm
	return func() tea.Msg {
		<-clock.After(d)
		return rang(alarm)
	}
}

// takeMove goes on from where a piece of a move led.
func (v *viewer) takeMove(m moved) {
	before := v.at.next
	v.working, v.stale = false, true
	if !errors.Is(m.err, errClosed) {
		v.at = m.place
	}
	if m.job == 0 {
		v.pacer.Skip(v.missing(before, v.at.next))
	}
	mine := v.job.kind != jobNone && v.job.id == m.job
	switch {
	case m.err != nil:
		v.fail(m.err, mine)
	case mine && m.arrived:
		v.finish()
	}
	if m.job == 0 && m.desync != nil && v.playing && (v.told == nil || m.desync.Tick < v.told.Tick) {
		v.haltFor(m.desync)
	}
}

// missing counts the ticks of gaps from tick a up to b.
func (v *viewer) missing(a, b format.Tick) format.Tick {
	var n format.Tick
	for _, g := range v.summary.Gaps {
		if first, behind := max(a, g.First), min(b, g.Last+1); first < behind {
			n += behind - first
		}
	}
	return n
}

// haltFor rests behind the tick that a desync was found in.
func (v *viewer) haltFor(d *player.DesyncError) {
	v.told = d
	v.pause()
	if v.at.next > d.Tick+1 {
		v.seek(goal{tick: d.Tick + 1})
	}
	v.notice = "paused: from here on the simulation is not the recorded match"
}

// finish ends the job; what follows is due from now on.
func (v *viewer) finish() {
	v.job = job{}
	v.pacer.Move(v.now, v.at.next)
}

// fail notes what ended a move. The game is then brought before the tick
// that it failed in, if that is known.
func (v *viewer) fail(err error, mine bool) {
	if errors.Is(err, errClosed) {
		return
	}
	if errors.Is(err, context.Canceled) {
		if v.job.kind == jobNone {
			v.seek(goal{tick: v.at.next})
		}
		return
	}
	if !mine && v.job.kind != jobNone {
		return // another move is wanted already
	}
	mending := v.job.mending
	v.finish()
	v.pause()
	if mending {
		return // what went wrong first is shown
	}
	v.problem = err
	if tick, ok := failedTick(err); ok && tick > v.at.next {
		v.seek(goal{tick: tick})
		v.job.mending = true
		v.problem = err
	}
}

// failedTick is the tick that the game failed in.
func failedTick(err error) (format.Tick, bool) {
	var step *player.StepFailure
	var sim *player.SimulationError
	switch {
	case errors.As(err, &step) && step.HasTick:
		return step.Tick, true
	case errors.As(err, &sim) && sim.HasTick:
		return sim.Tick, true
	}
	return 0, false
}

// takeSight shows the place that was looked at.
func (v *viewer) takeSight(s sight) {
	v.working = false
	if errors.Is(s.err, errClosed) {
		return
	}
	v.looked = v.now
	v.stale = s.next != v.at.next || s.within != v.at.within
	if s.err != nil {
		v.pause()
		v.problem = s.err
	}
	v.state.show(&s)
	v.steps.show(&s)
}

// takeSearch goes on with a search, or to what it found.
func (v *viewer) takeSearch(s searched) {
	v.working = false
	if v.job.kind != jobSearch || v.job.id != s.job {
		return
	}
	what := v.job.what
	switch {
	case !s.over:
		v.job.to.tick = s.next
		return
	case s.found:
		v.seek(goal{tick: s.next})
		v.notice = "found " + what
		return
	case s.err != nil:
		v.problem = s.err
	default:
		v.notice = "no " + what + " from here to the end"
	}
	v.finish()
}

// begin makes j the job, in place of the one that is under way.
func (v *viewer) begin(j job) {
	v.jobs++
	j.id, j.began, j.from = v.jobs, v.now, v.at.next
	if v.working {
		v.desk.giveUp()
	}
	v.job, v.problem, v.notice = j, nil, ""
}

func (v *viewer) seek(to goal) { v.begin(job{kind: jobSeek, to: to}) }

// bound is where the player is, or is going.
func (v *viewer) bound() goal {
	if v.job.kind == jobSeek || v.job.kind == jobPlay {
		return v.job.to
	}
	return goal{v.at.next, v.at.within}
}

// play goes on playing.
func (v *viewer) play() {
	if v.bound().tick >= v.summary.NextTick {
		v.notice = "this is the end: Home goes to the beginning"
		return
	}
	if v.at.within > 0 || v.problem != nil {
		v.seek(goal{tick: v.bound().tick})
	}
	v.playing, v.notice = true, ""
	v.pacer.Start(v.now)
}

// pause rests after the tick that is being simulated.
func (v *viewer) pause() {
	v.playing = false
	v.pacer.Stop(v.now)
	if v.job.kind == jobNone {
		v.desk.interrupt()
	}
}

// setSpeed changes the speed from now on.
func (v *viewer) setSpeed(speed float64) {
	if v.pacer.SetSpeed(v.now, speed) == nil && v.job.kind == jobNone {
		v.desk.interrupt()
	}
}
