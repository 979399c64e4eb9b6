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
	reasons := map[task.ID]string{}
	if end := r.memo.End(); end != nil {
		for i := range end.Tasks {
			if e := &end.Tasks[i]; e.Status == task.Skipped && e.Root == "" {
				reasons[e.Task] = e.Reason
			}
		}
	}
	r.queue.SkipRemaining(func(i int) string {
		return cmp.Or(reasons[r.tasks[i].ID], "Skipped: it did not run in the run that is replayed.")
	}, time.Now())
}
