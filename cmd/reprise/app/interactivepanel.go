package app

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"reprise/format"
	"reprise/player"
)

// statePanel shows the fields of the game's state, and which of them changed
// since the place that was shown before.
type statePanel struct {
	fields []player.Field
	marks  []byte // per field: blank, or one of the following
	err    error
	// since is the place before, named where anything is compared with it.
	place, since string
	changed      int
	took         time.Duration

	// shown are the fields that pass the filter, top the first on screen.
	shown       []int
	filter      string
	onlyChanged bool
	top         int
}

const (
	fieldSame    = ' '
	fieldChanged = '*'
	fieldNew     = '+'
)

// show takes the state of another place.
func (p *statePanel) show(s *sight) {
	place := placeText(s.next, s.within)
	p.took = s.took
	if place != p.place {
		p.compare(s.fields)
		p.since, p.place = p.place, place
	}
	p.fields, p.err = s.fields, s.fieldsErr
	p.sift()
}

// compare marks what differs from the fields that were shown.
func (p *statePanel) compare(fields []player.Field) {
	before := make(map[string]string, len(p.fields))
	for _, f := range p.fields {
		before[f.Name] = f.Value
	}
	p.marks = make([]byte, len(fields))
	p.changed = 0
	for i, f := range fields {
		value, known := before[f.Name]
		switch {
		case len(before) == 0 || known && value == f.Value:
			p.marks[i] = fieldSame
			continue
		case known:
			p.marks[i] = fieldChanged
		default:
			p.marks[i] = fieldNew
		}
		p.changed++
	}
}

// sift finds the fields that pass the filter.
func (p *statePanel) sift() {
	p.shown = p.shown[:0]
	for i, f := range p.fields {
		if (!p.onlyChanged || p.marks[i] != fieldSame) && containsFold(f.Name, p.filter) {
			p.shown = append(p.shown, i)
		}
	}
}

// title says what is shown.
func (p *statePanel) title() string {
	s := "state at tick " + p.place
	switch {
	case p.place == "":
		return "state"
	case p.err != nil:
		return s
	case p.filter != "":
		return s + fmt.Sprintf(`: %d of %s with "%s"`, len(p.shown), counted(len(p.fields), "field"), printable(p.filter))
	}
	s += ": " + counted(len(p.fields), "field")
	if p.since != "" {
		s += fmt.Sprintf(", %d changed since %s", p.changed, p.since)
	}
	if p.onlyChanged {
		s += ", only these"
	}
	return s
}

// rows are the lines on screen.
func (p *statePanel) rows(height int) []line {
	if p.err != nil {
		return []line{{text: "  " + stateless(p.err)}}
	}
	p.top = max(0, min(p.top, len(p.shown)-height))
	var rows []line
	for _, i := range p.shown[p.top:min(p.top+height, len(p.shown))] {
		style := stylePlain
		if p.marks[i] != fieldSame {
			style = styleChanged
		}
		f := p.fields[i]
		rows = append(rows, line{fmt.Sprintf("%c %s = %s", p.marks[i], printable(f.Name), printable(f.Value)), style})
	}
	return rows
}

// stepPanel shows the steps of the next tick.
type stepPanel struct {
	place  string
	steps  []string
	unread int
	within int
	top    int
	// here is set where the tick is in the replay, end where there is none.
	here, end bool
}

func (p *stepPanel) show(s *sight) {
	place := fmt.Sprintf("tick %d", s.next)
	if place != p.place || s.within != p.within {
		p.top = -1 // where the next step is
	}
	p.place, p.steps, p.unread, p.within = place, s.steps, s.unread, s.within
	p.here, p.end = s.here, s.end
}

func (p *stepPanel) title() string {
	switch n := len(p.steps) + p.unread; {
	case p.place == "":
		return "steps"
	case p.end:
		return "steps: none, this is the end"
	case !p.here:
		return "steps of " + p.place + ": missing, there is a gap"
	case p.within > 0:
		return fmt.Sprintf("steps of %s: %d of %d are done", p.place, p.within, n)
	default:
		return fmt.Sprintf("steps of %s: %d", p.place, n)
	}
}

// rows are the lines on screen; an arrow stands at the step that comes next.
func (p *stepPanel) rows(height int) []line {
	all := len(p.steps)
	if p.unread > 0 {
		all++
	}
	if p.top < 0 {
		p.top = p.within - height/2
	}
	p.top = max(0, min(p.top, all-height))
	var rows []line
	for i := p.top; i < min(p.top+height, all); i++ {
		if i == len(p.steps) {
			rows = append(rows, line{text: fmt.Sprintf("    and %d more", p.unread)})
			continue
		}
		mark := ' '
		switch {
		case i < p.within:
			mark = 'x'
		case i == p.within:
			mark = '>'
		}
		rows = append(rows, line{text: fmt.Sprintf("%c %d %s", mark, i, p.steps[i])})
	}
	return rows
}

// placeText names a place: a tick, and the step in it that comes next.
func placeText(next format.Tick, within int) string {
	if within == 0 {
		return fmt.Sprint(next)
	}
	return fmt.Sprintf("%d step %d", next, within)
}

// stateless says why no fields are shown.
func stateless(err error) string {
	if errors.Is(err, player.ErrUnable) {
		return "this game does not name the fields of its state"
	}
	return printable(err.Error())
}

func containsFold(s, part string) bool {
	return strings.Contains(strings.ToLower(s), strings.ToLower(part))
}
