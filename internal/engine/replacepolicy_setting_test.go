package engine_test

import (
	"hash/fnv"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/runteam/runteam/task"
)

// changedSchema is that of results that decide what runs.
const changedSchema = `{"type":"object","required":["score","ssn","ok","list"],"properties":{"score":{"type":"string"},"ssn":{"type":"string"},"ok":{"type":"boolean"},"list":{"type":"array","maxItems":3,"items":{"type":"string"}}}}`

// drawConstructs makes branches, lists and loops of some tasks. Both policies then deliver what decides about them to
// who performs them: else no run would begin.
func (c *changedRun) drawConstructs(t *rapid.T) {
	decides := map[string]bool{} // titles of tasks whose results may decide
	each := map[string]bool{}    // titles of tasks for each item of a list
	branch := map[string]bool{}  // titles of tasks that may be skipped
	var other []task.Spec        // of branches
	for i := range c.specs {
		s := &c.specs[i]
		for k := range s.DependsOn {
			ref := &s.DependsOn[k]
			ref.Optional = branch[ref.Task]
			if each[ref.Task] {
				*ref = task.Ref{Each: ref.Task}
			}
		}
		from := slices.IndexFunc(s.DependsOn, func(r task.Ref) bool { return decides[r.Task] && !r.Optional })
		switch kind := rapid.IntRange(0, 5).Draw(t, "construct"); {
		case kind == 0:
			c.specs[i] = c.loop(t, s)
		case kind == 1 && from >= 0:
			dep := s.DependsOn[from].Task
			s.When, branch[s.Title] = task.Equals(dep, "/ok", rapid.Bool().Draw(t, "when")), true
			last := *s
			last.Title, last.When = s.Title+" else", task.Not(s.When)
			other = append(other, last)
			c.allow(dep, s.Assignee)
		case kind == 2 && from >= 0:
			dep := s.DependsOn[from].Task
			s.ForEach, each[s.Title] = &task.ForEach{Task: dep, Path: "/list", As: "item", MaxItems: rapid.IntRange(1, 3).Draw(t, "items"), OnOverflow: "first"}, true
			s.DependsOn = slices.Delete(s.DependsOn, from, from+1)
			c.allow(dep, s.Assignee)
		default:
			s.OutputSchema, decides[s.Title] = []byte(changedSchema), true
		}
	}
	c.specs = append(c.specs, other...)
}

// loop returns a loop of two tasks of the agent of s, in its place.
func (c *changedRun) loop(t *rapid.T, s *task.Spec) task.Spec {
	inner, check := *s, *s
	inner.Title, check.Title = s.Title+" work", s.Title+" check"
	inner.DependsOn = append(slices.Clone(s.DependsOn), task.Ref{Task: check.Title, Round: task.Previous, Optional: true})
	check.DependsOn, check.OutputSchema = task.On(inner.Title), []byte(changedSchema)
	for _, own := range []string{inner.Title, check.Title} {
		c.calls[own], c.sends[own] = c.calls[s.Title], c.sends[s.Title]
	}
	c.allow(s.Title, s.Assignee)
	return task.Spec{Title: s.Title, Repeat: &task.Repeat{
		Tasks: []task.Spec{inner, check}, MaxRounds: rapid.IntRange(1, 3).Draw(t, "rounds"), Until: task.Equals(check.Title, "/ok", true), Output: check.Title,
	}}
}

// allow has both policies deliver what a task says, except for what is personal, to an agent.
func (c *changedRun) allow(title, to string) {
	at := slices.IndexFunc(c.specs, func(s task.Spec) bool { return s.Title == title })
	for _, of := range []map[[2]string]share{c.before, c.after} {
		if pair := [2]string{c.specs[at].Assignee, to}; of[pair] == nothing && shareOf(of, pair[0], pair[1]) == nothing {
			of[pair] = score
		}
	}
}

// writtenTitle returns the title of the task that an instance is of.
func writtenTitle(instance string) string {
	title, _, _ := strings.Cut(instance, "#")
	title, _, _ = strings.Cut(title, "[")
	return title
}

// decisionOf is what a task says that decides: whether it is done, and a list.
func decisionOf(title string) (ok bool, list []string) {
	h := fnv.New32a()
	_, _ = h.Write([]byte(title))
	sum := h.Sum32()
	return sum%2 == 0, []string{"a", "b", "c"}[:sum/2%4]
}

// source returns the instance whose result a reference delivers in full; nil if it is not known, or it delivers less.
func (c *changedRun) source(ref *task.Ref) *task.Spec {
	if ref.Item != "" || ref.Round != "" {
		return nil
	}
	names := append([]string{ref.Task}, ref.OneOf...)
	for _, name := range names {
		at := slices.IndexFunc(c.instances, func(s task.Spec) bool { return s.Title == name })
		if at < 0 {
			continue
		}
		s := &c.instances[at]
		if s.Assignee == "" { // a loop, which has the result of its last round
			for k := range s.DependsOn {
				if last := c.source(&s.DependsOn[k]); last != nil {
					return last
				}
			}
		}
		if len(c.given[name]) > 0 {
			return s
		}
	}
	return nil
}
