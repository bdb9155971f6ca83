package roughnet

import (
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"
)

// Weather is how a proxy treats packets. The zero value passes each at once.
type Weather struct {
	// Delay is how long each packet takes one way; a random part of Jitter is
	// added to it, so packets overtake each other.
	Delay, Jitter time.Duration
	// Lost and Twice are the parts of the packets that do not come, or come
	// twice.
	Lost, Twice float64
	// Dark lets nothing pass, DarkBack nothing from the daemon.
	Dark, DarkBack bool
}

// Proxy stands between one client and a daemon. Its calls may overlap.
type Proxy struct {
	front  *net.UDPConn
	target *net.UDPAddr

	mu     sync.Mutex
	rnd    *rand.Rand
	now    Weather
	client *net.UDPAddr
	back   *net.UDPConn // its port is what the daemon sees
}

// NewProxy passes packets on to the daemon at target until the test ends. The
// seed decides which of them are lost.
func NewProxy(t testing.TB, target string, seed uint64, w Weather) *Proxy {
	t.Helper()
	to, err := net.ResolveUDPAddr("udp4", target)
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{target: to, rnd: rand.New(rand.NewPCG(seed, 0)), now: w, front: listen(t)}
	p.Move(t)
	go p.forward()
	t.Cleanup(p.close)
	return p
}

func listen(t testing.TB) *net.UDPConn {
	t.Helper()
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

// Addr is where the client finds the proxy.
func (p *Proxy) Addr() net.Addr { return p.front.LocalAddr() }

// Set changes the weather.
func (p *Proxy) Set(change func(*Weather)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(&p.now)
}

// Move changes the port that the daemon sees, as a NAT does.
func (p *Proxy) Move(t testing.TB) {
	t.Helper()
	back := listen(t)
	p.mu.Lock()
	old := p.back
	p.back = back
	p.mu.Unlock()
	if old != nil {
		old.Close()
	}
	go p.backward(back)
}

func (p *Proxy) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.front.Close()
	p.back.Close()
}

func (p *Proxy) forward() {
	buf := make([]byte, 64<<10)
	for {
		n, from, err := p.front.ReadFromUDP(buf)
		if err != nil {
			return
		}
		p.mu.Lock()
		p.client = from
		p.mu.Unlock()
		p.pass(buf[:n], false)
	}
}

func (p *Proxy) backward(back *net.UDPConn) {
	buf := make([]byte, 64<<10)
	for {
		n, err := back.Read(buf)
		if err != nil {
			return
		}
		p.pass(buf[:n], true)
	}
}

// pass sends a packet on, or not, or twice, at once or later.
func (p *Proxy) pass(b []byte, backward bool) {
	b = append([]byte(nil), b...)
	for _, delay := range p.fate(backward) {
		if delay == 0 {
			p.send(b, backward) // in order
			continue
		}
		time.AfterFunc(delay, func() { p.send(b, backward) })
	}
}

// fate decides how often a packet arrives, and when.
func (p *Proxy) fate(backward bool) []time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	times := 1
	switch x := p.rnd.Float64(); {
	case p.now.Dark || backward && p.now.DarkBack || x < p.now.Lost:
		return nil
	case x < p.now.Lost+p.now.Twice:
		times = 2
	}
	delays := make([]time.Duration, times)
	for i := range delays {
		delays[i] = p.now.Delay + time.Duration(p.rnd.Int64N(int64(p.now.Jitter)+1))
	}
	return delays
}

// send lets a packet out, by the port that is in use then.
func (p *Proxy) send(b []byte, backward bool) {
	p.mu.Lock()
	back, client := p.back, p.client
	p.mu.Unlock()
	// A packet that cannot be sent is one more that is lost.
	if backward {
		_, _ = p.front.WriteToUDP(b, client)
		return
	}
	_, _ = back.WriteToUDP(b, p.target)
}
