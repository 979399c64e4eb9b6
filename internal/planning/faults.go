package planning

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/task"
)

// MaxFaults is how many problems [Faults] lists before it only counts.
const MaxFaults = 50

// Faults writes problems for the coordinator: a line for each, with
// the task's number and title, the key, what is wrong and what to write. Each
// line is clean, at most 400 characters long, and quotes nothing that could be
// read as more than words; after [MaxFaults] a last one counts the rest. They
// do quote the plan: they are for its author.
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

// fault writes one problem, with as many of the plan's own words as are
// harmless: all of them, or without the title, or none.
func fault(p task.Problem) string {
	short := "the plan"
	if n := number(p.Pointer); n != "" {
		short = "task " + n
		if title, ok := strings.CutPrefix(p.Subject, `task "`); ok {
			p.Subject = short + ` "` + title
		}
	}
	for _, subject := range [...]string{p.Subject, short} {
		p.Subject = subject
		if line := oneLine(p.Error(), maxFaultLine); gate.CheckUnfenced(line) == nil {
			return line
		}
	}
	key := "a value"
	if parts := strings.Split(p.Pointer, "/"); len(parts) > 3 && isKey(keysOf(Constructs{true, true, true, true}), parts[3]) {
		key = parts[3]
	}
	return short + ": " + key + ": it cannot be repeated here: reword it"
}

// number returns the number of the task that a pointer leads into, such as 3, or 3.1 for the first
// task of a loop; "" if it leads into none.
func number(pointer string) string {
	n := naming.TaskIndex(pointer)
	if n < 0 {
		return ""
	}
	if inner, ok := strings.CutPrefix(pointer, naming.Pointer("tasks", n, "repeat")); ok && naming.TaskIndex(inner) >= 0 {
		return fmt.Sprintf("%d.%d", n+1, naming.TaskIndex(inner)+1)
	}
	return strconv.Itoa(n + 1)
}
