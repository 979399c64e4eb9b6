package specfile

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/provenance"
	"github.com/runteam/runteam/task"
)

// unbounded follows a path in the message about a path that a schema does not bound.
const unbounded = " is not bounded: "

// joined merges problems that differ only in the path of a declassifier, and adds the
// place of the schema that has to bound it.
func (f *File) joined(problems task.Problems) task.Problems {
	type same struct{ entry, message string }
	first := make(map[same]int)
	paths := make(map[int][]string) // of each merged problem
	var kept task.Problems
	for _, p := range problems {
		d, path := f.lowered(p)
		if d == nil {
			kept = append(kept, p)
			continue
		}
		before, after, _ := strings.Cut(p.Message, path+unbounded)
		id := same{d.Name, before + "\n" + after}
		at, known := first[id]
		if !known {
			at = len(kept)
			first[id] = at
			p.Hint = f.withSchema(p)
			kept = append(kept, p)
		}
		if !slices.Contains(paths[at], path) { // several tasks may read one result
			paths[at] = append(paths[at], path)
		}
	}
	for at, all := range paths {
		if len(all) > 1 {
			p := &kept[at]
			p.Pointer = p.Pointer[:strings.LastIndexByte(p.Pointer, '/')]
			p.Message = strings.Replace(p.Message, all[0]+unbounded, enumerate(all, "and")+strings.Replace(unbounded, "is", "are", 1), 1)
		}
	}
	return kept
}

// lowered returns the declassifier and the path that a problem is about; nil for another
// problem.
func (f *File) lowered(p task.Problem) (*handoff.Declassifier, string) {
	parts := tokens(p.Pointer)
	if f.Config.Policy == nil || len(parts) != 5 || parts[0] != "policy" || parts[1] != "declassify" || parts[3] != "paths" {
		return nil, ""
	}
	i, err := strconv.Atoi(parts[2])
	k, err2 := strconv.Atoi(parts[4])
	if all := f.Config.Policy.Declassify; err == nil && err2 == nil && i >= 0 && i < len(all) && k >= 0 && k < len(all[i].Paths) {
		return &all[i], string(all[i].Paths[k])
	}
	return nil, ""
}

// enumerate joins words with a conjunction: "a, b and c".
func enumerate(all []string, conjunction string) string {
	last := len(all) - 1
	if last < 1 {
		return strings.Join(all, "")
	}
	return strings.Join(all[:last], ", ") + " " + conjunction + " " + all[last]
}

// withSchema returns the hint of a problem with the place of the schema that has to bound
// the path.
func (f *File) withSchema(p task.Problem) string {
	i := slices.IndexFunc(f.Tasks, func(t task.Spec) bool {
		return strings.HasPrefix(p.Message, fmt.Sprintf("the result of %q: ", t.Title))
	})
	if i < 0 || !strings.Contains(p.Message, unbounded) {
		return p.Hint
	}
	at := f.places.schemaOf(f, i)
	if at.File == "" {
		return p.Hint
	}
	return strings.Replace(p.Hint, "in the outputSchema", "in the outputSchema ("+at.String()+")", 1)
}

// schemaOf returns the position of the schema of a task's result: of the task or its agent.
func (p *places) schemaOf(f *File, i int) provenance.Position {
	n := p.tasks[i].get("outputSchema")
	if k := slices.IndexFunc(f.Agents, func(a Agent) bool { return a.Member.Name == f.Tasks[i].Assignee }); n == nil && k >= 0 {
		n = p.agents[k].get("outputSchema")
	}
	if n != nil && n.is == isText {
		n = p.named(n.text)
	}
	switch {
	case n == nil:
		return provenance.Position{}
	case p.files[n] != nil:
		return origin(p.files[n], 0)
	}
	return n.origin()
}

// named returns a schema of the key schemas.
func (p *places) named(name string) *node {
	for _, y := range p.layers {
		if n := y.spec.own("schemas").get(name); n != nil {
			return n
		}
	}
	return nil
}
