package journal

import (
	"context"
	"time"
)

// Remove removes the runs that began before a time, but none that somebody works
// on, and gives their space back. It returns how many they were, and how many
// bytes the journal is smaller by.
func (j *Journal) Remove(ctx context.Context, before time.Time) (runs int, bytes int64, err error) {
	if err := j.writable(); err != nil {
		return 0, 0, j.fail("write", err)
	}
	list, err := j.store.runs(ctx, "")
	if err != nil {
		return 0, 0, j.fail("read", err)
	}
	var old []int64
	for _, r := range list {
		if r.started.Before(before) && !j.live(r.held) {
			old = append(old, r.n)
		}
	}
	if len(old) == 0 {
		return 0, 0, nil
	}
	bytes, err = j.store.remove(ctx, old)
	return len(old), bytes, j.fail("write", err)
}
