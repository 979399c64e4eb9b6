package flow

import (
	"fmt"
	"slices"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/internal/pick"
	"github.com/runteam/runteam/task"
)

// A resolvedSubject is the subject of an assertion in a graph.
type resolvedSubject struct {
	subject
	text  string                 // `property "ssn"`, or the path; empty without one
	known func(s *Source) Answer // whether a source has it; nil if all have
}

// resolve finds the subject of an assertion.
func (w *ways) resolve(s Subject) (*resolvedSubject, error) {
	switch s.Kind {
	case OfInput:
		return w.input(s)
	case OfTask:
		return w.result(s)
	case Property:
		return w.property(s.Name)
	}
	return nil, wrong(fmt.Sprintf("no kind of subject %q", string(s.Kind)), forms)
}

func (w *ways) input(s Subject) (*resolvedSubject, error) {
	var known []string
	for i := range w.g.Sources {
		if in := &w.g.Sources[i]; in.Kind == handoff.Input {
			if in.Name == s.Name {
				return w.at(s.Path, i)
			}
			known = append(known, in.Name)
		}
	}
	return nil, unknown("no input "+quoted(s.Name, false), naming.Suggest(s.Name, known))
}

// result finds the results of the task that s names. Several have one title if they are drafts, which
// judges see, and the one that they accept, or the results of a loop and of a task in it: all of them
// are meant.
func (w *ways) result(s Subject) (*resolvedSubject, error) {
	ref := naming.Normalize(s.Name)
	var known []string
	var found []int
	titled := 0
	for i := range w.g.Sources {
		r := &w.g.Sources[i]
		if r.Kind != handoff.Dependency || r.Task < 0 {
			continue
		}
		tk, title := &w.g.Tasks[r.Task], w.titleOf(r)
		known = append(known, title)
		if tk.Key != "" {
			known = append(known, tk.Key)
		}
		if naming.Normalize(title) == ref || ref != "" && (tk.Key == ref || string(tk.ID) == ref) {
			found = append(found, i)
		}
		if naming.Normalize(title) == ref {
			titled++
		}
	}
	switch len(found) {
	case 0:
		return nil, unknown("no task "+quoted(s.Name, false), naming.Suggest(s.Name, known))
	case 1, titled:
		return w.at(s.Path, found...)
	}
	first, second := w.titleOf(&w.g.Sources[found[0]]), w.titleOf(&w.g.Sources[found[1]])
	return nil, task.Problem{
		Message: quoted(s.Name, false) + " names several tasks: " + quoted(first, false) + " and " + quoted(second, false),
		Hint:    "write a title that is no other task's key or id", Err: task.ErrAmbiguous,
	}
}

// titleOf returns the title of the task that has a result. The answer that several agents make in its
// place is a step of its own.
func (w *ways) titleOf(result *Source) string {
	if tk := &w.g.Tasks[result.Task]; tk.Agent != Nobody {
		return tk.Title
	}
	return result.Name
}

// at narrows sources to a path.
func (w *ways) at(path task.Path, sources ...int) (*resolvedSubject, error) {
	x := &resolvedSubject{subject: subject{sources: sources}}
	if err := pick.CheckAllow(path); err != nil {
		return nil, wrong(err.Error(), "write the path as in need: /facts/*/score")
	}
	tokens := pick.Tokens(path)
	if len(tokens) == 0 {
		return x, nil
	}
	x.text = string(path)
	x.known = func(s *Source) Answer { return s.has(tokens) }
	x.part = memoized(func(s *pick.Selection) bool { return s.MayPass(tokens) })
	for _, source := range sources {
		name := w.sourceStep(source).String()
		switch src := &w.g.Sources[source]; {
		case !src.Structured():
			return nil, wrong(name+" is a text, which has no paths", "leave the path out")
		case src.has(tokens) == No:
			return nil, unknown(name+" can have nothing at "+string(path), w.nearMembers(tokens[len(tokens)-1], []int{source}, "write a path that it has, or leave it out"))
		}
	}
	return x, nil
}

// property finds the sources that can have a member of this name.
func (w *ways) property(name string) (*resolvedSubject, error) {
	x := &resolvedSubject{subject: subject{part: memoized(named(name))}, text: "property " + quoted(name, false)}
	for i := range w.g.Sources { // the results of a tool, which has the name of no property
		if s := &w.g.Sources[i]; s.Kind == handoff.ToolResult && s.Name == name {
			x.sources, x.part, x.text = append(x.sources, i), nil, ""
		}
	}
	if len(x.sources) > 0 {
		return x, nil
	}
	x.known = func(s *Source) Answer { return s.names(name) }
	for i := range w.g.Sources {
		if w.g.Sources[i].names(name) != No {
			x.sources = append(x.sources, i)
		}
	}
	if len(x.sources) == 0 {
		return nil, unknown("no input and no result can have a property "+quoted(name, false), w.propertyHint(name))
	}
	return x, nil
}

// named returns a function that reports whether a selection may pass a member of
// this name. A source may spell the name in another way that blocks treat as equal
// and grants do not, so each such spelling in a grant is checked too.
func named(name string) func(*pick.Selection) bool {
	own := pick.Loose(name)
	return func(s *pick.Selection) bool {
		if s.MayPassName(name) {
			return true
		}
		lists, _ := s.Paths()
		for _, list := range lists {
			for _, path := range list {
				if slices.ContainsFunc(pick.Tokens(path), func(token string) bool { return pick.Loose(token) == own && s.MayPassName(token) }) {
					return true
				}
			}
		}
		return false
	}
}

// memoized calls part once for each selection, since many edges share one. The
// function that it returns is for one goroutine.
func memoized(part func(*pick.Selection) bool) func(*pick.Selection) bool {
	known := map[pick.Selection]bool{}
	return func(s *pick.Selection) bool {
		may, ok := known[*s]
		if !ok {
			may = part(s)
			known[*s] = may
		}
		return may
	}
}

// propertyHint returns a hint for a name that is no property.
func (w *ways) propertyHint(name string) string {
	all := make([]int, len(w.g.Sources))
	for i := range all {
		all[i] = i
		s := &w.g.Sources[i]
		if s.Kind == handoff.Input && s.Name == name {
			return "write input " + quoted(name, plainName(name)) + " for the input of this name"
		}
		if s.Kind == handoff.Dependency && s.Task >= 0 && (w.g.Tasks[s.Task].Key == name || s.Name == name) {
			return "write task " + quoted(name, plainName(name)) + " for the result of this task"
		}
	}
	return w.nearMembers(name, all, "write a property of a schema or a structured input, or input NAME or task \"TITLE\"")
}

// nearMembers returns a hint that names the member of the sources nearest to a name,
// or else the general hint.
func (w *ways) nearMembers(name string, sources []int, general string) string {
	var known []string
	for _, s := range sources {
		known = append(known, w.g.Sources[s].Members...)
	}
	if near, ok := naming.Nearest(name, known); ok {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return general
}
