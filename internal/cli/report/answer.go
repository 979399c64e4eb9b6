package report

import (
	"slices"
	"strings"

	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/task"
)

// Answer is the result as text: the answer of the run and, if the run did not
// come to its end, the finished work that nothing finished has used. One piece
// is printed as it is; several, each under its title. The coordinator's answer
// has used all of it. Output are the tasks that make the answer; none do if the
// coordinator makes it.
func Answer(output []task.ID, res *engine.Result) string {
	if res.Success() || synthesized(res) {
		return res.Output
	}
	used := make(map[task.ID]bool)
	for i := range res.Tasks {
		if t := &res.Tasks[i]; t.Status == task.Completed {
			for _, up := range t.DependsOn {
				used[up] = true
			}
		}
	}
	var parts []string
	whole := true // nothing but the answer
	for i := range res.Tasks {
		t := &res.Tasks[i]
		wanted := slices.Contains(output, t.ID)
		if t.Status != task.Completed || t.Result == "" || used[t.ID] && !wanted {
			continue
		}
		whole = whole && wanted
		parts = append(parts, "# "+t.Title+"\n\n"+t.Result)
	}
	if whole {
		return res.Output
	}
	return strings.Join(parts, "\n\n")
}

// synthesized reports whether the coordinator answered the goal, and not with nothing.
func synthesized(res *engine.Result) bool {
	n := len(res.Steps)
	return n > 0 && res.Output != "" && res.Steps[n-1].Kind == engine.StepSynthesis && res.Steps[n-1].Error == nil
}
