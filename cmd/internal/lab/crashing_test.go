package lab

import (
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"reprise/format"
	"reprise/recorder"
	"reprise/transport"
)

// A crashing daemon is a recorder behind a server, on a disk that kills it.
// Its intervals are short, so that everything happens all the time.

// crashingMain runs until it is killed.
func crashingMain(args []string) int {
	var o crashingOptions
	if err := o.parse(args); err != nil {
		return 2
	}
	if err := o.run(); err != nil {
		fmt.Fprintf(os.Stderr, "crashing daemon: %v\n", err)
		return 3
	}
	select {}
}

type crashingOptions struct {
	data, tls, listen string
	k                 int64
}

func (o *crashingOptions) args() []string {
	return []string{"-data", o.data, "-tls", o.tls, "-listen", o.listen, "-k", fmt.Sprint(o.k)}
}

func (o *crashingOptions) parse(args []string) error {
	f := flag.NewFlagSet("crashing daemon", flag.ContinueOnError)
	f.StringVar(&o.data, "data", "", "")
	f.StringVar(&o.tls, "tls", "", "")
	f.StringVar(&o.listen, "listen", "", "")
	f.Int64Var(&o.k, "k", 0, "")
	return f.Parse(args)
}

func (o *crashingOptions) run() error {
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	pair, err := transport.SelfSigned(o.tls)
	if err != nil {
		return err
	}
	disk := &killDisk{k: o.k}
	cfg := crashingConfig(o.data)
	cfg.FS, cfg.Log = disk, log
	r, err := recorder.Open(cfg)
	if err != nil {
		return err
	}
	reset := sha256.Sum256([]byte(o.listen))
	s, err := transport.Listen(o.listen, pair.Config(), transport.Config{Recorder: shelf{r}, ResetKey: &reset, Log: log})
	if err != nil {
		return err
	}
	fmt.Printf("ready on %v, fingerprint %v\n", s.Addr(), pair.Fingerprint())
	go disk.report()
	return nil
}

// report prints again and again how many operations there were so far.
func (d *killDisk) report() {
	for range time.Tick(20 * time.Millisecond) {
		fmt.Println(d.done.Load())
	}
}

// shortTimeout is after how long a session without its client ends as
// unfinished.
const shortTimeout = 200 * time.Millisecond

func crashingConfig(data string) recorder.Config {
	return recorder.Config{Dir: data, SegmentBytes: 256 << 10, Segments: 2, MaxSegments: 4, CheckpointBytes: 16 << 10, CheckpointInterval: 30 * time.Millisecond,
		FileInterval: 10 * time.Millisecond, TailBytes: 2 << 10, FlushInterval: time.Millisecond, SessionWindow: 32 << 10, ResumeTimeout: shortTimeout}
}

// shelf is a recorder as the server sees it.
type shelf struct{ r *recorder.Recorder }

func (s shelf) Open(req transport.OpenRequest, sink transport.Sink) (transport.Session, transport.OpenReply, error) {
	session, r, err := s.r.OpenSession(recorder.OpenRequest{ID: req.Session, Producer: req.Key, Epoch: req.Epoch, Opening: req.Opening,
		Notify: func(a recorder.Ack) { tell(sink, a) }})
	reply := transport.OpenReply{Received: r.Received, Durable: r.Durable, DurableTick: r.DurableTick, Totals: r.Totals, Window: int(r.Window)}
	if r.Sealed != nil && r.Sealed.State == format.EndSealed {
		sink.Sealed(r.Sealed.Digest, filepath.Base(r.Sealed.File))
		return shelved{}, reply, nil
	}
	return shelved{session}, reply, onWire(err)
}

func tell(sink transport.Sink, a recorder.Ack) {
	sink.Ack(a.Received, a.Durable, a.DurableTick)
	var refusal *transport.Refusal
	switch {
	case a.Sealed != nil && a.Sealed.State == format.EndSealed:
		sink.Sealed(a.Sealed.Digest, filepath.Base(a.Sealed.File))
	case a.Err != nil && errors.As(onWire(a.Err), &refusal):
		sink.Failed(*refusal)
	}
}

type shelved struct{ s *recorder.Session }

func (k shelved) Append(chunk []byte) error { return onWire(k.s.Append(chunk)) }

func (k shelved) Seal(t format.Totals) error { return onWire(k.s.Seal(t)) }

func (k shelved) Detach() {
	if k.s != nil {
		k.s.Detach()
	}
}

// onWire gives refusals that pass a code after which the client tries again.
// The others end the session, with their text.
func onWire(err error) error {
	var r *recorder.Refusal
	if !errors.As(err, &r) {
		return err
	}
	code := transport.CodeConflict
	switch r.Code {
	case recorder.CodeWindow, recorder.CodeBusy:
		code = transport.CodeUnavailable
	case recorder.CodeFenced:
		code = transport.CodeFenced
	}
	return &transport.Refusal{Code: code, Text: r.Error()}
}
