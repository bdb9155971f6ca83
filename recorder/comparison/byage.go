package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// byAge measures reprised over the age of its sessions. They grow old as fast
// as their ticks become durable, and are looked at while they rest.
func (b *bench) byAge(ctx context.Context, p plan, out, progress io.Writer) error {
	fmt.Fprintf(out, "\n### Reprised, by age of sessions\n\n%d sessions, each filled flat out to the ticks that %d Hz make in that time.\n\n", p.ageing, tickRate)
	t := &table{head: []string{"age", "ticks a session", "heap bytes a session", "process memory MiB", "ticks/s acknowledged", "CPU s per million ticks", "written/row byte", "kept/row byte"}}
	err := b.growOld(ctx, p, t, progress)
	t.print(out)
	return err
}

func (b *bench) growOld(ctx context.Context, p plan, t *table, progress io.Writer) error {
	h, err := hold(b.dir)
	if err != nil {
		return err
	}
	heaps, err := h.heapByAge(ctx, p.ageing)
	h.close()
	if err != nil {
		return err
	}
	a, err := b.openAgeing(ctx, p.ageing)
	if err != nil {
		return err
	}
	defer a.srv.discard()
	defer a.c.close()
	for i, age := range ages {
		fmt.Fprintf(progress, "reprised with sessions of %v\n", age)
		row, err := a.grow(ctx, ageTicks(age))
		if err != nil {
			return fmt.Errorf("at an age of %v: %w", age, err)
		}
		t.add(append([]string{fmt.Sprintf("%g min", age.Minutes()), thousands(float64(ageTicks(age))), thousands(heaps[i])}, row...)...)
	}
	return nil
}

// ageTicks is how many ticks a session has at an age.
func ageTicks(age time.Duration) int { return int(age.Seconds() * tickRate) }

// openAgeing starts a daemon with sessions that will grow old.
func (b *bench) openAgeing(ctx context.Context, sessions int) (a *ageing, err error) {
	o, err := b.openReprised(ctx, workload{sessions: sessions})
	if err != nil {
		return nil, err
	}
	a = &ageing{run: run{disk: b.disk, srv: o.srv, c: o.c}, sessions: sessions, ticks: 1}
	if a.last, err = a.rest(ctx); err == nil {
		settle()
		a.before, err = a.disk.written()
	}
	if err != nil {
		o.c.close()
		o.srv.discard()
		return nil, err
	}
	return a, nil
}

// ageing are sessions that grow old.
type ageing struct {
	run
	sessions int
	// ticks is how many every session has; the opening made the first.
	ticks int
	// last is what the server had taken at the age before.
	last usage
}

// grow brings every session to so many ticks, and gives the figures since the
// age before.
func (a *ageing) grow(ctx context.Context, target int) ([]string, error) {
	start := time.Now()
	if err := a.fill(ctx, target-a.ticks); err != nil {
		return nil, err
	}
	took := time.Since(start)
	now, err := a.rest(ctx)
	if err != nil {
		return nil, err
	}
	settle()
	written, err := a.disk.written()
	if err != nil {
		return nil, err
	}
	kept, err := a.srv.kept()
	if err != nil {
		return nil, err
	}
	made := float64((target - a.ticks) * a.sessions)
	row := []string{mebibytes(float64(now.memory)), thousands(made / took.Seconds()), number(per((now.cpu - a.last.cpu).Seconds(), made/1e6)),
		number(per(float64(written-a.before), made*rowBytes)), number(per(float64(kept), float64(target*a.sessions*rowBytes)))}
	a.ticks, a.last, a.before = target, now, written
	return row, nil
}

// fill makes so many ticks of every session, and waits until they are
// durable.
func (a *ageing) fill(ctx context.Context, n int) error {
	var wg sync.WaitGroup
	errs := make([]error, connections)
	for first := range connections {
		wg.Go(func() { errs[first] = a.fillConnection(ctx, first, n) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return a.c.drain(ctx)
}

func (a *ageing) fillConnection(ctx context.Context, first, n int) error {
	for made := 0; made < n; made += burst {
		for session := first; session < a.sessions; session += connections {
			if err := a.c.room(ctx, session); err != nil {
				return err
			}
			if err := ticks(ctx, a.c, session, min(burst, n-made)); err != nil {
				return err
			}
		}
	}
	return nil
}
