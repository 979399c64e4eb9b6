package planning

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/runteam/runteam/internal/brief"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/task"
)

// The values of a planned task, one method a key. None is called with null, which
// requires nothing. What task.Resolve checks is left to it.

func (r *reader) title(v any) {
	if text, ok := r.text(v, "title"); ok {
		r.spec.Title = text
		r.words(text, "title")
	}
}

func (r *reader) role(v any) {
	if text, ok := r.text(v, "role"); ok {
		r.spec.Role = text
		r.words(text, "role")
	}
}

// words refuses a line that is written into prompts without a fence and that could
// be read there as structure. Unless it is a title, that is all that checks the line.
func (r *reader) words(line, key string, path ...any) {
	if err := naming.CheckTitle(line); err != nil {
		if len(path) > 0 { // of titles and roles, Resolve says why
			r.bad(err, key+": "+err.Error(), "reword it", path...)
		}
		return
	}
	if len(path) == 0 {
		path = []any{key}
	}
	if at, opener := brief.Opener(line); at > 0 {
		r.bad(task.ErrInvalid, fmt.Sprintf("%s: it begins with %q, which is reserved for the prompt's own lines", key, opener), "reword it", path...)
	} else if err := gate.CheckUnfenced(line); err != nil {
		r.bad(err, fmt.Sprintf("%s: %v", key, err), "reword it", path...)
	}
}

func (r *reader) description(v any) {
	text, ok := r.text(v, "description")
	if !ok {
		return
	}
	text = strings.ReplaceAll(text, "\r\n", "\n")
	r.spec.Description = text
	if len(text) > MaxDescription {
		r.bad(task.ErrInvalid, fmt.Sprintf("description: %d bytes, at most %d", len(text), MaxDescription), "say it in fewer words", "description")
		return
	}
	n := 0
	for line := range strings.SplitSeq(text, "\n") {
		n++
		if err := naming.CheckLine(strings.ReplaceAll(line, "\t", " ")); err != nil {
			r.bad(err, fmt.Sprintf("description: line %d: %v", n, err), "leave the character out", "description")
			return
		}
	}
	if line, opener := brief.Opener(text); line > 0 {
		r.bad(task.ErrInvalid, fmt.Sprintf("description: line %d begins with %q, which is reserved for the prompt's own lines", line, opener), "reword it", "description")
	}
}

func (r *reader) assignee(v any) { r.spec.Assignee = r.agent(v, "assignee") }

// agent reads the name of an agent.
func (r *reader) agent(v any, path ...any) string {
	agent, ok := r.text(v, path...)
	if ok && !r.agents[agent] {
		r.bad(ErrUnknownAgent, name(path)+": unknown agent "+quote(agent), r.nearest(agent, r.rules.Agents), path...)
	}
	return agent
}

func (r *reader) dependsOn(v any) { r.spec.DependsOn = r.dependencies(v, "dependsOn") }

func (r *reader) memoryScope(v any) {
	word, ok := r.text(v, "memoryScope")
	if !ok {
		return
	}
	if r.spec.MemoryScope = task.MemoryScope(word); r.spec.MemoryScope == task.ScopeAll && !r.rules.MayGrant.Memory {
		r.bad(ErrGrant, "memoryScope: all: "+ErrGrant.Error(), "remove it, and name in dependsOn what the task needs", "memoryScope")
	}
}

func (r *reader) priority(v any) {
	if word, ok := r.text(v, "priority"); ok {
		r.spec.Priority = task.Priority(word)
	}
}

// maxRetries counts a negative number as 0, as files do.
func (r *reader) maxRetries(v any) {
	const hint = "write a whole number from 0 to 10"
	r.spec.MaxRetries = max(r.integer(v, math.MinInt32, MaxTaskRetries, hint, "maxRetries"), 0)
}

func (r *reader) retryDelay(v any) {
	const most = float64(MaxRetryDelay / time.Millisecond)
	ms, ok := r.number(v, 0, most, fmt.Sprintf("write milliseconds, 0 to %.0f", most), "retryDelayMs")
	if !ok {
		return
	}
	r.spec.RetryDelay = time.Duration(math.Round(ms * float64(time.Millisecond)))
	if r.spec.RetryDelay == 0 {
		r.spec.RetryDelay = task.NoDelay
	}
}

func (r *reader) retryBackoff(v any) {
	if f, ok := r.number(v, 1, MaxRetryBackoff, "write a factor from 1 to 1000", "retryBackoff"); ok {
		r.spec.RetryBackoff = f
	}
}

func (r *reader) requires(v any) {
	members, ok := v.(map[string]any)
	if !ok {
		r.bad(task.ErrInvalid, "requires: "+describe(v)+" where an object belongs", `write {"requiredCapabilities": […]}, or remove it`, "requires")
		return
	}
	if len(members) > maxKeys {
		r.bad(ErrUnknownKey, fmt.Sprintf("requires: %d keys, more than there are", len(members)), "write only "+strings.Join(required, ", "), "requires")
		return
	}
	q := task.Requires{}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		r.requirement(&q, name, members[name])
	}
	if len(q.Capabilities)+len(q.Backend)+len(q.Provider) > 0 {
		r.spec.Requires = &q
	}
}

// required are the keys of requires. The tools of a planned task are required anyway.
var required = []string{"requiredCapabilities", "requiredBackend", "requiredProvider"}

// requirement reads one key of requires.
func (r *reader) requirement(q *task.Requires, name string, v any) {
	if list, empty := v.([]any); name == "requiredTools" && v != nil && !(empty && len(list) == 0) {
		hint := "remove it"
		if r.rules.MayGrant.Tools {
			hint = "name the tools in tools of the task"
		}
		r.bad(ErrUnknownKey, "requires: requiredTools: a plan does not set it", hint, "requires", name)
		return
	}
	if !slices.Contains(required, name) && name != "requiredTools" {
		r.bad(ErrUnknownKey, "requires: unknown key "+quote(name), r.nearest(name, required), "requires", oneLine(name, maxWord))
		return
	}
	if v == nil {
		return
	}
	switch name {
	case "requiredCapabilities":
		q.Capabilities = r.short(v, maxCapabilities, "requires", name)
	case "requiredBackend":
		q.Backend, _ = r.text(v, "requires", name)
	case "requiredProvider":
		q.Provider, _ = r.text(v, "requires", name)
	}
}

// short reads a list of at most most texts.
func (r *reader) short(v any, most int, path ...any) []string {
	if list, ok := v.([]any); ok && len(list) > most {
		r.bad(task.ErrInvalid, fmt.Sprintf("%v: %d entries, at most %d", path[len(path)-1], len(list), most), "name only what the task cannot do without", path...)
		return nil
	}
	return r.texts(v, path...)
}
