package transport

import (
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"
)

// proxy passes UDP packets between one client and a daemon, badly.
type proxy struct {
	front  *net.UDPConn
	target *net.UDPAddr

	mu     sync.Mutex
	back   *net.UDPConn // its port is what the daemon sees
	client *net.UDPAddr
	rnd    *rand.Rand
	// drop, twice: the chances for a packet to be lost, and to come twice.
	drop, twice float64
	// delay is the longest time that a packet is held; each has its own.
	delay time.Duration
	// dark lets nothing pass; darkBack nothing from the daemon.
	dark, darkBack bool
	closed         bool
}

func newProxy(t *testing.T, target net.Addr) *proxy {
	t.Helper()
	front, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{front: front, target: target.(*net.UDPAddr), rnd: rand.New(rand.NewPCG(1, 2))}
	p.rebind(t)
	go p.forward()
	t.Cleanup(p.close)
	return p
}

func (p *proxy) addr() string { return p.front.LocalAddr().String() }

// set changes the proxy's behaviour.
func (p *proxy) set(change func(*proxy)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(p)
}

// rebind changes the port that the daemon sees, as a NAT does.
func (p *proxy) rebind(t *testing.T) {
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
	p.closed = true
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
		p.pass(buf[:n], false, func(b []byte) {
			p.mu.Lock()
			back := p.back
			p.mu.Unlock()
			back.WriteToUDP(b, p.target)
		})
	}
}

func (p *proxy) backward(back *net.UDPConn) {
	buf := make([]byte, 64<<10)
	for {
		n, err := back.Read(buf)
		if err != nil {
			return
		}
		p.mu.Lock()
		client := p.client
		p.mu.Unlock()
		p.pass(buf[:n], true, func(b []byte) { p.front.WriteToUDP(b, client) })
	}
}

// pass sends a packet on, or not, or twice, at once or later.
func (p *proxy) pass(b []byte, backward bool, send func([]byte)) {
	p.mu.Lock()
	times := 1
	switch x := p.rnd.Float64(); {
	case p.dark || backward && p.darkBack || x < p.drop:
		times = 0
	case x < p.drop+p.twice:
		times = 2
	}
	var delays []time.Duration
	for range times {
		delays = append(delays, time.Duration(p.rnd.Int64N(int64(p.delay)+1)))
	}
	p.mu.Unlock()
	b = append([]byte(nil), b...)
	for _, d := range delays {
		if d == 0 {
			send(b)
			continue
		}
		time.AfterFunc(d, func() { send(b) })
	}
}
