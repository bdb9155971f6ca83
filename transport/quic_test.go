package transport

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quic-go/quic-go"

	"reprise/transport/roughnet"
)

func TestMain(m *testing.M) {
	// The tests do not need large socket buffers.
	os.Setenv("QUIC_GO_DISABLE_RECEIVE_BUFFER_WARNING", "true")
	if plan := os.Getenv(gamePlanVariable); plan != "" {
		playGame(plan)
		return
	}
	os.Exit(m.Run())
}

// keypair makes a certificate for one test.
func keypair(t testing.TB) *Keypair {
	t.Helper()
	k, err := SelfSigned(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// listen starts a daemon on loopback; addr may name the port.
func listen(t testing.TB, k *Keypair, addr string, cfg Config) *Server {
	t.Helper()
	var s *Server
	var err error
	eventually(t, "listening on "+addr, func() bool {
		s, err = Listen(addr, k.Config(), cfg)
		return err == nil || !strings.Contains(err.Error(), "in use")
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func trust(t testing.TB, k *Keypair) *tls.Config {
	t.Helper()
	cfg, err := Trust{Pin: k.Fingerprint().String()}.Config()
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

func dialServer(t testing.TB, addr string, cfg ClientConfig) *Client {
	t.Helper()
	c, err := Dial(context.Background(), []string{addr}, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// eventually waits for a condition, up to ten seconds.
func eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !is(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited 10 s for: %s", what)
		}
	}
}

// rig is a client and a daemon over QUIC, with a bad network between.
type rig struct {
	t   *testing.T
	rec *fakeRecorder
	k   *Keypair
	s   *Server
	p   *roughnet.Proxy
	c   *Client
	r   *Recording
	e   expected
}

func newRig(t *testing.T, cfg ClientConfig) *rig {
	x := &rig{t: t, rec: newFakeRecorder(), k: keypair(t), e: expected{first: 10}}
	x.s = listen(t, x.k, "127.0.0.1:0", Config{Recorder: x.rec, Silence: 2 * time.Second})
	x.p = roughnet.NewProxy(t, x.s.Addr().String(), 1, roughnet.Weather{})
	cfg.TLS = trust(t, x.k)
	x.c = dialServer(t, x.p.Addr().String(), cfg)
	r, err := x.c.Open(spec("match-1"))
	if err != nil {
		t.Fatal(err)
	}
	x.r = r
	return x
}

// play records ticks over a time.
func (x *rig) play(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		x.e.play(x.t, x.r, 10)
	}
}

// durable waits until all is durable.
func (x *rig) durable() {
	x.t.Helper()
	if err := x.r.Wait(within(x.t, 10*time.Second), x.e.next()-1); err != nil {
		x.t.Fatal(err)
	}
}

// seal seals, compares, and closes the client.
func (x *rig) seal() {
	x.t.Helper()
	if err := x.r.Seal(within(x.t, 10*time.Second)); err != nil {
		x.t.Fatal(err)
	}
	f, err := x.rec.stored("match-1")
	if err != nil {
		x.t.Fatal(err)
	}
	x.e.compare(x.t, f)
	if err := x.c.Close(within(x.t, 10*time.Second)); err != nil {
		x.t.Error(err)
	}
}

// finish seals, compares, and checks that the daemon is left with nothing.
func (x *rig) finish() {
	x.t.Helper()
	x.seal()
	eventually(x.t, "no connections", func() bool { return x.s.Stats().Connections == 0 && x.s.Stats().Handshakes == 0 })
}

func TestQUIC(t *testing.T) {
	before := runtime.NumGoroutine()
	t.Run("", func(t *testing.T) {
		x := newRig(t, ClientConfig{})
		x.play(200 * time.Millisecond)
		x.finish()
		if st := x.s.Stats(); st.Sealed != 1 || st.Malformed != 0 {
			t.Errorf("%+v", st)
		}
	})
	eventually(t, "no goroutines left", func() bool { return runtime.NumGoroutine() <= before })
}

func TestBadNetwork(t *testing.T) {
	t.Parallel()
	x := newRig(t, ClientConfig{})
	x.p.Set(func(w *roughnet.Weather) { w.Lost, w.Twice, w.Jitter = 0.05, 0.05, 20*time.Millisecond })
	x.play(time.Second)
	x.p.Set(func(w *roughnet.Weather) { w.Lost = 0.02 })
	x.finish()
	if n := x.c.Stats().Connects; n != 1 {
		t.Errorf("%d connections: QUIC should have got over it", n)
	}
}

// A NAT that gives the client another port does not end the connection.
func TestPortChange(t *testing.T) {
	t.Parallel()
	x := newRig(t, ClientConfig{})
	x.play(200 * time.Millisecond)
	for range 3 {
		x.p.Move(t)
		x.play(200 * time.Millisecond)
		x.durable()
	}
	if n := x.c.Stats().Connects; n != 1 {
		t.Errorf("%d connections", n)
	}
	x.finish()
}

// Even while no tick is recorded, the daemon learns of the new port.
func TestPortChangeWhileQuiet(t *testing.T) {
	t.Parallel()
	x := newRig(t, ClientConfig{DeadAfter: time.Second})
	x.play(100 * time.Millisecond)
	x.durable()
	x.p.Move(t)
	time.Sleep(1500 * time.Millisecond)
	if st := x.c.Stats(); st.Connects != 1 || !st.Connected {
		t.Errorf("%+v", st)
	}
	x.finish()
}

func TestBlackout(t *testing.T) {
	t.Parallel()
	x := newRig(t, ClientConfig{DeadAfter: 500 * time.Millisecond, DialTimeout: 500 * time.Millisecond, Background: true})
	eventually(t, "connected", func() bool { return x.c.Stats().Connected })
	x.play(200 * time.Millisecond)
	x.p.Set(func(w *roughnet.Weather) { w.Dark = true })
	x.play(time.Second)
	x.p.Set(func(w *roughnet.Weather) { w.Dark = false })
	x.play(200 * time.Millisecond)
	x.durable()
	if n := x.c.Stats().Connects; n < 2 {
		t.Errorf("%d connections", n)
	}
	x.finish()
}

// A daemon that is killed and comes back on its port: nothing is lost or
// doubled. With a reset key the client learns at once.
func TestKilledDaemon(t *testing.T) {
	t.Parallel()
	rec, k := newFakeRecorder(), keypair(t)
	rec.delay = 100 * time.Millisecond
	key := [32]byte{1}
	cfg := Config{Recorder: rec, ResetKey: &key}
	s := listen(t, k, "127.0.0.1:0", cfg)
	c := dialServer(t, s.Addr().String(), ClientConfig{TLS: trust(t, k), DeadAfter: 8 * time.Second})
	r, err := c.Open(spec("match-1"))
	if err != nil {
		t.Fatal(err)
	}
	x := &rig{t: t, rec: rec, k: k, c: c, r: r, e: expected{first: 10}}
	x.play(500 * time.Millisecond)
	addr := s.Addr().String()
	s.conn.Close() // no goodbye
	s.transport.Close()
	s.cutOff()
	rec.crash()
	x.play(200 * time.Millisecond)
	x.s = listen(t, k, addr, cfg)
	back := time.Now()
	x.play(100 * time.Millisecond)
	x.durable()
	if d := time.Since(back); d > 4*time.Second {
		t.Errorf("durable %v after the daemon came back", d)
	}
	x.finish()
}

// SIGTERM while the client is streaming: the daemon drains.
func TestShutdownQUIC(t *testing.T) {
	t.Parallel()
	x := newRig(t, ClientConfig{})
	x.rec.mu.Lock()
	x.rec.delay = 50 * time.Millisecond
	x.rec.mu.Unlock()
	x.play(300 * time.Millisecond)
	addr := x.s.Addr().String()
	if err := x.s.Shutdown(within(t, 5*time.Second)); err != nil {
		t.Error(err)
	}
	x.rec.mu.Lock()
	if s := x.rec.sessions["match-1"]; s.durable != s.received || x.rec.attached != x.rec.detached {
		t.Errorf("%d chunks received, %d durable; %d attached, %d detached", s.received, s.durable, x.rec.attached, x.rec.detached)
	}
	x.rec.mu.Unlock()
	x.play(200 * time.Millisecond)
	x.s = listen(t, x.k, addr, Config{Recorder: x.rec})
	x.finish()
}

func TestThousandSessions(t *testing.T) {
	t.Parallel()
	rec, k := newFakeRecorder(), keypair(t)
	s := listen(t, k, "127.0.0.1:0", Config{Recorder: rec})
	c := dialServer(t, s.Addr().String(), ClientConfig{TLS: trust(t, k)})
	const sessions = 1000
	rs, es := make([]*Recording, sessions), make([]expected, sessions)
	for i := range rs {
		r, err := c.Open(spec(fmt.Sprintf("match-%d", i)))
		if err != nil {
			t.Fatal(err)
		}
		rs[i], es[i] = r, expected{first: 10}
	}
	for range 10 {
		for i, r := range rs {
			es[i].play(t, r, 3)
		}
	}
	var sealing sync.WaitGroup
	for _, r := range rs {
		sealing.Go(func() {
			if err := r.Seal(within(t, 20*time.Second)); err != nil {
				t.Error(err)
			}
		})
	}
	sealing.Wait()
	for i := range rs {
		f, err := rec.stored(rs[i].ID())
		if err != nil {
			t.Fatal(err)
		}
		es[i].compare(t, f)
	}
	if st := s.Stats(); st.Sealed != sessions || st.Sessions != 0 || c.Stats().Connects != 1 {
		t.Errorf("%+v, %+v", st, c.Stats())
	}
	if err := c.Close(within(t, 5*time.Second)); err != nil {
		t.Error(err)
	}
}

// Handshakes that never finish stay below the cap, and a running session
// does not feel them.
func TestHandshakeFlood(t *testing.T) {
	t.Parallel()
	rec, k := newFakeRecorder(), keypair(t)
	const most = 16
	s := listen(t, k, "127.0.0.1:0", Config{Recorder: rec, MaxHandshakes: most, HelloTimeout: time.Second})
	c := dialServer(t, s.Addr().String(), ClientConfig{TLS: trust(t, k)})
	r, err := c.Open(spec("match-1"))
	if err != nil {
		t.Fatal(err)
	}
	x := &rig{t: t, rec: rec, s: s, c: c, r: r, e: expected{first: 10}}

	mute := roughnet.NewProxy(t, s.Addr().String(), 1, roughnet.Weather{DarkBack: true})
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	udp, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer udp.Close()
	transport := &quic.Transport{Conn: udp}
	defer transport.Close()
	var dials sync.WaitGroup
	for range 200 {
		dials.Go(func() {
			if conn, err := transport.Dial(ctx, mute.Addr(), trust(t, k), clientQUIC(time.Second, time.Second)); err == nil {
				conn.CloseWithError(0, "")
				t.Error("a handshake succeeded though nothing comes back")
			}
		})
	}
	seen := 0
	for ctx.Err() == nil {
		n := s.Stats().Handshakes
		if n > most {
			t.Fatalf("%d handshakes, the most is %d", n, most)
		}
		seen = max(seen, n)
		x.e.play(t, r, 1)
		time.Sleep(time.Millisecond)
	}
	if seen == 0 {
		t.Error("no handshake was seen")
	}
	x.durable()
	dials.Wait()
	if n := c.Stats().Connects; n != 1 {
		t.Errorf("%d connections", n)
	}
	x.finish()
}

// From an eighth of the cap on clients must prove their address; at the cap
// none is let in, and a handshake that ends makes room.
func TestAdmission(t *testing.T) {
	s := newServer(Config{Recorder: newFakeRecorder(), MaxHandshakes: 16})
	var cancels []context.CancelFunc
	for i := range 16 {
		if must := s.mustProveAddress(nil); must != (i >= 2) {
			t.Errorf("with %d handshakes: prove %v", i, must)
		}
		ctx, cancel := context.WithCancel(context.Background())
		cancels = append(cancels, cancel)
		if _, err := s.admit(ctx, nil); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.admit(t.Context(), nil); err == nil || s.Stats().RefusedConnections != 1 || s.Stats().Handshakes != 16 {
		t.Errorf("%v, %+v", err, s.Stats())
	}
	for _, cancel := range cancels {
		cancel()
	}
	eventually(t, "no handshakes", func() bool { return s.Stats().Handshakes == 0 })
	if _, err := s.admit(t.Context(), nil); err != nil {
		t.Error(err)
	}
}

func TestConnectionLimit(t *testing.T) {
	rec, k := newFakeRecorder(), keypair(t)
	s := listen(t, k, "127.0.0.1:0", Config{Recorder: rec, MaxConnections: 1})
	c := dialServer(t, s.Addr().String(), ClientConfig{TLS: trust(t, k)})
	if _, err := Dial(t.Context(), []string{s.Addr().String()}, ClientConfig{TLS: trust(t, k)}); err == nil {
		t.Error("a second connection was accepted")
	}
	if n := s.Stats().RefusedConnections; n == 0 {
		t.Error("the refusal was not counted")
	}
	if err := c.Close(within(t, 5*time.Second)); err != nil {
		t.Error(err)
	}
	eventually(t, "no connections", func() bool { return s.Stats().Connections == 0 })
	c = dialServer(t, s.Addr().String(), ClientConfig{TLS: trust(t, k)})
	c.Close(within(t, 5*time.Second))
}

func TestTrust(t *testing.T) {
	rec, dir := newFakeRecorder(), t.TempDir()
	k, err := SelfSigned(dir)
	if err != nil {
		t.Fatal(err)
	}
	other := keypair(t)
	s := listen(t, k, "127.0.0.1:0", Config{Recorder: rec})
	colons := strings.ToUpper(k.Fingerprint().String())
	for i := 62; i > 0; i -= 2 {
		colons = colons[:i] + ":" + colons[i:]
	}
	for _, c := range []struct {
		name  string
		trust Trust
		ok    bool
	}{
		{"pin", Trust{Pin: k.Fingerprint().String()}, true},
		{"pin with colons", Trust{Pin: colons}, true},
		{"own CA", Trust{CAFile: filepath.Join(dir, certName)}, true},
		{"insecure", Trust{Insecure: true}, true},
		{"wrong pin", Trust{Pin: other.Fingerprint().String()}, false},
		{"CA with another name", Trust{CAFile: filepath.Join(dir, certName), ServerName: "elsewhere"}, false},
		{"system", Trust{}, false},
	} {
		cfg, err := c.trust.Config()
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		client, err := Dial(t.Context(), []string{s.Addr().String()}, ClientConfig{TLS: cfg})
		if (err == nil) != c.ok {
			t.Errorf("%s: %v", c.name, err)
		}
		if err == nil {
			client.Close(within(t, 5*time.Second))
		} else if c.name == "wrong pin" && !strings.Contains(err.Error(), k.Fingerprint().String()) {
			t.Errorf("%s: the error does not name the fingerprint: %v", c.name, err)
		}
	}
}

// A renewed certificate is for new connections; those that run go on.
func TestCertificateReload(t *testing.T) {
	t.Parallel()
	rec, dir := newFakeRecorder(), t.TempDir()
	k, err := SelfSigned(dir)
	if err != nil {
		t.Fatal(err)
	}
	s := listen(t, k, "127.0.0.1:0", Config{Recorder: rec})
	old := dialServer(t, s.Addr().String(), ClientConfig{TLS: trust(t, k)})
	r, err := old.Open(spec("match-1"))
	if err != nil {
		t.Fatal(err)
	}
	was := trust(t, k)
	for _, name := range []string{certName, keyName} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := k.Reload(); err == nil {
		t.Error("Reload without files succeeded")
	}
	if c, err := Dial(t.Context(), []string{s.Addr().String()}, ClientConfig{TLS: was}); err != nil {
		t.Errorf("the old pair is not used after a failed reload: %v", err)
	} else {
		c.Close(within(t, 5*time.Second))
	}
	if _, err := SelfSigned(dir); err != nil {
		t.Fatal(err)
	}
	if err := k.Reload(); err != nil {
		t.Fatal(err)
	}
	if _, err := Dial(t.Context(), []string{s.Addr().String()}, ClientConfig{TLS: was}); err == nil {
		t.Error("the old certificate is still served")
	}
	c := dialServer(t, s.Addr().String(), ClientConfig{TLS: trust(t, k)})
	c.Close(within(t, 5*time.Second))
	e := expected{first: 10}
	e.play(t, r, 100)
	if err := r.Wait(within(t, 5*time.Second), e.next()-1); err != nil || old.Stats().Connects != 1 {
		t.Errorf("%v, %+v", err, old.Stats())
	}
	old.Close(within(t, 5*time.Second))
}

// Dial does not block for ever where nothing answers.
func TestDialNobody(t *testing.T) {
	t.Parallel()
	silent, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	begun := time.Now()
	_, err = Dial(t.Context(), []string{silent.LocalAddr().String()}, ClientConfig{TLS: trust(t, keypair(t)), DialTimeout: 300 * time.Millisecond})
	if err == nil || time.Since(begun) > 2*time.Second {
		t.Errorf("%v after %v", err, time.Since(begun))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := Dial(ctx, []string{silent.LocalAddr().String()}, ClientConfig{TLS: trust(t, keypair(t))}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
}

func TestBuffers(t *testing.T) {
	s := listen(t, keypair(t), "127.0.0.1:0", Config{Recorder: newFakeRecorder()})
	b := s.Buffers()
	if runtime.GOOS == "linux" && (b.Receive <= 0 || b.Send <= 0) {
		t.Errorf("%+v", b)
	}
	if (Buffers{Receive: 208 << 10, Send: WantedBuffer}).Enough() || !(Buffers{}).Enough() {
		t.Error("Enough is wrong")
	}
}
