package main

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

// escapeHidden appends JSON with its hidden characters escaped. Those of one
// byte that may stand in JSON are its white space, and DEL.
func escapeHidden(dst, doc []byte) []byte {
	for len(doc) > 0 {
		r, n := utf8.DecodeRune(doc)
		switch {
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
