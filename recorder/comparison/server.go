package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// server is a system under test: a process of its own with a folder of its
// own.
type server struct {
	ready
	dir   string
	cmd   *exec.Cmd
	log   *logTail
	ended chan struct{}
}

// ready is what a server says once it can be reached.
type ready struct {
	addr, fingerprint string
}

const (
	// startLimit is how long a server may take to get ready: reprised writes
	// its journal full of zeros before.
	startLimit = 20 * time.Second
	// stopLimit is how long one may take to end by itself.
	stopLimit = 5 * time.Second
)

// startServer starts a system in a new folder below parent.
func (b *bench) startServer(ctx context.Context, s system) (*server, error) {
	dir, err := os.MkdirTemp(b.dir, "server-")
	if err != nil {
		return nil, err
	}
	args := []string{b.reprised, "--data", dir, "--listen", "127.0.0.1:0", "--http", "", "--log-level", "error"}
	if s.nats {
		args = []string{b.self, natsRole, dir, syncDefault}
		if s.syncs {
			args[3] = syncAlways
		}
	}
	srv := &server{dir: dir, cmd: exec.Command(args[0], args[1:]...), log: &logTail{}, ended: make(chan struct{})}
	srv.cmd.Stderr = srv.log
	bind(srv.cmd)
	out, err := srv.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := srv.cmd.Start(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if err := srv.await(ctx, out); err != nil {
		srv.discard()
		return nil, fmt.Errorf("starting %s: %w%s", args[0], err, srv.log)
	}
	return srv, nil
}

// await waits for the line that says that the server is ready.
func (s *server) await(ctx context.Context, out io.Reader) error {
	lines := make(chan string, 1)
	go func() {
		r := bufio.NewReader(out)
		line, _ := r.ReadString('\n')
		lines <- line
		_, _ = io.Copy(io.Discard, r)
		_ = s.cmd.Wait()
		close(s.ended)
	}()
	select {
	case line := <-lines:
		var err error
		s.ready, err = parseReady(line)
		return err
	case <-time.After(startLimit):
		return fmt.Errorf("not ready after %v", startLimit)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// parseReady reads "NAME: ready on ADDRESS, fingerprint HEX, …"; all behind
// the address is optional.
func parseReady(line string) (r ready, err error) {
	_, rest, ok := strings.Cut(strings.TrimSpace(line), ": ready on ")
	if !ok {
		return r, fmt.Errorf("it says %.200q instead of being ready", line)
	}
	parts := strings.Split(rest, ", ")
	r.addr = parts[0]
	for _, p := range parts[1:] {
		if hex, ok := strings.CutPrefix(p, "fingerprint "); ok {
			r.fingerprint = hex
		}
	}
	return r, nil
}

// usage is what the server has taken so far.
func (s *server) usage() (usage, error) { return usageOf(s.cmd.Process.Pid) }

// stop lets the server end by itself, so that everything is in its files.
func (s *server) stop() error {
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-s.ended:
		return nil
	case <-time.After(stopLimit):
		return fmt.Errorf("the server did not end within %v%s", stopLimit, s.log)
	}
}

func (s *server) kill() {
	_ = s.cmd.Process.Kill()
	<-s.ended
}

// discard ends the server, if it has not ended, and removes its folder.
func (s *server) discard() {
	s.kill()
	_ = os.RemoveAll(s.dir)
}

// kept adds up the server's files, without reprised's journal, whose size is
// fixed, and its certificate.
func (s *server) kept() (int64, error) {
	total := int64(0)
	err := filepath.WalkDir(s.dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() {
			if e.Name() == "journal" || e.Name() == "tls" {
				return fs.SkipDir
			}
			return nil
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		total += info.Size()
		return nil
	})
	return total, err
}

// logTail keeps the last lines that a server logged.
type logTail struct {
	mu   sync.Mutex
	text []byte
}

const logTailBytes = 2 << 10

func (l *logTail) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, b...)
	l.text = l.text[max(0, len(l.text)-logTailBytes):]
	return len(b), nil
}

// String is empty, or begins a new line.
func (l *logTail) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	text := bytes.TrimSpace(l.text)
	if len(text) == 0 {
		return ""
	}
	return "\n" + string(text)
}
