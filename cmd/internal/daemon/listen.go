package daemon

import (
	"errors"
	"fmt"
	"net"
	"syscall"

	"reprise/transport"
)

// bind takes the configured addresses. It comes before the data folder is
// touched: a daemon whose address is taken leaves no journal behind. Nothing
// is read from the sockets until the recorder is ready.
func (d *Daemon) bind() (err error) {
	if d.socket == nil {
		if d.udp, err = net.ListenPacket("udp", d.cfg.Listen); err != nil {
			return notBound("listen", d.cfg.Listen, err)
		}
		d.socket = d.udp
	}
	if d.cfg.HTTP == "" {
		return nil
	}
	if d.tcp, err = net.Listen("tcp", d.cfg.HTTP); err != nil {
		return notBound("http", d.cfg.HTTP, err)
	}
	return nil
}

// notBound says which key has the address that cannot be taken, and why.
func notBound(key, addr string, err error) error {
	// Its own text has the address a second time.
	if op := (*net.OpError)(nil); errors.As(err, &op) {
		err = op.Err
	}
	if errors.Is(err, syscall.EADDRINUSE) || errors.Is(err, windowsInUse) {
		return fmt.Errorf("%s %s: %w: is another reprised running? choose another address with --%s", key, addr, err, key)
	}
	return fmt.Errorf("%s %s: %w: choose another address with --%s", key, addr, err, key)
}

// windowsInUse is what Windows says of an address that is taken; there,
// syscall.EADDRINUSE is a number that the system never gives.
const windowsInUse = syscall.Errno(10048)

// startServer lets clients in by the socket, which is the server's from then
// on.
func (d *Daemon) startServer() error {
	cfg, err := d.serverConfig()
	if err != nil {
		return err
	}
	if d.server, err = transport.ListenOn(d.socket, d.tlsConfig(), cfg); err != nil {
		return fmt.Errorf("listen %s: %w", d.cfg.Listen, err)
	}
	d.gate.server.Store(d.server)
	return nil
}

// unbind closes the sockets that bind took and nobody came to serve.
func (d *Daemon) unbind() error {
	var errs []error
	if d.udp != nil && d.server == nil {
		errs = append(errs, d.udp.Close())
	}
	if d.tcp != nil && d.http == nil {
		errs = append(errs, d.tcp.Close())
	}
	return errors.Join(errs...)
}
