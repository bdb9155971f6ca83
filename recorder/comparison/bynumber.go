package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// filePause is longer than reprised lets session files lag behind its
// journal: after it, what has no producer is in the files and not in memory.
const filePause = 2500 * time.Millisecond

// byNumber measures reprised over the number of its sessions.
func (b *bench) byNumber(ctx context.Context, p plan, out, progress io.Writer) error {
	fmt.Fprintf(out, "\n### Reprised, by number of sessions\n\n%g ticks a second each, %v measured after %v of warming up.\n\n", float64(tickRate), p.window, p.warm)
	t := &table{head: []string{"sessions", "memory MiB: none open", "idle", "live", "KiB a session: idle", "live", "CPU s per million ticks", "written/row byte", "kept/row byte"}}
	var errs []error
	for _, n := range p.numbers {
		fmt.Fprintf(progress, "reprised with %d sessions\n", n)
		c, err := b.crowd(ctx, n, p)
		if err != nil {
			errs = append(errs, fmt.Errorf("%d sessions: %w", n, err))
			continue
		}
		t.add(thousands(float64(n)), mebibytes(c.empty), mebibytes(c.idle), mebibytes(c.memory), kibibytesEach(c.idle-c.empty, n), kibibytesEach(c.memory-c.empty, n),
			number(c.cpu), number(c.written), number(c.kept))
	}
	t.print(out)
	return errors.Join(errs...)
}

// kibibytesEach is a session's share.
func kibibytesEach(bytes float64, sessions int) string {
	return number(bytes / float64(sessions) / (1 << 10))
}

// crowded are the figures of one number of sessions, with the memory before
// any was open, and with all open and nothing recorded.
type crowded struct {
	figures
	empty, idle float64
}

func (b *bench) crowd(ctx context.Context, sessions int, p plan) (c crowded, err error) {
	w := workload{sessions, tickRate}
	o, err := b.openReprised(ctx, w)
	if err != nil {
		return c, err
	}
	defer o.srv.discard()
	r := run{disk: b.disk, srv: o.srv, c: o.c}
	idle, err := r.rest(ctx)
	if err == nil {
		err = r.load(ctx, w, p)
	}
	o.c.close()
	if err == nil {
		err = r.end()
	}
	return crowded{figures: r.f, empty: float64(o.empty.memory), idle: float64(idle.memory)}, err
}

// opened is a daemon with sessions, and what it took before they were open.
type opened struct {
	srv   *server
	c     client
	empty usage
}

func (b *bench) openReprised(ctx context.Context, w workload) (o opened, err error) {
	settle()
	s := systems[0]
	if o.srv, err = b.startServer(ctx, s); err != nil {
		return o, err
	}
	if o.empty, err = o.srv.usage(); err == nil {
		o.c, err = b.dial(ctx, s, o.srv, w)
	}
	if err != nil {
		o.srv.discard()
	}
	return o, err
}

// rest waits until nothing is left to do for the server, and looks at it.
func (r *run) rest(ctx context.Context) (usage, error) {
	if err := sleep(ctx, filePause); err != nil {
		return usage{}, err
	}
	return r.srv.usage()
}
