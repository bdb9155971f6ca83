package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	natsserver "github.com/nats-io/nats-server/v2/server"
)

// natsRole is the argument with which this program becomes a NATS server.
const natsRole = "nats-server"

// When JetStream syncs, as an argument of natsRole: after every message, or
// every two minutes as it does by default.
const (
	syncAlways  = "sync-always"
	syncDefault = "sync-default"
)

// serveNATS runs a server with JetStream until SIGTERM. args are the folder
// and when it syncs.
func serveNATS(args []string, stdout io.Writer) error {
	if len(args) != 2 || args[1] != syncAlways && args[1] != syncDefault {
		return fmt.Errorf("usage: %s DIR %s|%s", natsRole, syncAlways, syncDefault)
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	s, err := startNATS(args[0], args[1] == syncAlways)
	if err != nil {
		return err
	}
	defer s.WaitForShutdown()
	defer s.Shutdown()
	fmt.Fprintf(stdout, "nats: ready on %s\n", s.ClientURL())
	<-stop
	return nil
}

// startNATS starts a server on loopback. Whatever is not set is as NATS has
// it.
func startNATS(dir string, always bool) (*natsserver.Server, error) {
	s, err := natsserver.NewServer(&natsserver.Options{Host: "127.0.0.1", Port: natsserver.RANDOM_PORT, JetStream: true, StoreDir: dir,
		SyncAlways: always, NoSigs: true, NoLog: true})
	if err != nil {
		return nil, err
	}
	s.Start()
	if !s.ReadyForConnections(startLimit) || !s.JetStreamEnabled() {
		s.Shutdown()
		return nil, errors.New("the NATS server does not start, or not with JetStream")
	}
	return s, nil
}
