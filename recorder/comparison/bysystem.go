package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
)

// measured is one system under one load, in every round.
type measured struct {
	system   system
	workload workload
	runs     []figures
	err      error
}

// bySystem compares the systems. Each round measures every load with all
// systems one after the other, every second round backwards.
func (b *bench) bySystem(ctx context.Context, p plan, out, progress io.Writer) error {
	var all []*measured
	for _, w := range p.workloads {
		for _, s := range systems {
			if s.applies(w) {
				all = append(all, &measured{system: s, workload: w})
			}
		}
	}
	for round := range p.rounds {
		order := slices.Clone(all)
		if round%2 == 1 {
			slices.Reverse(order)
		}
		for _, m := range order {
			b.measureOnce(ctx, m, p, round, progress)
		}
	}
	var errs []error
	for _, m := range all {
		if m.err != nil {
			errs = append(errs, fmt.Errorf("%s, %v: %w", m.system.name, m.workload, m.err))
		}
	}
	printSystems(out, all, p)
	return errors.Join(errs...)
}

// measureOnce adds a run, unless the time is over.
func (b *bench) measureOnce(ctx context.Context, m *measured, p plan, round int, progress io.Writer) {
	if ctx.Err() != nil || m.err != nil {
		return
	}
	fmt.Fprintf(progress, "round %d of %d: %v: %s\n", round+1, p.rounds, m.workload, m.system.name)
	f, err := b.measure(ctx, m.system, m.workload, p)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		m.err = err
		return
	}
	m.runs = append(m.runs, f)
}

// printSystems prints the median of every figure.
func printSystems(out io.Writer, all []*measured, p plan) {
	fmt.Fprintf(out, "\n### Two systems\n\nMedians of %d round(s), %v measured after %v of warming up.\n", p.rounds, p.window, p.warm)
	for _, w := range p.workloads {
		t := table{head: []string{"system", "an acknowledged tick is", "ticks/s acknowledged", "of those due", "p50 ms", "p99 ms",
			"CPU s per million ticks", "memory MiB", "written/row byte", "kept/row byte"}}
		for _, m := range all {
			if m.workload == w {
				t.add(m.row()...)
			}
		}
		fmt.Fprintf(out, "\n**%v**\n\n", w)
		t.print(out)
	}
}

func (m *measured) row() []string {
	mid := func(of func(figures) float64) float64 { return median(m.runs, of) }
	where := "in the page cache"
	if m.system.syncs {
		where = "on the disk"
	}
	acked := mid(func(f figures) float64 { return f.acked })
	row := []string{m.system.name, where, thousands(acked), none, none, none}
	if m.workload.rate > 0 && len(m.runs) > 0 {
		row[3] = number(100*acked/m.workload.due()) + " %"
		row[4] = number(mid(func(f figures) float64 { return millis(f.p50) }))
		row[5] = number(mid(func(f figures) float64 { return millis(f.p99) })) + spread(m.runs)
	}
	return append(row, number(mid(func(f figures) float64 { return f.cpu })), mebibytes(mid(func(f figures) float64 { return f.memory })),
		number(mid(func(f figures) float64 { return f.written })), number(mid(func(f figures) float64 { return f.kept })))
}

// spread is the lowest and the highest p99 of several runs.
func spread(runs []figures) string {
	if len(runs) < 2 {
		return ""
	}
	byP99 := func(a, b figures) int { return int(a.p99 - b.p99) }
	return fmt.Sprintf(" (%s-%s)", number(millis(slices.MinFunc(runs, byP99).p99)), number(millis(slices.MaxFunc(runs, byP99).p99)))
}
