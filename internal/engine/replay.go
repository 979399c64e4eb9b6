package engine

import (
	"time"

	"github.com/runteam/runteam/task"
)

// skipUnrepeated skips what the run that is replayed never began, for the
// reason that it had.
func (r *results) skipUnrepeated() {
	if !r.priorRun.isStrict() || r.queue.IsComplete() {
		return
	}
	if end := r.priorRun.history.End; end != nil && Status(end.Status) == StatusSuspended {
		return // what it did not begin, it may begin yet
	}
	reason := "Skipped: it did not run in the run that is replayed."
	if end := r.priorRun.history.End; end != nil {
		for i := range end.Tasks {
			if e := &end.Tasks[i]; e.Status == task.Skipped && e.Reason != "" && e.Root == "" {
				reason = e.Reason
			}
		}
	}
	r.queue.SkipRemaining(reason, time.Now())
}
