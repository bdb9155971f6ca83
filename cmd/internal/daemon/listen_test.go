package daemon

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"testing"

	"reprise/cmd/internal/proctest"
	"reprise/recorder"
)

// addressed is a daemon that is not started, with its data folder.
func addressed(t *testing.T, listen, http string) (*Daemon, string) {
	t.Helper()
	cfg := Default()
	cfg.Data, cfg.Listen, cfg.HTTP, cfg.SegmentBytes = filepath.Join(t.TempDir(), "data"), listen, http, 512<<10
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	return New(cfg, &proctest.Text{}), cfg.Data
}

// closed is whether a socket was closed here.
func closed(s interface{ Close() error }) bool { return errors.Is(s.Close(), net.ErrClosed) }

// takenPorts are in use until the test ends.
func takenPorts(t *testing.T) (net.PacketConn, net.Listener) {
	t.Helper()
	udp, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { udp.Close() })
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tcp.Close() })
	return udp, tcp
}

// A daemon whose address is taken leaves nothing behind: no data folder, no
// socket.
func TestAddressTaken(t *testing.T) {
	udp, tcp := takenPorts(t)
	for name, c := range map[string]struct{ listen, http string }{
		"listen": {udp.LocalAddr().String(), "127.0.0.1:0"},
		"http":   {"127.0.0.1:0", tcp.Addr().String()},
	} {
		d, data := addressed(t, c.listen, c.http)
		if err := d.Start(); err == nil {
			t.Errorf("%s: it starts on an address that is taken", name)
		}
		if _, err := os.Stat(data); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: the data folder was made (%v)", name, err)
		}
		if name == "http" && !closed(d.udp) {
			t.Error("the UDP socket was left open")
		}
	}
}

// noDisk cannot be used, and tells when it is asked.
type noDisk struct {
	recorder.FS
	asked func()
}

func (n noDisk) MkdirAll(string) error {
	n.asked()
	return errBadDisk
}

// The addresses are taken before the disk is asked for anything, served only
// after it, and released where that fails.
func TestAddressBeforeDisk(t *testing.T) {
	d, _ := addressed(t, "127.0.0.1:0", "127.0.0.1:0")
	asked := false
	d.On(noDisk{asked: func() {
		asked = true
		if d.udp == nil || d.tcp == nil || d.server != nil || d.http != nil {
			t.Fatalf("at the disk: sockets %v and %v, servers %v and %v; want the sockets alone", d.udp, d.tcp, d.server, d.http)
		}
	}}, nil)
	if err := d.Start(); !errors.Is(err, errBadDisk) || !asked {
		t.Fatalf("start gives %v, the disk was asked: %v", err, asked)
	}
	if !closed(d.udp) || !closed(d.tcp) {
		t.Error("a socket was left open")
	}
}
