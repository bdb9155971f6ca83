package format

import (
	"maps"
	"math/bits"
)

// What layout a code takes, and what transform and form a stream, is picked by
// guessing sizes from a sample, and stays for the archive.

const (
	// trialNumbers is how many numbers of a stream are looked at; from
	// learnedNumbers on the outcome stays.
	trialNumbers   = 1024
	learnedNumbers = 256
	// fewNumbers are not worth a guess.
	fewNumbers = 16
	// trialParams is how many parameters of a code are looked at, if it has
	// learnedSteps steps.
	trialParams  = 2560
	learnedSteps = 64
	// manyParams is more than steps without a list have; lists begin at listPlace.
	manyParams = 16
	listPlace  = 4
)

// pick finds the transform and the form that numbers are smallest in.
func (w *columnWriter) pick(values []number) byte {
	if len(values) < learnedNumbers {
		how, _ := w.pickDelta(values)
		return how
	}
	if len(values) > trialNumbers {
		at := (len(values) - trialNumbers) / 2
		values = values[at : at+trialNumbers]
	}
	how, least := w.pickDelta(values)
	w.nums = transform(w.nums[:0], values, int(how>>2))
	width := planesOf(w.nums)
	if width == 1 && !overByte(w.nums) {
		return how
	}
	for _, f := range [...]int{formPlanes, formFixed} {
		w.bytes = appendNumbers(w.bytes[:0], w.nums, f, width)
		if n := w.guess.numbers(w.bytes, f, len(w.nums)); n < least {
			how, least = how&^3|byte(f), n
		}
	}
	return how
}

// overByte tells whether a number takes more than a byte as uvarint. Where none
// does, all forms are one.
func overByte(nums []uint64) bool {
	for _, v := range nums {
		if v >= 0x80 {
			return true
		}
	}
	return false
}

// pickDelta finds the transform that uvarints are smallest with, and about how
// many bits they take.
func (w *columnWriter) pickDelta(values []number) (byte, int) {
	if len(values) < fewNumbers {
		size := 0
		for i := range values {
			size += 8 * uvarintLen(deltaOf(values[i].v, 0))
		}
		return deltaNone<<2 | formVarint, size
	}
	near, fewer, plain := shortest(values)
	how, least := byte(deltaNone<<2|formVarint), w.guessUvarints(values, deltaNone)
	if fewer < plain {
		if n := w.guessUvarints(values, near); n < least {
			how, least = byte(near<<2|formVarint), n
		}
	}
	return how, least
}

func (w *columnWriter) guessUvarints(values []number, delta int) int {
	w.nums = transform(w.nums[:0], values, delta)
	w.bytes = appendNumbers(w.bytes[:0], w.nums, formVarint, 0)
	return w.guess.bytes(w.bytes)
}

// shortest finds the transform with the fewest bits, and tells how many bits the
// numbers have with it and without.
func shortest(values []number) (best, fewest, none int) {
	var last uint64
	var lasts [256]uint64
	var sums [deltas]int
	for i := range values {
		n := &values[i]
		sums[deltaNone] += bits.Len64(deltaOf(n.v, 0))
		sums[deltaLast] += bits.Len64(deltaOf(n.v, last))
		sums[deltaPlayer] += bits.Len64(deltaOf(n.v, lasts[n.player]))
		sums[deltaLeft] += bits.Len64(deltaOf(n.v, n.left))
		last, lasts[n.player] = n.v, n.v
	}
	best = deltaLast
	for d := deltaPlayer; d < deltas; d++ {
		if sums[d] < sums[best] {
			best = d
		}
	}
	return best, sums[best], sums[deltaNone]
}

// sample is a step that a trial looks at.
type sample struct{ at, count int }

// volume counts a code's parameters in a chunk. It has a sample of its steps
// where its layout is to be picked.
type volume struct {
	code          uint16
	steps, params int
	picks         bool
	passed        int // parameters before the sample and in it
	sample        []sample
}

// learned is what a code's steps were like when its layout was picked.
type learned struct{ steps, params int }

// changed tells whether steps became much longer, or shorter.
func (l learned) changed(v *volume) bool {
	now, then := v.params*l.steps, l.params*v.steps
	return now > then*3/2 || then > now*3/2
}

// measure counts the codes of a chunk, and tells whether one needs a layout:
// it has none yet, or its steps have changed.
func (w *columnWriter) measure(b *Batch) bool {
	w.volumes = w.volumes[:0]
	entry := b.Width.entry()
	for i := 0; i < len(b.Commands); i += entry {
		count, code := readCommand(b.Commands[i:], b.Width)
		if w.places[code] == 0 {
			w.volumes = append(w.volumes, volume{code: code})
			w.places[code] = uint16(len(w.volumes))
		}
		v := &w.volumes[w.places[code]-1]
		v.steps++
		v.params += count
	}
	picks := false
	for i := range w.volumes {
		v := &w.volumes[i]
		was, known := w.learned[v.code]
		v.picks = v.steps >= learnedSteps && v.params > 2*v.steps && (!known || was.changed(v))
		picks = picks || v.picks
	}
	return picks
}

// takeSamples takes a stretch in the middle of the steps of each code that
// needs a layout.
func (w *columnWriter) takeSamples(b *Batch) {
	at, entry := 0, b.Width.entry()
	for i := 0; i < len(b.Commands); i += entry {
		count, code := readCommand(b.Commands[i:], b.Width)
		if v := &w.volumes[w.places[code]-1]; v.picks {
			if from := (v.params - trialParams) / 2; v.passed >= from && v.passed < from+trialParams {
				v.sample = append(v.sample, sample{at, count})
			}
			v.passed += count
		}
		// The batch was parsed: this cannot fail.
		at, _ = skipParams(b.Params, at, count)
	}
}

// pickLayouts finds the layouts of the codes that need one.
func (w *columnWriter) pickLayouts(b *Batch) {
	picks := w.measure(b) && len(w.volumes) <= maxColumnCodes
	if picks {
		w.takeSamples(b)
	}
	for i := range w.volumes {
		v := &w.volumes[i]
		w.places[v.code] = 0
		if !picks || !v.picks {
			continue
		}
		w.learned[v.code] = learned{v.steps, v.params}
		if l := w.pickLayout(b.Params, v.sample); l != w.layouts[v.code] {
			w.layouts[v.code] = l
			w.forget(v.code)
		}
	}
	clear(w.texts)
	w.text, w.other = w.text[:0], w.other[:0]
}

// forget lets the forms of a code's streams be picked anew.
func (w *columnWriter) forget(code uint16) {
	maps.DeleteFunc(w.forms, func(k streamKey, _ byte) bool { return k.code == code && k.place != noColumn })
}

// triedLayouts are those that some code of a real game is smallest with.
var triedLayouts = [...]layout{0, 2, 3}

func (w *columnWriter) pickLayout(params []byte, steps []sample) layout {
	best, least := layout(0), 1<<62
	try := func(l layout) {
		w.tried.reset(0, l)
		for _, s := range steps {
			w.step(&w.tried, params, s.at, s.count)
		}
		if size := w.cost(&w.tried, least); size < least {
			best, least = l, size
		}
	}
	for _, l := range triedLayouts {
		try(l)
	}
	if l := countedLayout(params, steps); l != 0 {
		try(l)
	}
	return best
}

// countedLayout finds the parameter that counts a list in nearly all steps
// that have it, so that as many parameters as can be are in lists; 0 for none.
func countedLayout(params []byte, steps []sample) layout {
	var tally [layouts - layoutCounted + 1]struct{ has, fits, lists int }
	for _, s := range steps {
		at := s.at
		for i := 0; i < min(s.count, len(tally)); i++ {
			t, n := takeToken(params[at:])
			at += n
			tally[i].has++
			if t.kind == kindInt && t.num < uint64(s.count-i) && allInts(params[at:], int(t.num)) {
				tally[i].fits++
				tally[i].lists += int(t.num)
			}
		}
	}
	best, most := layout(0), 0
	for i := 1; i < len(tally); i++ {
		if p := &tally[i]; p.fits*10 > p.has*9 && p.lists > most {
			best, most = layout(layoutCounted+i-1), p.lists
		}
	}
	return best
}

// allInts tells whether the first so many parameters are integers.
func allInts(params []byte, count int) bool {
	for range count {
		t, n := takeToken(params)
		if t.kind != kindInt {
			return false
		}
		params = params[n:]
	}
	return true
}

// cost is about how many bits the columns of a code take; it stops where that
// is no longer the least.
func (w *columnWriter) cost(c *codeWriter, least int) int {
	size := 0
	for i := range c.columns {
		if size >= least {
			break
		}
		size += w.guess.bytes(c.columns[i].kinds)
		for _, values := range c.columns[i].values {
			_, n := w.pickDelta(values)
			size += n
		}
	}
	return size
}

// deltas finds the transform of each column's integers and floats where the
// parameters of a code are spread from the first one on. Behind the first few
// parameters of a code with long lists, columns are not of one kind of number,
// and have none.
func (w *columnWriter) deltas(b *Batch) map[deltaKey]uint8 {
	w.reset()
	w.pickLayouts(b)
	picked := w.layouts
	w.layouts = map[uint16]layout{}
	w.reset()
	shapes, err := w.split(b)
	w.layouts = picked
	found := map[deltaKey]uint8{}
	if err != nil {
		return found
	}
	long := longLists(shapes, picked)
	for i := range w.codes {
		c := &w.codes[i]
		for place := range c.columns {
			if long[c.code] && place >= listPlace {
				break
			}
			values := &c.columns[place].values
			found[deltaKey{uint32(c.code), uint8(place), kindInt}] = w.delta(values[streamInts])
			found[deltaKey{uint32(c.code), uint8(place), kindF32}] = w.delta(values[streamF32])
			found[deltaKey{uint32(c.code) | elementCode, uint8(max(place, 1)), kindInt}] = w.delta(values[streamElements])
		}
	}
	return found
}

// longLists finds the codes with more than manyParams parameters that are
// smallest in few columns.
func longLists(shapes []uint64, picked map[uint16]layout) map[uint16]bool {
	long := map[uint16]bool{}
	for _, s := range shapes {
		if code := uint16(s >> 8); s&255 > manyParams && (picked[code]&3 >= 2 || picked[code] >= layoutCounted) {
			long[code] = true
		}
	}
	return long
}

func (w *columnWriter) delta(values []number) uint8 {
	return w.pick(values) >> 2
}
