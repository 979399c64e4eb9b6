package specfile

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/task"
)

// withoutFollowUps removes problems that only follow from others: references to a task or
// an input whose own name is invalid. It replaces a hint that would make a task depend on
// itself.
func withoutFollowUps(problems task.Problems, tasks []task.Spec, inputs []engine.Input) task.Problems {
	bad := refused(tasks, inputs)
	kept := make(task.Problems, 0, len(problems))
	for _, p := range problems {
		i, list, word := reference(p, tasks)
		meant := meantBy(p.Hint)
		switch {
		case list == "":
		case bad[name{list, naming.Normalize(word)}], meant != "" && bad[name{list, naming.Normalize(meant)}]:
			continue
		case list == "dependsOn" && meant != "" && (naming.Normalize(meant) == naming.Normalize(tasks[i].Title) || meant == tasks[i].Key):
			p.Hint = "write the title, the key or the id of another task"
		}
		kept = append(kept, p)
	}
	if len(kept) == 0 {
		return problems
	}
	return kept
}

// follows reports whether a reader is unknown only because of a problem that is reported: it is a
// tool that could not be read, or one that an agent may lack because of that.
func (b *Toolbox) follows(reader string) bool {
	tool, is := strings.CutPrefix(reader, naming.ToolPrefix)
	if b == nil || !is {
		return false
	}
	tool = b.written(tool)
	server, _, _ := strings.Cut(tool, "/")
	e := b.entries[server]
	if b.refused[tool] || b.refused[server] || e != nil && e.wrong {
		return true
	}
	lacking := slices.Contains(slices.Collect(maps.Values(b.unequipped)), true)
	return lacking && (e != nil || slices.Contains(builtIns(), tool))
}

// A name is an entry of dependsOn or uses.
type name struct{ list, word string }

// refused returns the invalid titles and keys of tasks and names of inputs.
func refused(tasks []task.Spec, inputs []engine.Input) map[name]bool {
	bad := make(map[name]bool)
	for i := range tasks {
		if t := &tasks[i]; naming.CheckTitle(t.Title) != nil {
			bad[name{"dependsOn", naming.Normalize(t.Title)}] = true
		}
		if key := tasks[i].Key; naming.KeyFault(key) != "" {
			bad[name{"dependsOn", naming.Normalize(key)}] = true
		}
	}
	for _, in := range inputs {
		if naming.CheckName(in.Name) != nil {
			bad[name{"uses", naming.Normalize(in.Name)}] = true
		}
	}
	return bad
}

// reference returns the task, the list and the name that a problem of a reference is about;
// an empty list for another problem.
func reference(p task.Problem, tasks []task.Spec) (i int, list, word string) {
	parts := tokens(p.Pointer)
	if len(parts) != 4 || parts[0] != "tasks" {
		return 0, "", ""
	}
	i, err := strconv.Atoi(parts[1])
	k, err2 := strconv.Atoi(parts[3])
	if err != nil || err2 != nil || i < 0 || k < 0 || i >= len(tasks) {
		return 0, "", ""
	}
	switch {
	case parts[2] == "dependsOn" && k < len(tasks[i].DependsOn) && errors.Is(p, task.ErrUnknown):
		return i, parts[2], tasks[i].DependsOn[k].Task
	case parts[2] == "uses" && k < len(tasks[i].Uses) && !errors.Is(p, task.ErrDuplicate):
		return i, parts[2], tasks[i].Uses[k].Name
	}
	return 0, "", ""
}

// meantBy returns the word of a hint such as `did you mean "Score"?`, or "".
func meantBy(hint string) string {
	quoted, _ := strings.CutPrefix(hint, "did you mean ")
	word, _ := strconv.Unquote(strings.TrimSuffix(quoted, "?")) // "" for another hint
	return word
}
