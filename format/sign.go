package format

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
)

// A signature chunk says that the holder of a key vouches for the content of
// a session. What it signs is not the file but a Statement, so that it holds
// on for every rewriting of the file that leaves the content as it is.

// PublicKey is the key that a signature is checked with.
type PublicKey [ed25519.PublicKeySize]byte

// ID names the key for people: the first 16 hex digits of its SHA-256.
func (k PublicKey) ID() string {
	sum := sha256.Sum256(k[:])
	return hex.EncodeToString(sum[:8])
}

// Signature is one signature over a session.
type Signature struct {
	Key   PublicKey
	Value [ed25519.SignatureSize]byte
}

// Statement is what a signature signs.
type Statement struct {
	// State is how the session ended.
	State EndState
	// Root is the content digest.
	Root Digest
	// Facts is the digest of the metadata without labels, environment and
	// origin, so that it stands after those are erased.
	Facts Digest
}

const (
	// signatureDomain begins every signed statement, so that a signature made
	// for another purpose is none. It must not change.
	signatureDomain = "RPLY2 content signature\x00"

	// algorithmEd25519 is stored in files. It must not change.
	algorithmEd25519 = 1
	// factsPrefix begins what the digest of the facts is made of, so that it
	// is no leaf, node or root.
	factsPrefix = 3
)

// ErrSignature is returned where a signature does not belong to the content
// that it stands with.
var ErrSignature = errors.New("signature does not hold")

// NewStatement is the statement about a session that ended in state.
func NewStatement(state EndState, root Digest, meta *Metadata) Statement {
	return Statement{State: state, Root: root, Facts: meta.facts()}
}

// facts is the digest of what redaction never erases of the metadata.
func (m *Metadata) facts() Digest {
	f := *m
	f.Labels, f.Env, f.Origin = nil, nil, Origin{}
	return sha256.Sum256(AppendMeta([]byte{factsPrefix}, &f))
}

// Bytes are those that are signed: the domain, the state u8, the root, the
// digest of the facts.
func (s Statement) Bytes() []byte {
	b := append([]byte(signatureDomain), byte(s.State))
	b = append(b, s.Root[:]...)
	return append(b, s.Facts[:]...)
}

// Sign signs s.
func (s Statement) Sign(key ed25519.PrivateKey) Signature {
	var sig Signature
	copy(sig.Key[:], key.Public().(ed25519.PublicKey))
	copy(sig.Value[:], ed25519.Sign(key, s.Bytes()))
	return sig
}

// Holds tells whether g is a signature over s.
func (s Statement) Holds(g Signature) bool {
	return ed25519.Verify(g.Key[:], s.Bytes(), g.Value[:])
}

// appendSignature appends the body of a signature chunk: algorithm u8, key,
// signature.
func appendSignature(dst []byte, g Signature) []byte {
	dst = append(dst, algorithmEd25519)
	dst = append(dst, g.Key[:]...)
	return append(dst, g.Value[:]...)
}

// parseSignature reads the body of a signature chunk.
func parseSignature(body []byte) (Signature, error) {
	var g Signature
	c := cursor{b: body}
	if a := c.byte("the algorithm"); c.err == nil && a != algorithmEd25519 {
		c.off = 0
		c.fail("signature algorithm %d, known is %d", a, algorithmEd25519)
	}
	copy(g.Key[:], c.bytes(len(g.Key), "the key"))
	copy(g.Value[:], c.bytes(len(g.Value), "the signature"))
	return g, c.done()
}

// addSignature adds g, which must hold over s; one of a key that has signed
// already changes nothing.
func addSignature(list []Signature, g Signature, s Statement) ([]Signature, error) {
	if !s.Holds(g) {
		return list, fmt.Errorf("%w: that by key %s is over other content", ErrSignature, g.Key.ID())
	}
	for _, have := range list {
		if have.Key == g.Key {
			return list, nil
		}
	}
	if len(list) == MaxSignatures {
		return list, fmt.Errorf("%w: more than %d signatures", ErrLimit, MaxSignatures)
	}
	return append(list, g), nil
}

// Signatures are those that stand in the footer of a finished file. They are
// not checked here: Check does, and Statement.Holds for a summary alone.
func (f *File) Signatures() []Signature { return f.signatures }

// Sign writes a copy of a finished RPLY2 file that has a leaves chunk, and a
// signature by key besides those that it has. It checks the whole file first:
// nobody should sign what does not hold. The same key gives the same bytes.
func Sign(f *File, key ed25519.PrivateKey, out io.Writer) error {
	if f.Source != "rply2" || f.Wrapping != "" {
		return errors.New("only an RPLY2 file as it is can be signed: convert or unpack it first")
	}
	if f.sum.End == nil {
		return ErrNoEnd
	}
	if _, err := f.Check(); err != nil {
		return err
	}
	return f.refoot(out, FooterOptions{Leaves: true, Signatures: f.signatures,
		Sign: func(s Statement) (Signature, error) { return s.Sign(key), nil }})
}

// refoot copies the content and writes the footer anew. Optional chunks of the
// footer that are not known stand before the end then.
func (f *File) refoot(out io.Writer, o FooterOptions) error {
	t := NewTracker()
	t.archives = &archiveReader{}
	t.listLeaves()
	s := scanner{src: f.src, size: f.size, at: HeaderSize}
	var content int64
	var unknown bytes.Buffer
	for {
		c, at, err := s.next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		switch {
		case c.Type == ChunkEnd:
			content = at
		case content == 0:
			err = t.Add(c, at)
		case !c.Type.Known():
			unknown.Write(AppendChunk(nil, c.Type, c.Seq, c.Body))
		}
		if err != nil {
			return err
		}
	}
	if _, err := io.Copy(out, io.NewSectionReader(f.src, 0, content)); err != nil {
		return err
	}
	if _, err := out.Write(unknown.Bytes()); err != nil {
		return err
	}
	// Late hashes are read back from the source, where the end stands here.
	if _, err := t.contentDigest(f.src, content); err != nil {
		return err
	}
	footer, err := t.FooterWith(f.src, content+int64(unknown.Len()), f.sum.End.State, f.sum.End.Reason, o)
	if err != nil {
		return err
	}
	_, err = out.Write(footer)
	return err
}
