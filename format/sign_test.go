package format

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// testKey makes the same key for the same number in every run.
func testKey(n byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{n}, ed25519.SeedSize))
}

func publicKey(key ed25519.PrivateKey) PublicKey {
	return PublicKey(key.Public().(ed25519.PublicKey))
}

// signedFile gives the file with a signature by each key.
func signedFile(t testing.TB, b []byte, keys ...ed25519.PrivateKey) []byte {
	t.Helper()
	for _, key := range keys {
		var out bytes.Buffer
		if err := Sign(openBytes(t, b), key, &out); err != nil {
			t.Fatal(err)
		}
		b = out.Bytes()
	}
	return b
}

func TestSignedFile(t *testing.T) {
	s := smallSession()
	_, b := s.file(t, 1)
	one := signedFile(t, b, testKey(1))
	two := signedFile(t, one, testKey(2))
	for name, c := range map[string]struct {
		file []byte
		keys []PublicKey
	}{
		"no key":          {b, nil},
		"one key":         {one, []PublicKey{publicKey(testKey(1))}},
		"two keys":        {two, []PublicKey{publicKey(testKey(1)), publicKey(testKey(2))}},
		"the first again": {signedFile(t, two, testKey(1)), []PublicKey{publicKey(testKey(1)), publicKey(testKey(2))}},
	} {
		f := openBytes(t, c.file)
		s.checkFile(t, f)
		probe := File{src: f.src, size: f.size}
		if err := probe.openFinished(); err != nil {
			t.Errorf("%s: the footer is not used: %v", name, err)
		}
		report, err := f.Check()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		statement := NewStatement(f.Summary().End.State, *f.Summary().Digest, f.Summary().Meta)
		var keys []PublicKey
		for i, g := range report.Signatures {
			keys = append(keys, g.Key)
			if !statement.Holds(g) || f.Signatures()[i] != g {
				t.Errorf("%s: signature %d does not hold by the summary alone", name, i)
			}
		}
		if !slices.Equal(keys, c.keys) {
			t.Errorf("%s: signed by %v, want %v", name, keys, c.keys)
		}
	}
	if !bytes.Equal(signedFile(t, one, testKey(1)), one) {
		t.Error("signing again with the same key changes the file")
	}
}

func TestSignatureHoldsForTheContentAndNotTheFile(t *testing.T) {
	s := smallSession()
	_, b := s.file(t, 1)
	g := openBytes(t, signedFile(t, b, testKey(1))).Signatures()
	for _, chunk := range []int{1, 2, 100} {
		f, _ := s.file(t, chunk)
		tr, _, err := f.follow()
		if err != nil {
			t.Fatal(err)
		}
		if !NewStatement(s.end.State, *tr.digest, tr.meta).Holds(g[0]) {
			t.Errorf("chunks of %d ticks: the signature does not hold", chunk)
		}
	}
}

// TestEveryPartOfTheContentIsSigned puts the signature of one session into
// files of others, that are whole in themselves.
func TestEveryPartOfTheContentIsSigned(t *testing.T) {
	_, b := smallSession().file(t, 1)
	original := signedFile(t, b, testKey(1))
	for name, change := range map[string]func(*session){
		"the end state":  func(s *session) { s.end.State = EndUnfinished },
		"the session":    func(s *session) { s.meta.Session = "match-8" },
		"the build":      func(s *session) { s.meta.Build = "1.3" },
		"a label":        func(s *session) { s.meta.Labels[0].Value = "casual" },
		"a step":         func(s *session) { s.ticks[0].steps[0].Code = 2 },
		"a player":       func(s *session) { s.players[0].Name = "Eve" },
		"a tick more":    func(s *session) { s.ticks = append(s.ticks, modelTick{tick: 106}) },
		"a gap's reason": func(s *session) { s.gaps[0].Reason = "" },
	} {
		s := smallSession()
		change(s)
		_, other := s.file(t, 1)
		forged := withSignature(t, signedFile(t, other, testKey(2)), chunkOf(t, original, ChunkSignature))
		_, err := openBytes(t, forged).Check()
		if !errors.Is(err, ErrChanged) || !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "what key "+publicKey(testKey(1)).ID()+" has signed is another content") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// chunkOf gives the body of the first chunk of a type.
func chunkOf(t testing.TB, b []byte, typ ChunkType) []byte {
	t.Helper()
	for at := HeaderSize; at < len(b); {
		c, n, err := ParseChunk(b[at:])
		if err != nil {
			t.Fatal(err)
		}
		if c.Type == typ {
			return c.Body
		}
		at += n
	}
	t.Fatalf("no %v chunk", typ)
	return nil
}

// withSignature puts another signature into a signed file.
func withSignature(t testing.TB, b, body []byte) []byte {
	return withFooter(t, b, ChunkSignature, func([]byte) []byte { return body })
}

func TestSignaturesThatAreNone(t *testing.T) {
	_, b := smallSession().file(t, 1)
	good := signedFile(t, b, testKey(1))
	g := openBytes(t, good).Signatures()[0]
	statement := NewStatement(EndSealed, *openBytes(t, b).Summary().Digest, openBytes(t, b).Summary().Meta)
	other := statement
	other.State = EndUnfinished
	for name, c := range map[string]struct {
		body []byte
		says string
	}{
		"another algorithm":   {append([]byte{2}, appendSignature(nil, g)[1:]...), "signature algorithm 2"},
		"a key alone":         {appendSignature(nil, g)[:33], "body ends inside the signature"},
		"a byte more":         {append(appendSignature(nil, g), 0), "1 bytes after the last field"},
		"nothing":             {nil, "body ends before the algorithm"},
		"another's key":       {appendSignature(nil, Signature{publicKey(testKey(2)), g.Value}), "is another content"},
		"over another state":  {appendSignature(nil, other.Sign(testKey(1))), "is another content"},
		"over the bare root":  {appendSignature(nil, Signature{g.Key, [64]byte(ed25519.Sign(testKey(1), statement.Root[:]))}), "is another content"},
		"without the domain":  {appendSignature(nil, Signature{g.Key, [64]byte(ed25519.Sign(testKey(1), statement.Bytes()[len(signatureDomain):]))}), "is another content"},
		"a key of zero bytes": {appendSignature(nil, Signature{Value: g.Value}), "is another content"},
	} {
		_, err := openBytes(t, withSignature(t, good, c.body)).Check()
		if !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
	}
}

// TestFooterOfASignedFileKeepsItsOrder moves and repeats its chunks.
func TestFooterOfASignedFileKeepsItsOrder(t *testing.T) {
	s := smallSession()
	_, b := s.file(t, 1)
	b = signedFile(t, b, testKey(1))
	list := places(t, b, s.meta.HashBytes)
	find := func(typ ChunkType) []byte {
		i := slices.IndexFunc(list, func(p place) bool { return p.typ == typ })
		return b[list[i].start:list[i].end]
	}
	content := b[:endOf(t, b)]
	end, digest, leaves, summary, seek, signature, trailer := find(ChunkEnd), find(ChunkDigest), find(ChunkLeaves), find(ChunkSummary), find(ChunkSeek), find(ChunkSignature), find(ChunkTrailer)
	for name, footer := range map[string][][]byte{
		"leaves before the digest":     {end, leaves, digest, summary, seek, signature, trailer},
		"leaves twice":                 {end, digest, leaves, leaves, summary, seek, signature, trailer},
		"leaves behind the summary":    {end, digest, summary, leaves, seek, signature, trailer},
		"signature before the summary": {end, digest, leaves, signature, summary, seek, trailer},
		"signature before the seek":    {end, digest, leaves, summary, signature, seek, trailer},
		"signature twice":              {end, digest, leaves, summary, seek, signature, signature, trailer},
		"no seek table":                {end, digest, leaves, summary, signature, trailer},
	} {
		hurt := slices.Concat(append([][]byte{content}, footer...)...)
		if _, err := openBytes(t, hurt).Check(); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if hurt := slices.Concat(content, end, digest, leaves, summary, seek, trailer); true {
		f := openBytes(t, hurt)
		if report, err := f.Check(); err != nil || len(report.Signatures) != 0 || len(f.Signatures()) != 0 {
			t.Errorf("without the signature: %+v, %v", report, err)
		}
	}
}

func TestSignRefusesWhatDoesNotHold(t *testing.T) {
	s := smallSession()
	_, b := s.file(t, 1)
	live := b[:endOf(t, b)]
	changed := withFooter(t, b, ChunkDigest, func(d []byte) []byte { d[0] ^= 1; return d })
	jsonl := `{"game":"g","tick_rate":1,"ticks":1}` + "\n"
	for name, file := range map[string][]byte{"a live file": live, "a torn file": b[:len(b)-5], "a changed file": changed, "a wrapped file": gzipped(t, b), "JSON lines": []byte(jsonl)} {
		var out bytes.Buffer
		if err := Sign(openBytes(t, file), testKey(1), &out); err == nil || out.Len() > 0 {
			t.Errorf("%s is signed: %v, %d bytes written", name, err, out.Len())
		}
	}
}

func TestMoreSignaturesThanThereMayBe(t *testing.T) {
	_, b := smallSession().file(t, 1)
	f := openBytes(t, b)
	statement := NewStatement(EndSealed, *f.Summary().Digest, f.Summary().Meta)
	var list []Signature
	for i := range MaxSignatures {
		list = append(list, statement.Sign(testKey(byte(i))))
	}
	var full bytes.Buffer
	if err := f.refoot(&full, FooterOptions{Signatures: list}); err != nil {
		t.Fatal(err)
	}
	if report, err := openBytes(t, full.Bytes()).Check(); err != nil || len(report.Signatures) != MaxSignatures {
		t.Errorf("%d signatures: %v", len(report.Signatures), err)
	}
	err := Sign(openBytes(t, full.Bytes()), testKey(MaxSignatures), &bytes.Buffer{})
	if !errors.Is(err, ErrLimit) {
		t.Errorf("one more: %v, want over the limit", err)
	}
}

func TestFooterRefusesSignaturesOfOtherContent(t *testing.T) {
	_, b := smallSession().file(t, 1)
	f := openBytes(t, b)
	var out bytes.Buffer
	err := f.refoot(&out, FooterOptions{Signatures: []Signature{Statement{State: EndSealed}.Sign(testKey(1))}})
	if !errors.Is(err, ErrSignature) {
		t.Errorf("a signature over something else: %v", err)
	}
	why := errors.New("the key is locked away")
	err = f.refoot(&out, FooterOptions{Sign: func(Statement) (Signature, error) { return Signature{}, why }})
	if !errors.Is(err, why) {
		t.Errorf("a signer that fails: %v", err)
	}
}

// TestUnknownChunksStayWithASignature has optional chunks of a newer version
// before and behind the end.
func TestUnknownChunksStayWithASignature(t *testing.T) {
	s := smallSession()
	_, b := s.file(t, 1)
	end := endOf(t, b)
	before, behind := AppendChunk(nil, 0xB0, 0, []byte("before")), AppendChunk(nil, 0xB1, 0, []byte("behind"))
	trailer := len(b) - trailerSize
	b = withoutParse(slices.Concat(b[:end], before, b[end:trailer], behind, b[trailer:]), uint64(len(before)))
	once := signedFile(t, b, testKey(1))
	for _, extra := range [][]byte{before, behind} {
		if bytes.Count(once, extra) != 1 {
			t.Errorf("chunk %q stands %d times", extra, bytes.Count(once, extra))
		}
	}
	if _, err := openBytes(t, once).Check(); err != nil {
		t.Error(err)
	}
	if !bytes.Equal(signedFile(t, once, testKey(1)), once) {
		t.Error("signing again changes the file")
	}
}

// TestEveryBitOfASignedFileIsNoticed flips each bit of a sealed and signed
// file that has one of everything.
func TestEveryBitOfASignedFileIsNoticed(t *testing.T) {
	long(t)
	_, b := smallSession().file(t, 1)
	b = signedFile(t, b, testKey(1))
	for bit := range 8 * len(b) {
		hurt := bytes.Clone(b)
		hurt[bit/8] ^= 1 << (bit % 8)
		f, err := NewFile(bytes.NewReader(hurt), int64(len(hurt)))
		if err == nil {
			_, err = f.Check()
		}
		if !IsDamage(err) {
			t.Fatalf("bit %d of byte %d of %d: %v", bit%8, bit/8, len(b), err)
		}
	}
}

// TestEveryBitIsNoticedBehindRightChecksums flips each bit of every body, and
// of every type and sequence number, and puts the chunk's checksum right: what
// a person does who knows the format. Bytes of the frame's length would only
// cut the chunk elsewhere. A leaves or signature chunk that becomes one of an
// unknown type is as good as taken away: that shows where a signature is asked
// for.
func TestEveryBitIsNoticedBehindRightChecksums(t *testing.T) {
	long(t)
	s := smallSession()
	_, b := s.file(t, 1)
	b = signedFile(t, b, testKey(1))
	for _, p := range places(t, b, s.meta.HashBytes) {
		for at := p.start; at < p.end; at++ {
			if in := at - p.start; in == 0 || in >= 2 && in < chunkFixed {
				continue
			}
			for bit := range 8 {
				hurt := bytes.Clone(b)
				hurt[at] ^= 1 << bit
				hurt = resummed(hurt, p)
				f, err := NewFile(bytes.NewReader(hurt), int64(len(hurt)))
				var report *CheckReport
				if err == nil {
					report, err = f.Check()
				}
				if err != nil || at == p.start+1 && (p.typ == ChunkLeaves || p.typ == ChunkSignature && len(report.Signatures) == 0) {
					continue
				}
				t.Errorf("bit %d of byte %d in the %v chunk at %d: not noticed", bit, at-p.start, p.typ, p.start)
			}
		}
	}
}

// resummed puts the checksum of the chunk at p right.
func resummed(b []byte, p place) []byte {
	c := b[p.start:p.end]
	sum := chunkSum(c)
	c[6], c[7], c[8], c[9] = byte(sum>>24), byte(sum>>16), byte(sum>>8), byte(sum)
	return b
}

// TestSignedFileCutAtEveryByte repairs what is left of it.
func TestSignedFileCutAtEveryByte(t *testing.T) {
	long(t)
	s := smallSession()
	_, b := s.file(t, 1)
	b = signedFile(t, b, testKey(1))
	list := places(t, b, s.meta.HashBytes)
	at := func(typ ChunkType) int {
		return list[slices.IndexFunc(list, func(p place) bool { return p.typ == typ })].end
	}
	for cut := list[0].end; cut <= len(b); cut++ {
		var out Buffer
		report, err := Repair(bytes.NewReader(b[:cut]), int64(cut), &out)
		if err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		checkRepaired(t, fmt.Sprintf("cut at %d", cut), out.Bytes(), wholeTicks(list, cut))
		f := openBytes(t, out.Bytes())
		if whole := cut >= at(ChunkEnd); report.Whole != whole {
			t.Fatalf("cut at %d: whole %v, want %v", cut, report.Whole, whole)
		}
		if hasIt := cut >= at(ChunkSignature); (len(f.Signatures()) == 1) != hasIt {
			t.Fatalf("cut at %d: %d signatures", cut, len(f.Signatures()))
		}
		if cut >= at(ChunkSignature) && !bytes.Equal(out.Bytes(), b) {
			t.Fatalf("cut at %d: the repaired file is not the whole one", cut)
		}
	}
}

// TestRepairOfASignedFile damages each chunk in turn.
func TestRepairOfASignedFile(t *testing.T) {
	s := smallSession()
	_, b := s.file(t, 1)
	b = signedFile(t, b, testKey(1))
	list := places(t, b, s.meta.HashBytes)
	for _, p := range list {
		hurt := bytes.Clone(b)
		hurt[p.end-1] ^= 1
		var out Buffer
		report, err := Repair(bytes.NewReader(hurt), int64(len(hurt)), &out)
		if p.typ == ChunkMeta {
			// The summary repeats it.
			if err != nil || !report.Whole {
				t.Errorf("metadata: %+v, %v", report, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%v at %d: %v", p.typ, p.start, err)
			continue
		}
		f := openBytes(t, out.Bytes())
		checkRepaired(t, p.typ.String(), out.Bytes(), f.Summary().Ticks)
		footer := p.typ.ofFooter() || p.typ == ChunkEnd
		if holds := footer && p.typ != ChunkSignature; report.Whole != footer || (len(f.Signatures()) == 1) != holds {
			t.Errorf("%v at %d: whole %v with %d signatures: %+v", p.typ, p.start, report.Whole, len(f.Signatures()), report)
		}
		if names := slices.ContainsFunc(report.Losses, func(l Loss) bool { return strings.Contains(l.Why, "signature by key") }); names != !footer {
			t.Errorf("%v at %d: the lost signature is named: %v: %+v", p.typ, p.start, names, report.Losses)
		}
		if p.typ == ChunkEnd && (f.Summary().End.State != EndSealed || len(report.Mended) != 1) {
			t.Errorf("end: %+v, %+v", f.Summary().End, report)
		}
	}
}
