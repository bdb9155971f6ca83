package format

// AppendJSON appends a value as it stands in JSON lines: as a boolean, a
// number, a string, an array of integers, or the object that stands for what
// JSON has no form for. ParseJSON gives it back.
func AppendJSON(dst []byte, v Value) []byte { return appendJSONValue(dst, v) }

// ParseJSON reads one value as it stands in JSON lines.
func ParseJSON(text []byte) (Value, error) {
	// The space ends a number, which a line of JSON lines never ends with.
	j := jsonText{b: append(text[:len(text):len(text)], ' ')}
	v := j.value()
	return v.Clone(), j.end()
}

// ParseJSONList reads an array of values as it stands in JSON lines, the
// arguments of a step.
func ParseJSONList(text []byte) ([]Value, error) {
	j := jsonText{b: append(text[:len(text):len(text)], ' ')}
	j.need('[')
	var list []Value
	for first := true; j.more(']', first); first = false {
		list = append(list, j.value().Clone())
	}
	return list, j.end()
}
