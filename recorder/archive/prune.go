package archive

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"reprise/recorder"
)

// Prune removes from a data folder, by hand, what Preview would tell, with the
// lines of an Archiver in the log, and gives what it removed; where removing one
// fails it goes on with the others, and returns both. It holds the folder's
// lock meanwhile: where a recorder runs there, whose Archiver sees to its own
// files, the error matches recorder.ErrRunning.
func Prune(ctx context.Context, dir string, policy Policy, reopenWindow time.Duration, now time.Time, log *slog.Logger) (removed []Removal, unmet []string, held []Holding, err error) {
	lock, err := recorder.Lock(dir)
	if err != nil {
		return nil, nil, nil, err
	}
	defer lock.Close()
	d, err := openFolder(dir)
	if err != nil {
		return nil, nil, nil, err
	}
	defer d.Close()
	s, c, err := readStore(d, dir, policy, reopenWindow, now)
	if err != nil {
		return nil, nil, nil, err
	}
	held = s.holdings()
	remove, unmet := policy.Plan(held, now)
	var errs []error
	for i := range remove {
		if ctx.Err() != nil {
			errs = append(errs, ctx.Err())
			break
		}
		gone, err := remover{d, c, log}.remove(&remove[i])
		if gone {
			removed = append(removed, remove[i])
		}
		errs = append(errs, err)
	}
	return removed, unmet, held, errors.Join(errs...)
}
