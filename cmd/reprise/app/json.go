package app

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"reprise/format"
)

// jsonText is free text in JSON: a string, or {"bytes":"base64"} where it
// is not valid UTF-8, so that no byte is lost.
type jsonText string

func (t jsonText) MarshalJSON() ([]byte, error) {
	if utf8.ValidString(string(t)) {
		return json.Marshal(string(t))
	}
	return json.Marshal(struct {
		Bytes []byte `json:"bytes"`
	}{[]byte(t)})
}

// jsonRate is a tick rate in JSON: a number, or a string where no decimal
// is exact.
type jsonRate format.Rate

func (r jsonRate) MarshalJSON() ([]byte, error) {
	s := format.Rate(r).String()
	if strings.Contains(s, "/") {
		return json.Marshal(s)
	}
	return []byte(s), nil
}

// writeJSON prints one document on a line of its own. What a terminal would
// act on is escaped in it.
func writeJSON(w io.Writer, v any) error {
	var doc bytes.Buffer
	enc := json.NewEncoder(&doc)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	_, err := w.Write(escapeHidden(nil, doc.Bytes()))
	return err
}

// escapingWriter escapes the hidden characters of JSON on its way to a
// terminal: a foreign header stands in JSON lines as it came.
type escapingWriter struct {
	w    io.Writer
	rest []byte // the beginning of a character
}

func (e *escapingWriter) Write(b []byte) (int, error) {
	text := append(e.rest, b...)
	whole := len(text)
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if tail := text[len(text)-n:]; utf8.RuneStart(tail[0]) && !utf8.FullRune(tail) {
			whole -= n
			break
		}
	}
	e.rest = bytes.Clone(text[whole:])
	if _, err := e.w.Write(escapeHidden(nil, text[:whole])); err != nil {
		return 0, err
	}
	return len(b), nil
}

// escapeHidden appends JSON with its hidden characters escaped. Those of one
// byte that may stand in JSON are DEL, and white space: of that only the
// carriage return does harm.
func escapeHidden(dst, doc []byte) []byte {
	for len(doc) > 0 {
		r, n := utf8.DecodeRune(doc)
		switch {
		case r == '\r':
			dst = append(dst, ' ')
		case r < 0x7f || !hidden(r):
			dst = append(dst, doc[:n]...)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			dst = fmt.Appendf(dst, `\u%04x\u%04x`, high, low)
		default:
			dst = fmt.Appendf(dst, `\u%04x`, r)
		}
		doc = doc[n:]
	}
	return dst
}
