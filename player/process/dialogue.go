package process

import (
	"fmt"

	"reprise/format"
	"reprise/player"
)

// Dialogue is a host's side of the protocol without the socket: it writes
// messages and reads the answers, however they travel. Every message has one
// answer, so games that look ahead are refused.
type Dialogue struct {
	// Build is a name for the build of every game that is offered, beside
	// the one that the simulation gives; empty means none.
	Build string
	// AnyGame plays replays of other games and builds than the offered.
	AnyGame bool

	hello  hello
	game   *gameInfo
	width  int
	writer tickWriter
	due    expectation
	done   done
}

// HeadBytes is the size of a message's head.
const HeadBytes = frameHead

// MessageLength gives the length of a message, its head included, from the
// head.
func MessageLength(head []byte) (int, error) {
	if len(head) < frameHead {
		return 0, fmt.Errorf("%w: a head of %d bytes", errBad, len(head))
	}
	length, t := order.Uint32(head), messageType(head[lengthBytes])
	info, known := messages[t]
	switch {
	case !known:
		return 0, badMessage(t, errUnknown)
	case length == 0 || uint64(length) > uint64(info.most):
		return 0, badMessage(t, fmt.Errorf("%w: length %d, from 1 to %d is good", errBad, length, info.most))
	}
	return lengthBytes + int(length), nil
}

// splitMessage gives the type and the body of a message.
func splitMessage(message []byte) (messageType, []byte, error) {
	length, err := MessageLength(message)
	if err != nil {
		return 0, nil, err
	}
	if length != len(message) {
		return 0, nil, fmt.Errorf("%w: its length is %d, it has %d bytes", errBad, length, len(message))
	}
	return messageType(message[lengthBytes]), message[frameHead:], nil
}

// AppendWelcome appends the first message.
func (d *Dialogue) AppendWelcome(dst []byte) []byte {
	return (&welcome{version: messageVersion}).append(dst)
}

// TakeHello reads the answer to the welcome.
func (d *Dialogue) TakeHello(answer []byte) error {
	t, body, err := splitMessage(answer)
	if err == nil && t != typeHello {
		err = errOutOfPlace
	}
	if err == nil {
		err = d.hello.parse(body)
	}
	if err == nil {
		err = d.hello.check(messageVersion)
	}
	if err != nil {
		return badMessage(typeHello, err)
	}
	return nil
}

// Program is what the simulation says of itself.
func (d *Dialogue) Program() string { return printable(d.hello.program) }

// Offers gives the games that the simulation offers.
func (d *Dialogue) Offers() []Offer { return d.hello.offers() }

// AppendReset appends the message that starts a replay, with the offered game
// that recorded it. The error is a player.GameMissingError or
// BuildMismatchError, or matches player.ErrStart.
func (d *Dialogue) AppendReset(dst []byte, start player.Start) ([]byte, error) {
	position, err := d.Choose(start.Meta)
	if err != nil {
		return dst, err
	}
	message := (&reset{game: uint32(position), start: start}).append(dst)
	if length := len(message) - len(dst); length > mostStateLength {
		return dst, fmt.Errorf("%q of %d bytes, the most is %d: %w", typeReset, length, mostStateLength, format.ErrLimit)
	}
	return message, nil
}

// Choose picks the offered game for a replay, as AppendReset does, and gives
// its position.
func (d *Dialogue) Choose(meta *format.Metadata) (int, error) {
	position, err := d.hello.choose(meta, d.Build, d.AnyGame)
	if err != nil {
		return 0, err
	}
	d.game = &d.hello.games[position]
	if d.game.abilities.has(looksFar) {
		return 0, fmt.Errorf("%w: game %q looks ahead, which only a simulation in a process can", player.ErrStart, d.game.name)
	}
	d.width, err = d.game.hashWidth(meta)
	return position, err
}

// TakeReady reads the answer to a reset. The error matches player.ErrStart
// where the game refuses the replay, and else says what was wrong.
func (d *Dialogue) TakeReady(answer []byte) error {
	_, err := takeReply(answer, typeReset, typeReady)
	return err
}

// AppendTick appends a tick.
func (d *Dialogue) AppendTick(dst []byte, t *format.TickRecord, wantHash bool) ([]byte, error) {
	d.due = expectation{tick: t.Tick, steps: t.Steps, asked: wantHash}
	return d.writer.append(dst, t, wantHash)
}

// TakeTick reads the answer to a tick. The outcome refers to the answer.
func (d *Dialogue) TakeTick(answer []byte) (player.Outcome, error) {
	t, body, err := splitMessage(answer)
	if err != nil {
		return player.Outcome{}, err
	}
	switch t {
	case typeDone:
		return d.takeDone(body)
	case typeFailed:
		return d.takeFailed(body)
	case typeBroken:
		var b broken
		if err := b.parse(body); err != nil {
			return player.Outcome{}, badMessage(t, err)
		}
		return player.Outcome{}, b.failure()
	}
	return player.Outcome{}, badMessage(t, errOutOfPlace)
}

func (d *Dialogue) takeDone(body []byte) (player.Outcome, error) {
	err := d.done.parse(body)
	if err == nil {
		err = d.due.checkDone(&d.done, d.width)
	}
	if err != nil {
		return player.Outcome{}, badMessage(typeDone, err)
	}
	o := player.Outcome{Tick: d.done.tick, Ignored: int(d.done.ignored)}
	if d.due.asked {
		o.Hash = d.done.hash
	}
	return o, nil
}

func (d *Dialogue) takeFailed(body []byte) (player.Outcome, error) {
	var f failed
	err := f.parse(body)
	if err == nil {
		err = d.due.checkFailed(&f, false)
	}
	if err != nil {
		return player.Outcome{}, badMessage(typeFailed, err)
	}
	return player.Outcome{Tick: f.tick, Ignored: int(f.ignored), Failure: f.failure()}, nil
}

// CanDump reports whether the game of the present replay can.
func (d *Dialogue) CanDump() bool { return d.game != nil && d.game.abilities.has(canDump) }

// AppendDump appends the question for every field of the state.
func (d *Dialogue) AppendDump(dst []byte) []byte { return appendEmpty(dst, typeDump) }

// TakeFields reads the answer to it.
func (d *Dialogue) TakeFields(answer []byte) ([]player.Field, error) {
	r, err := takeReply(answer, typeDump, typeFields)
	if err != nil {
		return nil, err
	}
	return r.fields, nil
}

// takeReply reads the answer to a request.
func takeReply(answer []byte, request, want messageType) (*reply, error) {
	t, body, err := splitMessage(answer)
	if err != nil {
		return nil, err
	}
	if t != want && t != typeRefused {
		return nil, badMessage(t, errOutOfPlace)
	}
	r, err := parseReply(t, body)
	if err != nil {
		return nil, badMessage(t, err)
	}
	return r, r.refusal(request)
}
