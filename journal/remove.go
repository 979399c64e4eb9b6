package journal

import (
	"context"
	"slices"
	"time"
)

// Remove removes the runs that began before a time, but none that somebody works
// on, and gives their space back. It returns the ids of those that went, the
// newest first and also with an error, and how many bytes the journal is smaller
// by, which is zero with an error.
func (j *Journal) Remove(ctx context.Context, before time.Time) (runs []string, bytes int64, err error) {
	if err := j.writable(); err != nil {
		return nil, 0, j.fail("write", err)
	}
	list, err := j.store.runs(ctx, "")
	if err != nil {
		return nil, 0, j.fail("read", err)
	}
	old := slices.DeleteFunc(list, func(r row) bool { return !r.started.Before(before) })
	if len(old) == 0 {
		return nil, 0, nil
	}
	now := j.o.Now()
	gone, bytes, err := j.store.remove(ctx, old, func(l *lease) bool { return !j.liveAt(l, now) })
	for _, r := range gone {
		runs = append(runs, r.id)
	}
	return runs, bytes, j.fail("write", err)
}
