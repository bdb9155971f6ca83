package format

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// jsonText reads one line of JSON. The first failure stays; every read
// after it gives zero values. Strings refer to the line, or to memory that
// stays theirs where they had escapes.
type jsonText struct {
	b   []byte
	at  int
	err error
	// cut is set where the line ended too early, as when a file was cut.
	cut bool
}

// maxJSONDepth bounds how deep a header's unknown values may nest.
const maxJSONDepth = 64

func (j *jsonText) fail(what string, args ...any) {
	if j.err == nil {
		j.err = fmt.Errorf(what, args...)
	}
}

// unexpected fails at the present place.
func (j *jsonText) unexpected(want string) {
	if j.err != nil {
		return
	}
	if j.at >= len(j.b) {
		j.cut = true
		j.fail("the line ends where %s is due", want)
		return
	}
	j.fail("%q at byte %d where %s is due", rune(j.b[j.at]), j.at, want)
}

// peek skips white space and gives the next byte; 0 at the end.
func (j *jsonText) peek() byte {
	for j.at < len(j.b) {
		switch c := j.b[j.at]; c {
		case ' ', '\t', '\r':
			j.at++
		default:
			return c
		}
	}
	return 0
}

// take reads c if it comes next.
func (j *jsonText) take(c byte) bool {
	if j.err != nil || j.peek() != c {
		return false
	}
	j.at++
	return true
}

func (j *jsonText) need(c byte) {
	if j.err == nil && !j.take(c) {
		j.unexpected(strconv.QuoteRune(rune(c)))
	}
}

// more moves to the next item of an object or array that end closes; first
// says that it is just open.
func (j *jsonText) more(end byte, first bool) bool {
	if j.err != nil || j.take(end) {
		return false
	}
	if !first && !j.take(',') {
		j.unexpected("',' or " + strconv.QuoteRune(rune(end)))
	}
	return j.err == nil
}

// end checks that nothing follows.
func (j *jsonText) end() error {
	if j.err == nil && j.peek() != 0 || j.err == nil && j.at < len(j.b) {
		j.unexpected("the end of the line")
	}
	return j.err
}

// key reads a member's name and its colon.
func (j *jsonText) key() string {
	k := j.str()
	j.need(':')
	return k
}

// str reads a string.
func (j *jsonText) str() string { return stringValue(j.strBytes()).Str() }

// strBytes reads a string, which must be valid UTF-8.
func (j *jsonText) strBytes() []byte {
	if j.err != nil || !j.take('"') {
		j.unexpected("a string")
		return nil
	}
	start, ascii := j.at, true
	for ; j.at < len(j.b); j.at++ {
		switch c := j.b[j.at]; {
		case c == '"':
			s := j.b[start:j.at:j.at]
			j.at++
			return j.valid(s, ascii)
		case c == '\\':
			return j.escaped(bytes.Clone(j.b[start:j.at]))
		case c < 0x20:
			j.fail("byte %02x inside a string at byte %d: write it as \\u%04x", c, j.at, c)
			return nil
		case c >= utf8.RuneSelf:
			ascii = false
		}
	}
	j.unexpected("the end of a string")
	return nil
}

func (j *jsonText) valid(s []byte, ascii bool) []byte {
	if !ascii && !utf8.Valid(s) {
		j.fail("a string is not UTF-8: write it as {\"string_base64\":\"…\"}")
		return nil
	}
	return s
}

// escaped goes on with a string, whose first part is s, at an escape.
func (j *jsonText) escaped(s []byte) []byte {
	for j.at < len(j.b) {
		c := j.b[j.at]
		switch {
		case c == '"':
			j.at++
			return j.valid(s, false)
		case c == '\\':
			j.at++
			s = j.escape(s)
			if j.err != nil {
				return nil
			}
			continue
		case c < 0x20:
			j.fail("byte %02x inside a string at byte %d: write it as \\u%04x", c, j.at, c)
			return nil
		}
		s = append(s, c)
		j.at++
	}
	j.unexpected("the end of a string")
	return nil
}

// jsonEscapes are the escapes of one letter.
var jsonEscapes = map[byte]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

func (j *jsonText) escape(s []byte) []byte {
	if j.at >= len(j.b) {
		j.unexpected("an escape")
		return nil
	}
	c := j.b[j.at]
	if c != 'u' {
		plain, ok := jsonEscapes[c]
		if !ok {
			j.unexpected("an escape")
			return nil
		}
		j.at++
		return append(s, plain)
	}
	r := j.unit()
	if utf16.IsSurrogate(r) {
		if !bytes.HasPrefix(j.b[min(j.at, len(j.b)):], []byte(`\u`)) {
			j.fail("a surrogate without its pair in a string: write it as {\"string_base64\":\"…\"}")
			return nil
		}
		j.at++
		if r = utf16.DecodeRune(r, j.unit()); r == utf8.RuneError {
			j.fail("a surrogate without its pair in a string: write it as {\"string_base64\":\"…\"}")
		}
	}
	return utf8.AppendRune(s, r)
}

// unit reads the u and four digits of an escape.
func (j *jsonText) unit() rune {
	if j.err != nil || len(j.b)-j.at < 5 {
		j.at = len(j.b)
		j.unexpected("an escape")
		return 0
	}
	v, err := strconv.ParseUint(string(j.b[j.at+1:j.at+5]), 16, 16)
	if err != nil {
		j.unexpected("an escape of four digits")
		return 0
	}
	j.at += 5
	return rune(v)
}

// number gives the text of a number as JSON spells it, and whether it is an
// integer.
func (j *jsonText) number() (text []byte, integer bool) {
	j.peek()
	start := j.at
	j.skip('-')
	if !j.skip('0') && !j.digits() {
		j.unexpected("a number")
		return nil, false
	}
	integer = true
	if j.skip('.') {
		integer = false
		if !j.digits() {
			j.unexpected("a digit")
		}
	}
	if j.skip('e') || j.skip('E') {
		integer = false
		if !j.skip('+') {
			j.skip('-')
		}
		if !j.digits() {
			j.unexpected("a digit")
		}
	}
	if j.at >= len(j.b) {
		j.unexpected("the end of the object")
	}
	return j.b[start:j.at], integer
}

// skip reads c if it is the next byte.
func (j *jsonText) skip(c byte) bool {
	if j.err == nil && j.at < len(j.b) && j.b[j.at] == c {
		j.at++
		return true
	}
	return false
}

func (j *jsonText) digits() bool {
	start := j.at
	for j.at < len(j.b) && j.b[j.at] >= '0' && j.b[j.at] <= '9' {
		j.at++
	}
	return j.at > start
}

// uint reads an integer from 0 to most.
func (j *jsonText) uint(field string, most uint64) uint64 {
	text, integer := j.number()
	if j.err != nil {
		return 0
	}
	v, err := strconv.ParseUint(string(text), 10, 64)
	if !integer || err != nil || v > most {
		j.fail("%s is %.40s: an integer from 0 to %d", field, text, most)
		return 0
	}
	return v
}

func (j *jsonText) tick(field string) Tick { return Tick(j.uint(field, uint64(MaxTick))) }

func (j *jsonText) bool() bool {
	switch {
	case j.word("true"):
		return true
	case j.word("false"):
		return false
	}
	j.unexpected("true or false")
	return false
}

func (j *jsonText) word(w string) bool {
	j.peek()
	if j.err == nil && bytes.HasPrefix(j.b[j.at:], []byte(w)) {
		j.at += len(w)
		return true
	}
	if j.err == nil && bytes.HasPrefix([]byte(w), j.b[j.at:]) {
		j.at = len(j.b)
	}
	return false
}

// base64 reads bytes.
func (j *jsonText) base64() []byte {
	s := j.strBytes()
	b, err := base64.StdEncoding.Strict().AppendDecode(nil, s)
	if err != nil {
		j.fail("not base64: %v", err)
	}
	return b
}

// text reads a string, or the bytes of one that is not UTF-8.
func (j *jsonText) text(field string) string {
	if j.peek() == '"' {
		return string(j.strBytes())
	}
	v := j.value()
	if v.Kind() != KindString {
		j.fail("%s is not a string", field)
	}
	return string(v.Str())
}

// value reads one argument of a command.
func (j *jsonText) value() Value {
	switch c := j.peek(); {
	case j.err != nil:
	case c == '"':
		return stringValue(j.strBytes())
	case c == '-' || c >= '0' && c <= '9':
		return j.numberValue()
	case c == '[':
		return Ints(j.list())
	case c == '{':
		return j.typed()
	case c == 't' || c == 'f':
		return Bool(j.bool())
	default:
		j.unexpected("a boolean, number, string, list or typed object")
	}
	return Value{}
}

func (j *jsonText) numberValue() Value {
	text, integer := j.number()
	if j.err != nil {
		return Value{}
	}
	if integer {
		return j.integer(text)
	}
	x, err := strconv.ParseFloat(string(text), 64)
	if err != nil {
		j.fail("number %.40s is beyond a float64", text)
	}
	return Float(x)
}

// integer keeps every integer whose magnitude fits 64 bits.
func (j *jsonText) integer(text []byte) Value {
	neg := text[0] == '-'
	if neg {
		text = text[1:]
	}
	var m uint64
	for _, c := range text {
		d := uint64(c - '0')
		if m > (math.MaxUint64-d)/10 {
			j.fail("integer %.40s does not fit 64 bits: write it as {\"bigint\":\"…\"}", text)
			return Value{}
		}
		m = m*10 + d
	}
	return integer(m, neg)
}

// list reads an integer list.
func (j *jsonText) list() []int64 {
	list := []int64{}
	j.need('[')
	for first := true; j.more(']', first); first = false {
		if c := j.peek(); c != '-' && (c < '0' || c > '9') {
			j.unexpected("an integer (a nested array is an integer list)")
			break
		}
		x, ok := j.numberValue().Int64()
		if !ok {
			j.fail("a nested array is an integer list: each element is an integer of 64 bits")
		}
		list = append(list, x)
	}
	return list
}

// typed reads an object that stands for a value which JSON has no form for.
func (j *jsonText) typed() Value {
	j.need('{')
	kind := j.key()
	var v Value
	switch {
	case j.err != nil:
	case kind == "bigint":
		v = j.bigint()
	case kind == "bytes":
		v = Bytes(j.base64())
	case kind == "string_base64":
		v = stringValue(j.base64())
	case kind == "float":
		v = j.special()
	default:
		j.fail("typed object %.40q: use bigint, bytes, string_base64 or float", kind)
	}
	j.need('}')
	return v
}

func (j *jsonText) bigint() Value {
	// The magnitude ends below 2^2040, 615 digits.
	const most = 616
	s := j.str()
	i, ok := new(big.Int), false
	if len(s) <= most {
		i, ok = i.SetString(s, 10)
	}
	if !ok || storable(BigInt(i)) != 0 {
		j.fail("bigint %.40q: a decimal integer below 2^2040", s)
		return Value{}
	}
	return BigInt(i)
}

func (j *jsonText) special() Value {
	switch s := j.str(); s {
	case "NaN":
		return Float(math.NaN())
	case "Infinity":
		return Float(math.Inf(1))
	case "-Infinity":
		return Float(math.Inf(-1))
	default:
		j.fail("float %.40q: use NaN, Infinity or -Infinity", s)
	}
	return Value{}
}

// pass skips any value.
func (j *jsonText) pass(depth int) {
	switch c := j.peek(); {
	case depth == 0:
		j.fail("values nest deeper than %d", maxJSONDepth)
	case c == '{':
		j.need('{')
		for first := true; j.more('}', first); first = false {
			j.key()
			j.pass(depth - 1)
		}
	case c == '[':
		j.need('[')
		for first := true; j.more(']', first); first = false {
			j.pass(depth - 1)
		}
	case c == '"':
		j.strBytes()
	case c == '-' || c >= '0' && c <= '9':
		j.number()
	case c == 'n' && j.word("null"):
	default:
		j.bool()
	}
}

// appendJSONString appends s as a string, or as a typed object where it is
// not UTF-8. What a terminal would act on is escaped.
func appendJSONString(dst []byte, s string) []byte {
	if !utf8.ValidString(s) {
		dst = append(dst, `{"string_base64":"`...)
		dst = base64.StdEncoding.AppendEncode(dst, []byte(s))
		return append(dst, `"}`...)
	}
	dst = append(dst, '"')
	start := 0
	for i, r := range s {
		if r >= 0x20 && r < 0x7f && r != '"' && r != '\\' || r > 0x9f && !hiddenRune(r) {
			continue
		}
		dst = append(dst, s[start:i]...)
		dst = appendEscape(dst, r)
		start = i + utf8.RuneLen(r)
	}
	dst = append(dst, s[start:]...)
	return append(dst, '"')
}

// hiddenRune tells whether r changes how a terminal or an editor shows what
// is around it: line separators, directions, the byte-order mark.
func hiddenRune(r rune) bool {
	switch {
	case r == 0x061c, r >= 0x200e && r <= 0x200f, r >= 0x2028 && r <= 0x202e, r >= 0x2066 && r <= 0x2069, r == 0xfeff:
		return true
	}
	return false
}

func appendEscape(dst []byte, r rune) []byte {
	switch r {
	case '"', '\\':
		return append(dst, '\\', byte(r))
	case '\n':
		return append(dst, `\n`...)
	case '\r':
		return append(dst, `\r`...)
	case '\t':
		return append(dst, `\t`...)
	}
	const hex = "0123456789abcdef"
	return append(dst, '\\', 'u', hex[r>>12&15], hex[r>>8&15], hex[r>>4&15], hex[r&15])
}

// appendJSONValue appends v so that reading it gives v again.
func appendJSONValue(dst []byte, v Value) []byte {
	switch v.Kind() {
	case KindBool:
		return strconv.AppendBool(dst, v.Bool())
	case KindInt:
		return appendJSONInt(dst, v)
	case KindFloat:
		x, _ := v.Float64()
		return appendJSONFloat(dst, x)
	case KindBig:
		dst = append(dst, `{"bigint":"`...)
		dst = v.BigInt().Append(dst, 10)
		return append(dst, `"}`...)
	case KindString:
		return appendJSONString(dst, v.Str())
	case KindBytes:
		dst = append(dst, `{"bytes":"`...)
		dst = base64.StdEncoding.AppendEncode(dst, v.ByteSlice())
		return append(dst, `"}`...)
	}
	dst = append(dst, '[')
	for i := range v.Len() {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = strconv.AppendInt(dst, v.At(i), 10)
	}
	return append(dst, ']')
}

func appendJSONInt(dst []byte, v Value) []byte {
	if i, ok := v.Int64(); ok {
		return strconv.AppendInt(dst, i, 10)
	}
	m, neg := v.magnitude()
	if neg {
		dst = append(dst, '-')
	}
	return strconv.AppendUint(dst, m, 10)
}

// appendJSONFloat appends the shortest text that means x, with a point or an
// exponent, so that it does not read as an integer.
func appendJSONFloat(dst []byte, x float64) []byte {
	switch {
	case math.IsNaN(x):
		return append(dst, `{"float":"NaN"}`...)
	case math.IsInf(x, 1):
		return append(dst, `{"float":"Infinity"}`...)
	case math.IsInf(x, -1):
		return append(dst, `{"float":"-Infinity"}`...)
	}
	n := len(dst)
	if a := math.Abs(x); a != 0 && (a < 1e-6 || a >= 1e21) {
		return strconv.AppendFloat(dst, x, 'e', -1, 64)
	}
	dst = strconv.AppendFloat(dst, x, 'f', -1, 64)
	if !slices.Contains(dst[n:], '.') {
		dst = append(dst, ".0"...)
	}
	return dst
}
