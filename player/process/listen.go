package process

import (
	"crypto/rand"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
)

// The address in the environment says which kind of socket it is. The words
// are part of the protocol. They must not change.
const (
	unixPrefix = "unix:"
	tcpPrefix  = "tcp:"
)

// door is the socket that a child is awaited at.
type door struct {
	net.Listener
	// address is what the child is told.
	address, token string
	// private is set where nobody else can come in.
	private bool
	folder  string
}

// openDoor listens on a unix socket in a private folder or, where there is
// none or tcp says so, on a port of this machine. A port is open to everybody
// on the machine, so the token decides who is the child.
func openDoor(tcp bool) (*door, error) {
	if hasUnixSockets && !tcp {
		if d, err := openUnix(); err == nil {
			return d, nil
		}
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("no socket for the simulation: %w", err)
	}
	return &door{Listener: listener, address: tcpPrefix + listener.Addr().String(), token: rand.Text()}, nil
}

// socketName is the name of a socket in its folder.
const socketName = "socket"

func openUnix() (*door, error) {
	sweepOnce()
	folder, err := os.MkdirTemp("", folderPattern(os.Getpid())) // mode 0700
	if err != nil {
		return nil, err
	}
	path := filepath.Join(folder, socketName)
	listener, err := net.Listen("unix", path)
	if err != nil {
		_ = os.RemoveAll(folder)
		return nil, err
	}
	return &door{Listener: listener, address: unixPrefix + path, token: rand.Text(), private: true, folder: folder}, nil
}

// shut closes the socket and removes its folder. Connections live on.
func (d *door) shut() {
	_ = d.Close()
	if d.folder != "" {
		_ = os.RemoveAll(d.folder)
	}
}

// dial connects to the address that a host gave its child.
func dial(address string) (net.Conn, error) {
	if path, ok := strings.CutPrefix(address, unixPrefix); ok {
		return net.Dial("unix", path)
	}
	if port, ok := strings.CutPrefix(address, tcpPrefix); ok {
		return net.Dial("tcp", port)
	}
	return nil, fmt.Errorf("%s is %q: it begins with %s or %s", SocketVariable, address, unixPrefix, tcpPrefix)
}
