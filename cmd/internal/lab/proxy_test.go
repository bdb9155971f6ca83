package lab

import (
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"
)

// weather is how a proxy treats packets.
type weather struct {
	// delay is how long each packet takes one way; jitter is added to it at
	// random, so packets overtake each other.
	delay, jitter time.Duration
	// lost and twice are the parts of the packets that do not come, or come
	// twice.
	lost, twice float64
	// dark lets nothing pass, darkBack nothing from the daemon.
	dark, darkBack bool
}

// proxy stands between one client and a daemon.
type proxy struct {
	front  *net.UDPConn
	target *net.UDPAddr

	mu     sync.Mutex
	rnd    *rand.Rand
	now    weather
	client *net.UDPAddr
	back   *net.UDPConn // its port is what the daemon sees
	passed int
}

func newProxy(t testing.TB, target string, rnd *rand.Rand, w weather) *proxy {
	t.Helper()
	to, err := net.ResolveUDPAddr("udp4", target)
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{target: to, rnd: rand.New(rand.NewPCG(rnd.Uint64(), 0)), now: w}
	if p.front, err = net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)}); err != nil {
		t.Fatal(err)
	}
	p.move(t)
	go p.forward()
	t.Cleanup(p.close)
	return p
}

func (p *proxy) addr() string { return p.front.LocalAddr().String() }

// set changes the weather.
func (p *proxy) set(change func(*weather)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(&p.now)
}

// move changes the port that the daemon sees, as a NAT does.
func (p *proxy) move(t testing.TB) {
	t.Helper()
	back, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	p.mu.Lock()
	old := p.back
	p.back = back
	p.mu.Unlock()
	if old != nil {
		old.Close()
	}
	go p.backward(back)
}

func (p *proxy) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.front.Close()
	p.back.Close()
}

func (p *proxy) forward() {
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

func (p *proxy) backward(back *net.UDPConn) {
	buf := make([]byte, 64<<10)
	for {
		n, err := back.Read(buf)
		if err != nil {
			return
		}
		p.pass(buf[:n], true)
	}
}

// pass sends a packet on, or not, or twice.
func (p *proxy) pass(b []byte, backward bool) {
	b = append([]byte(nil), b...)
	for _, delay := range p.fate(backward) {
		time.AfterFunc(delay, func() { p.send(b, backward) })
	}
}

// fate decides how often a packet arrives, and when.
func (p *proxy) fate(backward bool) []time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	times := 1
	switch x := p.rnd.Float64(); {
	case p.now.dark || backward && p.now.darkBack || x < p.now.lost:
		return nil
	case x < p.now.lost+p.now.twice:
		times = 2
	}
	delays := make([]time.Duration, times)
	for i := range delays {
		delays[i] = p.now.delay + time.Duration(p.rnd.Int64N(int64(p.now.jitter)+1))
	}
	p.passed++
	return delays
}

// send lets a packet out, by the port that is in use then.
func (p *proxy) send(b []byte, backward bool) {
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
