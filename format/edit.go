package format

// Insert puts a step before step i; at Len it appends. Parameters are taken
// as by Add. It reports whether it did: not where i is out of range
// (WarnOutOfRange), nor at the maximum (WarnFull). Its cost grows with the
// number of steps behind i.
func (a *ReplayArray) Insert(i int, code uint16, params ...Value) bool {
	if !a.inRange(i, len(a.index)) {
		return false
	}
	params, count, size := a.admit(params, i)
	if !a.reserve(1, size, i) {
		return false
	}
	// The values may refer to the area that is about to move.
	encoded := appendParams(make([]byte, 0, size), params)
	start := a.paramStart(i)
	a.openStep(i)
	putCommand(a.commands[i*a.stride:], count, code, a.width)
	a.replaceParams(i, start, start, encoded)
	a.writes++
	return true
}

// openStep makes room for step i in the command area and the index.
func (a *ReplayArray) openStep(i int) {
	n, at, used := len(a.index), i*a.stride, len(a.commands)
	start := a.paramStart(i)
	a.index = a.index[:n+1]
	copy(a.index[i+1:], a.index[i:n])
	a.index[i] = uint32(start)
	a.commands = a.commands[:used+a.stride]
	copy(a.commands[at+a.stride:], a.commands[at:used])
}

// Delete removes step i and reports whether it did: not where i is out of
// range (WarnOutOfRange). Its cost grows with the number of steps behind i.
func (a *ReplayArray) Delete(i int) bool {
	if !a.inRange(i, len(a.index)-1) {
		return false
	}
	a.replaceParams(i, a.paramStart(i), a.paramStart(i+1), nil)
	a.index = append(a.index[:i], a.index[i+1:]...)
	a.commands = append(a.commands[:i*a.stride], a.commands[(i+1)*a.stride:]...)
	a.writes++
	return true
}

// Set replaces step i, code and parameters, and reports whether it did: not
// where i is out of range (WarnOutOfRange), nor where the longer parameters
// pass the maximum (WarnFull). Parameters are taken as by Add. Its cost grows
// with the number of steps behind i.
func (a *ReplayArray) Set(i int, code uint16, params ...Value) bool {
	if !a.inRange(i, len(a.index)-1) {
		return false
	}
	params, count, size := a.admit(params, i)
	start, end := a.paramStart(i), a.paramStart(i+1)
	if !a.reserve(0, size-(end-start), i) {
		return false
	}
	// The values may refer to the area that is about to move.
	encoded := appendParams(make([]byte, 0, size), params)
	putCommand(a.commands[i*a.stride:], count, code, a.width)
	a.replaceParams(i, start, end, encoded)
	a.writes++
	return true
}

// inRange checks the index of an edit against the last one that is allowed.
func (a *ReplayArray) inRange(i, last int) bool {
	if i >= 0 && i <= last {
		return true
	}
	a.report(Warning{Code: WarnOutOfRange, Step: i})
	return false
}

// paramStart is the offset of step i's parameters; for the step behind the
// last one it is the end of the area.
func (a *ReplayArray) paramStart(i int) int {
	if i == len(a.index) {
		return len(a.params)
	}
	return int(a.index[i])
}

// replaceParams puts encoded where step i's parameters are, moves what is
// behind them and moves the index of every later step along. The area has
// room.
func (a *ReplayArray) replaceParams(i, start, end int, encoded []byte) {
	used := len(a.params)
	moved := start + len(encoded) - end
	a.params = a.params[:max(used, used+moved)]
	copy(a.params[end+moved:], a.params[end:used])
	a.params = a.params[:used+moved]
	copy(a.params[start:], encoded)
	if moved == 0 {
		return
	}
	for j := i + 1; j < len(a.index); j++ {
		a.index[j] = uint32(int(a.index[j]) + moved)
	}
}

// SetWidth changes the width of command codes and reports whether every code
// fits it. Narrowing cuts a code above 255 to its low byte and reports it
// (WarnCodeCut, one for each step). A width that is neither Width8 nor
// Width16 changes nothing.
func (a *ReplayArray) SetWidth(w Width) bool {
	if w != Width8 && w != Width16 {
		return false
	}
	a.writes++
	if w == a.width {
		return true
	}
	whole := w == Width16 || a.reportCut()
	size := w.entry()
	commands := make([]byte, len(a.index)*size, cap(a.index)*size)
	for i := range a.index {
		count, code := readCommand(a.commands[i*a.stride:], a.width)
		putCommand(commands[i*size:], count, code, w)
	}
	a.commands, a.width, a.stride = commands, w, size
	return whole
}

// reportCut reports every code that narrowing will cut, and whether there is
// none.
func (a *ReplayArray) reportCut() bool {
	whole := true
	for i := range a.index {
		if _, code := readCommand(a.commands[i*a.stride:], a.width); code > 255 {
			a.report(Warning{Code: WarnCodeCut, Step: i, Command: code})
			whole = false
		}
	}
	return whole
}
