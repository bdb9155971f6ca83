package process

import (
	"bytes"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
	"testing/iotest"

	"reprise/format"
	"reprise/player"
	"reprise/player/internal/playtest"
)

// message is what every message with fields can do.
type message interface {
	append(dst []byte) []byte
	parse(body []byte) error
}

// tickParser is a tickMessage that can be written again.
type tickParser struct{ tickMessage }

func (m *tickParser) append(dst []byte) []byte {
	var w tickWriter
	dst, err := w.append(dst, &m.record, m.wantHash)
	if err != nil {
		panic(err)
	}
	return dst
}

// empty is a message without fields.
type empty struct{ t messageType }

func (e *empty) append(dst []byte) []byte { return appendEmpty(dst, e.t) }
func (e *empty) parse(body []byte) error  { return parseEmpty(body) }

func newMessage(t messageType) message {
	switch t {
	case typeHello:
		return new(hello)
	case typeRefused:
		return new(refused)
	case typeDone:
		return new(done)
	case typeFailed:
		return new(failed)
	case typeBroken:
		return new(broken)
	case typeSaved:
		return new(saved)
	case typeFields:
		return new(fields)
	case typeWelcome:
		return new(welcome)
	case typeReset:
		return new(reset)
	case typeTick:
		return new(tickParser)
	case typeFlush:
		return new(flush)
	case typeLoad:
		return new(load)
	case typeIdentity:
		return new(identity)
	}
	return &empty{t}
}

// samples are messages of every type.
func samples(t testing.TB) [][]byte {
	list := [][]byte{
		(&hello{lowest: 1, highest: 3, token: "t", program: "p", games: []gameInfo{{"n", "b", 15, 32}, {}}}).append(nil),
		(&refused{fault: true, text: "no"}).append(nil),
		(&done{tick: math.MaxUint64, ignored: 3, hash: make([]byte, 32)}).append(nil),
		(&failed{tick: 1, at: 2, step: 3, code: 4, phase: 2, ignored: 5, text: "why"}).append(nil),
		(&broken{tick: 1, text: "why"}).append(nil),
		(&saved{state: []byte("state")}).append(nil),
		(&fields{list: []player.Field{{Name: "a", Value: "1"}, {}}}).append(nil),
		(&welcome{version: 1}).append(nil),
		(&reset{game: 2, start: fullStart()}).append(nil),
		(&flush{mode: flushFinal}).append(nil),
		(&load{next: 5, state: []byte("state")}).append(nil),
		(&identity{data: []string{"d1", ""}}).append(nil),
	}
	for _, e := range []messageType{typeReady, typeFlushed, typeSave, typeDump, typeBye, typeIdentify} {
		list = append(list, appendEmpty(nil, e))
	}
	var w tickWriter
	for _, v := range values() {
		if v.Len() > 1000 {
			continue
		}
		message, err := w.append(nil, &playtest.NewScript(t).One(9, v, v).Ticks[0], true)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, message)
	}
	return list
}

// reread reads one framed message, and gives what it is written as again.
func reread(frame []byte) ([]byte, error) {
	t, body, err := newFrameReader(bytes.NewReader(frame)).next()
	if err != nil {
		return nil, err
	}
	m := newMessage(t)
	if err := m.parse(body); err != nil {
		return nil, err
	}
	return m.append(nil), nil
}

func TestMessagesAreReadAsWritten(t *testing.T) {
	seen := map[messageType]bool{}
	for _, frame := range samples(t) {
		seen[messageType(frame[lengthBytes])] = true
		again, err := reread(frame)
		if err != nil || !bytes.Equal(again, frame) {
			t.Errorf("%x is read as %x, %v", frame, again, err)
		}
	}
	for messageType := range messages {
		if !seen[messageType] {
			t.Errorf("no sample of %q", messageType)
		}
	}
}

func TestMessagesCutAnywhere(t *testing.T) {
	for _, frame := range samples(t) {
		kind := messageType(frame[lengthBytes])
		for n := range frame {
			_, _, err := newFrameReader(bytes.NewReader(frame[:n])).next()
			if want := map[bool]error{true: io.EOF, false: io.ErrUnexpectedEOF}[n == 0]; err != want {
				t.Fatalf("%q of %d bytes after %d: %v", kind, len(frame), n, err)
			}
		}
		for n := range len(frame) - frameHead {
			if err := newMessage(kind).parse(frame[frameHead : frameHead+n]); !errors.Is(err, errBad) {
				t.Fatalf("the body of %q after %d bytes: %v", kind, n, err)
			}
		}
		long := append(bytes.Clone(frame[frameHead:]), 0)
		if err := newMessage(kind).parse(long); !errors.Is(err, errBad) {
			t.Errorf("%q with a byte more: %v", kind, err)
		}
	}
}

// Every length and count of every message is set to values that lie.
func TestLengthsThatLie(t *testing.T) {
	for _, frame := range samples(t) {
		kind := messageType(frame[lengthBytes])
		for at := frameHead; at+4 <= len(frame); at++ {
			for _, lie := range []uint32{1 << 31, 1<<32 - 1, 1 << 20} {
				body := bytes.Clone(frame[frameHead:])
				order.PutUint32(body[at-frameHead:], lie)
				m := newMessage(kind)
				allocated := testing.AllocsPerRun(1, func() {
					// Where the bytes were no length, the message may be good.
					_ = m.parse(body)
				})
				if allocated > 1000 {
					t.Fatalf("%q with %d at byte %d: %v allocations", kind, lie, at, allocated)
				}
			}
		}
	}
}

func TestBadValues(t *testing.T) {
	value := func(kind byte, payload ...byte) []byte {
		body := make([]byte, 0, 64)
		body = order.AppendUint64(body, 0)
		body = append(body, 0, 1, 0, 0, 0, 5, 0, 1, 0, 0, 0, kind)
		return append(body, payload...)
	}
	eight := func(v uint64) []byte { return order.AppendUint64(nil, v) }
	for name, c := range map[string]struct {
		body []byte
		want string
	}{
		"kind 0":            {value(0, 0), "kind 0"},
		"kind 10":           {value(10, 0), "kind 10"},
		"flag of 2":         {value(kindBool, 2), "a boolean is 2, not 0 or 1"},
		"another NaN":       {value(kindFloat, eight(0x7ff8000000000001)...), "a NaN with the bits"},
		"big with zeros":    {value(kindBig, 0, 2, 0, 0, 0, 1, 0), "zeros at its top"},
		"negative zero":     {value(kindBig, 1, 0, 0, 0, 0), "negative zero"},
		"big of 256 bytes":  {value(kindBig, append([]byte{0, 0, 1, 0, 0}, bytes.Repeat([]byte{1}, 256)...)...), "2^2040"},
		"high that is not":  {value(kindHigh, eight(math.MaxInt64)...), "which another kind holds"},
		"low that is not":   {value(kindLow, eight(1<<63)...), "which another kind holds"},
		"list without end":  {value(kindInts, 255, 255, 255, 255), "list elements do not fit"},
		"text without end":  {value(kindText, 255, 255, 255, 255), "a text has 4294967295 bytes"},
		"code book, absent": {bookless(), "1 codes without a code book"},
	} {
		var m message = new(tickParser)
		if strings.HasPrefix(name, "code book") {
			m = new(reset)
		}
		if err := m.parse(c.body); !errors.Is(err, errBad) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
	many := value(kindBool, 1)
	order.PutUint32(many[15:], 256)
	many = append(many, bytes.Repeat([]byte{kindBool, 1}, 255)...)
	if err := new(tickParser).parse(many); err == nil || !strings.Contains(err.Error(), "256 parameters") {
		t.Errorf("256 parameters: %v", err)
	}
}

// bookless is a reset with a code but without a code book.
func bookless() []byte {
	start := player.Start{Meta: &format.Metadata{}, Book: &format.CodeBook{Codes: []format.CodeInfo{{}}}}
	body := (&reset{start: start}).append(nil)[frameHead:]
	body[len(body)-leastCode-4-1] = 0
	return body
}

func TestFramesArriveInPieces(t *testing.T) {
	var stream []byte
	list := samples(t)
	large := (&saved{state: bytes.Repeat([]byte{7}, 3*readBuffer)}).append(nil)
	list = append(list, large, list[0])
	for _, frame := range list {
		stream = append(stream, frame...)
	}
	frames := newFrameReader(iotest.OneByteReader(bytes.NewReader(stream)))
	for i, want := range list {
		kind, body, err := frames.next()
		if err != nil || kind != messageType(want[lengthBytes]) || !bytes.Equal(body, want[frameHead:]) {
			t.Fatalf("message %d is a %q of %d bytes, %v", i, kind, len(body), err)
		}
	}
	if _, _, err := frames.next(); err != io.EOF {
		t.Errorf("behind the last message: %v", err)
	}
}

func TestTickLargerThanAMessage(t *testing.T) {
	// 300,000 one-byte list elements are eight times as large here; eight
	// such lists do not fit.
	list := format.Ints(make([]int64, 300_000))
	record := playtest.NewScript(t).One(1, list, list, list).Ticks[0]
	var w tickWriter
	if _, err := w.append(nil, &record, true); err != nil {
		t.Errorf("the largest tick that a replay holds: %v", err)
	}
	params, err := format.AppendParam(nil, list)
	if err != nil {
		t.Fatal(err)
	}
	record = format.TickRecord{Width: format.Width8, Steps: 1, Commands: []byte{8, 1}, Params: bytes.Repeat(params, 8)}
	if out, err := w.append([]byte("kept"), &record, true); !errors.Is(err, format.ErrLimit) || string(out) != "kept" {
		t.Errorf("a larger one: %v, %d bytes", err, len(out))
	}
}

func FuzzMessage(f *testing.F) {
	for _, frame := range samples(f) {
		f.Add(frame)
	}
	f.Fuzz(func(t *testing.T, frame []byte) {
		again, err := reread(frame)
		if err != nil {
			return
		}
		if length := len(again); length > len(frame) || !bytes.Equal(again, frame[:length]) {
			t.Errorf("%x is read and written as %x", frame, again)
		}
	})
}

// FuzzServer gives a child's side whatever a host might send.
func FuzzServer(f *testing.F) {
	var all []byte
	for _, frame := range samples(f) {
		f.Add(frame)
		all = append(all, frame...)
	}
	f.Add(all)
	f.Fuzz(func(t *testing.T, sent []byte) {
		stream := append((&welcome{version: 1}).append(nil), sent...)
		out := &exchange{in: bytes.NewReader(stream)}
		err := newServer(out, []player.Linked{gentleFactory(), turnsFactory()}).run("token")
		frames := newFrameReader(&out.out)
		for {
			kind, body, readErr := frames.next()
			if readErr == io.EOF {
				break
			}
			if readErr != nil {
				t.Fatalf("the answers cannot be read: %v (the server's error is %v)", readErr, err)
			}
			if err := newMessage(kind).parse(body); err != nil {
				t.Fatalf("answer %q: %v", kind, err)
			}
		}
	})
}

// gentle is a counter that never sleeps, exits or panics.
type gentle struct{ counter }

func gentleFactory() player.Factory {
	return player.Factory{Name: "gentle", Build: "1", New: func() player.Game { return new(gentle) }}
}

func (g *gentle) Step(tick format.Tick, step format.Step) (player.Result, error) {
	switch step.Code {
	case codePanic, codeSleep, codeExit:
		return player.Ignored, nil
	}
	return g.counter.Step(tick, step)
}

// exchange is a connection whose other side has said everything.
type exchange struct {
	in  *bytes.Reader
	out bytes.Buffer
}

func (e *exchange) Read(p []byte) (int, error)  { return e.in.Read(p) }
func (e *exchange) Write(p []byte) (int, error) { return e.out.Write(p) }
