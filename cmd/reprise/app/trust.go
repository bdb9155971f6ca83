package app

import (
	"fmt"
	"strings"

	"reprise/cmd/internal/keys"
	"reprise/format"
)

// jsonSigner is one signature of a file.
type jsonSigner struct {
	Key     string   `json:"key"`
	Name    jsonText `json:"name,omitempty"`
	Trusted bool     `json:"trusted"`
}

// trustError is a file that nobody has signed who is trusted.
type trustError struct{ why string }

func (e *trustError) Error() string { return e.why }

// unprovenError is a file of which the signature covers a part.
type unprovenError struct{ parts []jsonText }

func (e *unprovenError) Error() string {
	s := "signed, but this is there without being proven"
	for i, part := range e.parts {
		s += [...]string{": ", "; "}[min(i, 1)] + string(part)
	}
	return s
}

// readTrust reads the file of trusted keys; nil where none is named.
func readTrust(path string) (keys.Trust, error) {
	if path == "" {
		return nil, nil
	}
	trust, err := keys.ReadTrust(path)
	if err != nil {
		return nil, usagef("--trust: %w", err)
	}
	return trust, nil
}

// signers tells who has signed a file, as far as the trusted keys say.
func signers(signatures []format.Signature, trust keys.Trust) []jsonSigner {
	list := []jsonSigner{}
	for _, g := range signatures {
		p, ok := trust.Find(g.Key)
		list = append(list, jsonSigner{Key: g.Key.ID(), Name: jsonText(p.Name), Trusted: ok})
	}
	return list
}

// judge decides whether signatures that hold are those of a trusted key.
func judge(list []jsonSigner) error {
	var unknown []string
	for _, s := range list {
		if s.Trusted {
			return nil
		}
		unknown = append(unknown, s.Key)
	}
	if len(unknown) == 0 {
		return &trustError{"not signed"}
	}
	return &trustError{"signed by a key that is not trusted: " + strings.Join(unknown, ", ")}
}

// signerText names signers for people.
func signerText(list []jsonSigner) string {
	var names []string
	for _, s := range list {
		switch {
		case s.Name != "":
			names = append(names, fmt.Sprintf("%s (key %s)", printable(string(s.Name)), s.Key))
		default:
			names = append(names, "key "+s.Key)
		}
	}
	return strings.Join(names, ", ")
}

// unsaid names what only an RPLY2 file can say of itself, and what is made of
// its content therefore does not.
func unsaid(r *replay) (list []string) {
	if n := len(r.Signatures()); n > 0 {
		list = append(list, counted(n, "signature"))
	}
	if r.Summary().Redaction != nil {
		list = append(list, "that it is a redacted copy")
	}
	if a := r.Summary().Archive; a != nil && a.HashesLeft > 0 {
		list = append(list, "that "+counted(a.HashesLeft, "state hash")+" "+were(a.HashesLeft)+" left out")
	}
	return list
}

// unprovenParts names what is in a file without being proven by its digest,
// since a part was left out on purpose.
func unprovenParts(s *format.Summary) []string {
	var parts []string
	add := func(text string, args ...any) { parts = append(parts, fmt.Sprintf(text, args...)) }
	if r := s.Redaction; r != nil {
		if r.Metadata {
			add("labels, environment and foreign header, of which a part was erased")
		}
		if r.Params > 0 {
			add("the inputs of %s, in which %s %s emptied", counted(r.Segments, "segment"), counted(r.Params, "parameter"), were(r.Params))
		}
		if r.Marks > 0 {
			add("%s, whose texts were emptied", counted(r.Marks, "mark"))
		}
	}
	if a := s.Archive; a != nil && a.HashesLeft > 0 {
		add("the state hashes, of which %d %s left out", a.HashesLeft, were(a.HashesLeft))
	}
	return parts
}
