package process

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"reprise/format"
	"reprise/player"
	"reprise/player/games/skirmish"
	"reprise/player/internal/playtest"
)

func init() {
	children["data"] = func() {
		known := skirmish.Factory()
		known.Data = "d1"
		Serve(counterFactory(), known)
	}
	identities := map[string]func(r *rude){
		"no identity":    func(*rude) {},
		"refuses it":     func(r *rude) { r.send((&refused{text: "a secret"}).append(nil)) },
		"of two games":   func(r *rude) { r.send((&identity{data: []string{"a", "b"}}).append(nil)) },
		"of no game":     func(r *rude) { r.send((&identity{}).append(nil)) },
		"ready instead":  func(r *rude) { r.send(appendEmpty(nil, typeReady)) },
		"cut identity":   func(r *rude) { r.send([]byte{5, 0, 0, 0, byte(typeIdentity), 9, 0, 0, 0}) },
		"ends before it": func(*rude) { os.Exit(6) },
	}
	for name, answer := range identities {
		faults[name] = func() {
			r := connect()
			r.hello(func(h *hello) { h.highest = 2 })
			r.until(typeIdentify)
			answer(r)
			time.Sleep(forever)
		}
	}
}

// TestDataOfTheChild: a replay recorded with other data is refused before its
// first tick; what either side does not tell is not compared.
func TestDataOfTheChild(t *testing.T) {
	child := open(t, quick("data"))
	if offers := child.Offers(); len(offers) != 2 || offers[0].Data != "" || offers[1].Data != "d1" {
		t.Fatalf("offers are %+v", offers)
	}
	start, _ := playtest.Skirmish(t, 10)
	for data, refused := range map[string]bool{"d1": false, "": false, "d2": true} {
		start.Meta.Data = data
		err := child.Reset(start)
		var mismatch *player.DataMismatchError
		switch {
		case !refused && err != nil:
			t.Errorf("data %q: %v", data, err)
		case refused && (!errors.As(err, &mismatch) || mismatch.Recorded != "d2" || len(mismatch.Present) != 1 || mismatch.Present[0] != "d1"):
			t.Errorf("data %q: %v", data, err)
		}
	}
	o := quick("data")
	o.AnyGame = true
	start.Meta.Data = "d2"
	if err := open(t, o).Reset(start); err != nil {
		t.Errorf("of any data: %v", err)
	}
	meta := counterMeta()
	meta.Data = "d9"
	if err := child.Reset(player.Start{Meta: meta}); err != nil {
		t.Errorf("a game that does not tell its data: %v", err)
	}
}

func TestChildTellsNoIdentity(t *testing.T) {
	for child, want := range map[string]string{
		"no identity":    "simulation did not answer within 200ms",
		"refuses it":     `"identify": a secret`,
		"of two games":   "the data of 2 games, of 1",
		"of no game":     "the data of 0 games, of 1",
		"ready instead":  `"ready": bad message: out of place`,
		"cut identity":   `"identity": bad message`,
		"ends before it": "exit status 6",
	} {
		t.Run(child, func(t *testing.T) {
			before := countRunning()
			s, err := New(context.Background(), command(), hasty(child))
			if s != nil || err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v\nwant %s", err, want)
			}
			noLeak(t, before)
		})
	}
}

// pipe is the host's side of a server, with all of the host's messages ready.
type pipe struct {
	in  bytes.Reader
	out bytes.Buffer
}

func (p *pipe) Read(b []byte) (int, error)  { return p.in.Read(b) }
func (p *pipe) Write(b []byte) (int, error) { return p.out.Write(b) }

// TestServerSpeaksBothVersions: to a host of version 1 it is a simulation of
// version 1, to the letter.
func TestServerSpeaksBothVersions(t *testing.T) {
	for version, known := range map[uint16]bool{0: false, 1: true, 2: true, 3: false} {
		p := &pipe{}
		messages := (&welcome{version: version}).append(nil)
		p.in.Reset(append(messages, appendEmpty(nil, typeIdentify)...))
		f := counterFactory()
		f.Data = "d1"
		err := newServer(p, []player.Linked{f}).run("token")
		frames := newFrameReader(&p.out)
		kind, body, helloErr := frames.next()
		var h hello
		if kind != typeHello || helloErr != nil || h.parse(body) != nil || h.lowest != 1 || h.highest != 2 {
			t.Fatalf("hello: %v, %v", kind, helloErr)
		}
		kind, body, _ = frames.next()
		var i identity
		switch {
		case !known && (err == nil || kind != 0):
			t.Errorf("version %d: answered %v, %v", version, kind, err)
		case version == 1 && (!errors.Is(err, errBad) || kind != typeBroken):
			t.Errorf("version 1: answered %v, %v", kind, err)
		case version == 2 && (err != nil || kind != typeIdentity || i.parse(body) != nil || len(i.data) != 1 || i.data[0] != "d1"):
			t.Errorf("version 2: answered %v, %v", kind, err)
		}
	}
}

// TestModulesSpeakTheFirstVersion: a handler without a socket is as it was.
func TestModulesSpeakTheFirstVersion(t *testing.T) {
	handler := NewHandler("program", counterFactory())
	var d Dialogue
	answer := handler.Handle(d.AppendWelcome(nil))
	if err := d.TakeHello(answer); err != nil || d.hello.highest != 1 {
		t.Errorf("hello %+v: %v", d.hello, err)
	}
	if answer := handler.Handle(appendEmpty(nil, typeIdentify)); messageType(answer[lengthBytes]) != typeBroken {
		t.Errorf("identify is answered with %v", messageType(answer[lengthBytes]))
	}
	if _, err := d.Choose(&format.Metadata{Game: "counter", Build: "1", Data: "d", HashBytes: 8}); err != nil {
		t.Errorf("a module that tells no data: %v", err)
	}
}
