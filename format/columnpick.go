package format

import "math/bits"

// What form a stream takes is learned by trial on its first numbers, with an
// encoder that is quick, and stays for the archive.

const (
	// trialNumbers is how many numbers a trial looks at; from learnedNumbers on
	// its outcome stays.
	trialNumbers   = 2048
	learnedNumbers = 256
	// fewNumbers are not worth a trial.
	fewNumbers = 16
	// trialParams is how many parameters of a code a trial of layouts looks at;
	// from learnedSteps steps on its outcome stays.
	trialParams  = 8192
	learnedSteps = 64
	// manyParams is more than steps without a list have; lists begin at listPlace.
	manyParams = 16
	listPlace  = 4
	// worthBest is in how many tenths of a stream a frame has to be for the best
	// encoder, which is slow, to find much more.
	worthBest = 3
	// frameCost is what a frame has whatever its size: in an archive the small
	// ones share theirs.
	frameCost = 6
)

// pick tries transforms and forms, and gives the smallest and its size.
func (w *columnWriter) pick(values []number) (byte, int) {
	if len(values) < fewNumbers {
		size := 0
		for i := range values {
			size += uvarintLen(deltaOf(values[i].v, 0))
		}
		return deltaNone<<2 | formVarint, size
	}
	all := len(values)
	values = values[:min(all, trialNumbers)]
	best, least := byte(0), 1<<62
	for _, d := range [...]int{deltaNone, w.shortest(values)} {
		w.nums = transform(w.nums[:0], values, d)
		width := planesOf(w.nums)
		for f := range forms {
			w.bytes = appendNumbers(w.bytes[:0], w.nums, f, width)
			if n := w.try(w.bytes); n < least {
				best, least = byte(d<<2|f), n
			}
		}
	}
	return best, least * all / len(values)
}

// shortest finds the transform with the fewest bits.
func (w *columnWriter) shortest(values []number) int {
	best, fewest := deltaNone, 1<<62
	for d := deltaLast; d < deltas; d++ {
		w.nums = transform(w.nums[:0], values, d)
		sum := 0
		for _, v := range w.nums {
			sum += bits.Len64(v)
		}
		if sum < fewest {
			best, fewest = d, sum
		}
	}
	return best
}

// try gives the size of bytes in a frame.
func (w *columnWriter) try(b []byte) int {
	w.frame = w.trial.frame(w.frame[:0], b)
	return max(0, len(w.frame)-frameCost)
}

// sample is a step that a trial looks at.
type sample struct{ at, count int }

// pickLayouts finds the layout of each code that has none yet.
func (w *columnWriter) pickLayouts(b *Batch) {
	steps, params := map[uint16][]sample{}, map[uint16]int{}
	var codes []uint16
	at, entry := 0, b.Width.entry()
	for i := 0; i < len(b.Commands); i += entry {
		count, code := readCommand(b.Commands[i:], b.Width)
		if _, known := w.layouts[code]; !known && count > 2 && params[code] < trialParams {
			if params[code] == 0 {
				codes = append(codes, code)
			}
			steps[code] = append(steps[code], sample{at, count})
			params[code] += count
		}
		// The batch was parsed: this cannot fail.
		at, _ = skipParams(b.Params, at, count)
	}
	var c codeWriter
	for _, code := range codes {
		if s := steps[code]; len(s) >= learnedSteps {
			w.layouts[code] = w.pickLayout(&c, b.Params, s)
		}
	}
	clear(w.texts)
	w.text, w.other = w.text[:0], w.other[:0]
}

// triedLayouts are those that some code of a real game is smallest with.
var triedLayouts = [...]layout{0, 4, 2, 3}

func (w *columnWriter) pickLayout(c *codeWriter, params []byte, steps []sample) layout {
	best, least := layout(0), 1<<62
	for _, l := range triedLayouts {
		c.reset(0, l)
		for _, s := range steps {
			w.step(c, params, s.at, s.count)
		}
		if size := w.cost(c); size < least {
			best, least = l, size
		}
	}
	return best
}

// cost is about what the columns of a code take.
func (w *columnWriter) cost(c *codeWriter) int {
	size := 0
	for i := range c.columns {
		size += w.try(c.columns[i].kinds)
		for _, values := range c.columns[i].values {
			_, n := w.pick(values)
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
		if code := uint16(s >> 8); s&255 > manyParams && picked[code]&3 >= 2 {
			long[code] = true
		}
	}
	return long
}

func (w *columnWriter) delta(values []number) uint8 {
	how, _ := w.pick(values)
	return how >> 2
}
