package format

import (
	"crypto/sha256"
	"math/rand/v2"
	"strings"
	"testing"
)

func TestMerkleOfNothing(t *testing.T) {
	var m merkle
	if got := m.root(); got != Digest(sha256.Sum256(nil)) {
		t.Errorf("root of no leaves is %v", got)
	}
}

// TestMerkleAgreesWithTheLogs computes the trees over the eight entries with
// which logs of certificates are tested; their roots are published.
func TestMerkleAgreesWithTheLogs(t *testing.T) {
	entries := []string{"", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f"}
	roots := []string{
		"6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
		"fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
		"aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
		"d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
		"4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
		"76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
		"ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
		"5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
	}
	var m merkle
	for i, e := range entries {
		m.add(sha256.Sum256(append([]byte{0}, unhex(t, e)...)))
		if got := m.root().String(); got != roots[i] {
			t.Errorf("%d leaves: root %s, want %s", i+1, got, roots[i])
		}
		if again := m.root().String(); again != roots[i] {
			t.Errorf("%d leaves: the second look gives %s", i+1, again)
		}
	}
}

func TestMerkleAgreesWithTheRecursiveTree(t *testing.T) {
	var m merkle
	var leaves [][]byte
	for i := range 300 {
		l := sha([]byte{byte(i), byte(i >> 8)})
		leaves = append(leaves, l)
		m.add(Digest(l))
		if got := m.root(); string(got[:]) != string(treeRoot(leaves)) {
			t.Fatalf("%d leaves: another root", i+1)
		}
	}
	if n := len(m.stack); n > 9 {
		t.Errorf("%d digests are kept for 300 leaves", n)
	}
}

// TestDigestOfLongEmptyStretches has almost nothing but empty ticks, which
// are passed over in runs, across the borders of segments and chunks.
func TestDigestOfLongEmptyStretches(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 31))
		s := &session{meta: Metadata{Width: Width8, FirstTick: Tick(r.IntN(3000))}, end: End{State: EndSealed}}
		next := s.meta.FirstTick
		for range 1 + r.IntN(5) {
			for range r.IntN(3000) {
				s.ticks = append(s.ticks, modelTick{tick: next})
				next++
			}
			if r.IntN(3) == 0 {
				last := next + Tick(r.IntN(4000))
				s.gaps = append(s.gaps, Gap{First: next, Last: last})
				next = last + 1
			} else if r.IntN(2) == 0 {
				s.ticks = append(s.ticks, modelTick{tick: next, steps: []Step{{Code: 1}}})
				next++
			}
		}
		want := s.modelRoot()
		for _, chunk := range []int{1, 1023, 1024, 1025, 100_000} {
			if f, _ := s.file(t, chunk); *f.Summary().Digest != want {
				t.Fatalf("seed %d, chunks of %d ticks: digest %v, want %v", seed, chunk, f.Summary().Digest, want)
			}
		}
	}
}

// TestDigestCoversEveryPartOfTheContent changes one thing after the other.
func TestDigestCoversEveryPartOfTheContent(t *testing.T) {
	seen := map[Digest]string{}
	for name, change := range map[string]func(*session){
		"nothing":          func(*session) {},
		"the session's id": func(s *session) { s.meta.Session = "match-8" },
		"the code book":    func(s *session) { s.book.Codes[0].Name = "walk" },
		"no code book":     func(s *session) { s.book = nil },
		"the salt":         func(s *session) { s.salt = []byte("0123456789abcdeg") },
		"a player":         func(s *session) { s.players[0].Name = "Eve" },
		"a leave":          func(s *session) { s.players = s.players[:1] },
		"a step's code":    func(s *session) { s.ticks[0].steps[0].Code = 3 },
		"an argument":      func(s *session) { s.ticks[0].steps[0].Params[1] = Int(301) },
		"an argument's type": func(s *session) {
			s.ticks[0].steps[0].Params[1] = Float(300)
		},
		"a step in another tick": func(s *session) { s.ticks[1].steps, s.ticks[2].steps = s.ticks[2].steps, nil },
		"a hash":                 func(s *session) { s.ticks[0].hash = []byte{1, 2, 3, 4} },
		"no hash":                func(s *session) { s.ticks[3].hash = nil },
		"a time":                 func(s *session) { s.ticks[2].time++ },
		"no time":                func(s *session) { s.ticks[0].timed = false },
		"an empty tick more":     func(s *session) { s.ticks = append(s.ticks, modelTick{tick: 106}) },
		"a keyframe's state":     func(s *session) { s.keyframes[0].State = []byte("another") },
		"a keyframe's tick":      func(s *session) { s.keyframes[0].NextTick = 102 },
		"a mark":                 func(s *session) { s.marks[0].Text = "second" },
		"no mark":                func(s *session) { s.marks = nil },
		"a report":               func(s *session) { s.reports[0].Hash[0] = 9 },
		"a gap's reason":         func(s *session) { s.gaps[0].Reason = "lost" },
		"who declared a gap":     func(s *session) { s.gaps[0].ByRecorder = true },
	} {
		s := smallSession()
		change(s)
		f, _ := s.file(t, 2)
		if was, ok := seen[*f.Summary().Digest]; ok {
			t.Errorf("%s and %s have one digest", name, was)
		}
		seen[*f.Summary().Digest] = name
	}
}

func TestDigestText(t *testing.T) {
	d := Digest{0: 0xab, 31: 0x01}
	if got, want := d.String(), "ab"+strings.Repeat("00", 30)+"01"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
