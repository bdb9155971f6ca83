package daemon

import (
	"net"
	"sync"
	"sync/atomic"
	"testing"
)

// relay passes packets between one client and a daemon, as long as it is not
// dark: then each side hears nothing more of the other.
type relay struct {
	front, back *net.UDPConn
	dark        atomic.Bool
	client      atomic.Pointer[net.UDPAddr]
	passing     sync.WaitGroup
}

func newRelay(t testing.TB, daemon string) *relay {
	t.Helper()
	target, err := net.ResolveUDPAddr("udp", daemon)
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{}
	if r.front, err = net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)}); err != nil {
		t.Fatal(err)
	}
	if r.back, err = net.DialUDP("udp", nil, target); err != nil {
		t.Fatal(err)
	}
	r.passing.Go(r.forward)
	r.passing.Go(r.backward)
	t.Cleanup(func() {
		r.front.Close()
		r.back.Close()
		r.passing.Wait()
	})
	return r
}

func (r *relay) addr() string { return r.front.LocalAddr().String() }

func (r *relay) forward() {
	b := make([]byte, 64<<10)
	for {
		n, from, err := r.front.ReadFromUDP(b)
		if err != nil {
			return
		}
		r.client.Store(from)
		if !r.dark.Load() {
			r.back.Write(b[:n])
		}
	}
}

func (r *relay) backward() {
	b := make([]byte, 64<<10)
	for {
		n, err := r.back.Read(b)
		if err != nil && n == 0 && r.closed() {
			return
		}
		if client := r.client.Load(); client != nil && err == nil && !r.dark.Load() {
			r.front.WriteToUDP(b[:n], client)
		}
	}
}

// closed tells whether the relay has ended: reads of back also fail while no
// daemon listens.
func (r *relay) closed() bool { return r.back.SetReadBuffer(64<<10) != nil }
