package journal

import (
	"context"
	"slices"
	"time"
)

// Remove removes the runs that began before a time, except those that a process
// works on or a worker is to take, with their workspaces. A session is removed as a whole, once its last turn began before
// that time. Remove also returns their space to the file system, or to the database. It writes in short
// transactions and rests between them, so that other processes can write
// meanwhile. On a full disk it uses the room that the journal keeps in reserve.
//
// It returns the IDs of the removed runs, the newest first and also with an error, and by
// how many bytes the journal shrank, zero with an error. If it is interrupted, a removed run
// may still take space, which the next Remove returns.
func (j *Journal) Remove(ctx context.Context, before time.Time) (runs []string, bytes int64, err error) {
	if j.writer == nil {
		return nil, 0, j.fail("write", ErrReadOnly)
	}
	if err := j.checkWhole(); err != nil {
		return nil, 0, err
	}
	list, err := j.store.runs(ctx, "", all, whole)
	if err != nil {
		return nil, 0, j.fail("read", err)
	}
	now := j.o.Now()
	var turns []Summary // of sessions
	for _, r := range list {
		if r.session == "" {
			continue
		}
		s, err := j.head(ctx, r)
		if err != nil {
			return nil, 0, j.fail("read", err)
		}
		turns = append(turns, s)
	}
	kept := KeptSessions(turns, before)
	old := slices.DeleteFunc(list, func(r row) bool { return !r.started.Before(before) || kept[r.session] || r.queue.NeedsWorker() })
	gone, bytes, err := j.store.remove(ctx, old, func(l *lease) bool { return !j.liveAt(l, now) })
	for _, r := range gone {
		runs = append(runs, r.id)
	}
	if cleaned := j.cleanWorkspaces(ctx); err == nil {
		err = cleaned
	}
	return runs, bytes, j.fail("write", err)
}
