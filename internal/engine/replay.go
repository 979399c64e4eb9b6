package engine

import (
	"cmp"
	"time"

	"github.com/runteam/runteam/internal/memo"
	"github.com/runteam/runteam/task"
)

// skipUnrepeated skips the tasks without an outcome in the run that is replayed, each for the
// reason that it had there.
func (r *results) skipUnrepeated() {
	if !r.memo.Is(memo.Strict) || r.queue.IsComplete() {
		return
	}
	if end := r.memo.End(); end != nil && Status(end.Status) == StatusSuspended {
		return // what it did not begin, it may begin yet
	}
	r.queue.SkipRemaining(func(i int) string {
		why := ""
		if t := r.memo.State.Find(r.tasks[i].ID); t != nil {
			if end := r.memo.State.EndOf(t); end.Status == task.Skipped && end.Root == "" {
				why = end.Reason
			}
		}
		return cmp.Or(why, "Skipped: it did not run in the run that is replayed.")
	}, time.Now())
}
