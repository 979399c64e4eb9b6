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
		of, list, word := reference(p, tasks)
		meant := meantBy(p.Hint)
		switch {
		case list == "":
		case bad[name{list, naming.Normalize(word)}], meant != "" && bad[name{list, naming.Normalize(meant)}]:
			continue
		case list == "dependsOn" && meant != "" && (naming.Normalize(meant) == naming.Normalize(of.Title) || meant == of.Key):
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
	for t := range AllTasks(tasks) {
		if naming.CheckTitle(t.Title) != nil {
			bad[name{"dependsOn", naming.Normalize(t.Title)}] = true
		}
		if naming.KeyFault(t.Key) != "" {
			bad[name{"dependsOn", naming.Normalize(t.Key)}] = true
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
func reference(p task.Problem, tasks []task.Spec) (of *task.Spec, list, word string) {
	of, rest := specAt(tasks, tokens(p.Pointer))
	if of == nil || len(rest) != 2 {
		return nil, "", ""
	}
	k, err := strconv.Atoi(rest[1])
	if err != nil || k < 0 {
		return nil, "", ""
	}
	switch {
	case rest[0] == "dependsOn" && k < len(of.DependsOn) && errors.Is(p, task.ErrUnknown):
		return of, rest[0], of.DependsOn[k].Task
	case rest[0] == "uses" && k < len(of.Uses) && !errors.Is(p, task.ErrDuplicate):
		return of, rest[0], of.Uses[k].Name
	}
	return nil, "", ""
}

// meantBy returns the word of a hint such as `did you mean "Score"?`, or "".
func meantBy(hint string) string {
	quoted, _ := strings.CutPrefix(hint, "did you mean ")
	word, _ := strconv.Unquote(strings.TrimSuffix(quoted, "?")) // "" for another hint
	return word
}
