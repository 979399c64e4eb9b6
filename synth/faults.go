package synth

import (
	"fmt"
	"strings"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/task"
)

// MaxFaults is how many problems [Faults] lists before it only counts.
const MaxFaults = 50

// Faults writes problems as the coordinator reads them: a line for each, with
// the task's number and title, the key, what is wrong and what to write. Each
// line is clean, at most 400 characters long, and quotes nothing that could be
// read as more than words; after [MaxFaults] a last one counts the rest. They
// do quote the plan: they are for whoever wrote it.
func Faults(problems task.Problems) string {
	var b strings.Builder
	for i := range problems {
		if i > 0 {
			b.WriteByte('\n')
		}
		if i == MaxFaults {
			fmt.Fprintf(&b, "- and %d more", len(problems)-MaxFaults)
			break
		}
		b.WriteString("- " + fault(problems[i]))
	}
	return b.String()
}

// fault writes one problem, with as many of the plan's own words as are harmless.
func fault(p task.Problem) string {
	n := p.Task()
	if n < 0 {
		return harmlessOr(p, p.Subject)
	}
	number := fmt.Sprintf("task %d", n+1)
	if title, ok := strings.CutPrefix(p.Subject, `task "`); ok {
		p.Subject = number + ` "` + title
	}
	return harmlessOr(p, number)
}

// harmlessOr writes a problem, or with a shorter subject, or without what it quotes.
func harmlessOr(p task.Problem, subject string) string {
	for _, p.Subject = range [...]string{p.Subject, subject} {
		if line := oneLine(p.Error(), maxFaultLine); handoff.Harmless(line) == nil {
			return line
		}
	}
	key := "a value"
	if parts := strings.Split(p.Pointer, "/"); len(parts) > 3 && isKey(parts[3]) {
		key = parts[3]
	}
	return subject + ": " + key + ": it cannot be repeated here: word it differently"
}
