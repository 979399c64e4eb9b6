package task

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/runteam/runteam/internal/naming"
)

// maxSchemaDepth bounds how deep references in a schema are followed.
const maxSchemaDepth = 32

// boundLists sets the MaxItems that lists of a scope do not set, from the outputSchema of the task
// whose result has the list. What is left without one is reported later.
func (in *scope) boundLists() {
	for i := range in.specs {
		f := in.specs[i].ForEach
		if f == nil || f.MaxItems != 0 || f.Input != "" {
			continue
		}
		if from := in.specNamed(f.Task); from != nil {
			f = new(*f)
			f.MaxItems = mostItems(from.OutputSchema, f.Path)
			in.specs[i].ForEach = f
		}
	}
}

// BoundLists returns specs in which MaxItems of lists in results is set where neither the list nor the OutputSchema of
// its task sets it: from the schema that the task has otherwise, such as that of its agent. schemaOf returns that
// schema; nil if it is not known. Specs without such lists are returned as they are.
func BoundLists(specs []Spec, schemaOf func(*Spec) json.RawMessage) []Spec {
	return (&scope{specs: specs}).boundBy(schemaOf)
}

// boundBy is BoundLists for the tasks of a scope.
func (in *scope) boundBy(schemaOf func(*Spec) json.RawMessage) []Spec {
	if !slices.ContainsFunc(in.specs, func(s Spec) bool { return s.ForEach != nil || s.Repeat != nil }) {
		return in.specs
	}
	out := slices.Clone(in.specs)
	for i := range out {
		s := &out[i]
		if s.Repeat != nil {
			s.Repeat = new(*s.Repeat)
			s.Repeat.Tasks = (&scope{outer: in, specs: s.Repeat.Tasks}).boundBy(schemaOf)
		}
		if s.ForEach == nil {
			continue
		}
		f := new(*s.ForEach)
		s.ForEach = f
		if from := in.specNamed(f.Task); f.MaxItems == 0 && f.Input == "" && from != nil && from.OutputSchema == nil && from.Value == nil {
			f.MaxItems = mostItems(schemaOf(from), f.Path)
		}
		f.Tasks = (&scope{outer: in, specs: f.Tasks}).boundBy(schemaOf)
	}
	return out
}

// specNamed returns the task that writes the result that a name means, in a scope or around it; nil
// if there is none.
func (in *scope) specNamed(name string) *Spec {
	for s := in; s != nil; s = s.outer {
		if n := slices.IndexFunc(s.specs, func(t Spec) bool { return isNamed(&t, name) || string(NewID(t.Title)) == name }); n >= 0 {
			return resultOf(&s.specs[n])
		}
	}
	return nil
}

// resultOf is writerOf for a spec that may be wrong: nil if it has no result.
func resultOf(s *Spec) *Spec {
	for s.Repeat != nil {
		n := slices.IndexFunc(s.Repeat.Tasks, func(t Spec) bool { return isNamed(&t, s.Repeat.Output) })
		if n < 0 {
			return nil
		}
		s = &s.Repeat.Tasks[n]
	}
	return s
}

// mostItems returns how many items a list can have by the schema of the value that it is in; zero if
// the schema sets no bound.
func mostItems(schema json.RawMessage, list Path) int {
	return listSchema{root: schema}.most(schema, strings.Split(string(list), "/")[1:], 0)
}

// A listSchema looks for a list in a schema.
type listSchema struct{ root json.RawMessage }

// most returns the lowest bound on the list that a part of the schema sets.
func (l listSchema) most(part json.RawMessage, path []string, depth int) (least int) {
	var node struct {
		Ref        string                     `json:"$ref"`
		AllOf      []json.RawMessage          `json:"allOf"`
		Properties map[string]json.RawMessage `json:"properties"`
		Items      json.RawMessage            `json:"items"`
		MaxItems   *int                       `json:"maxItems"`
	}
	if depth > maxSchemaDepth || json.Unmarshal(part, &node) != nil {
		return 0
	}
	take := func(bound int) {
		if bound > 0 && (least == 0 || bound < least) {
			least = bound
		}
	}
	for _, of := range node.AllOf {
		take(l.most(of, path, depth+1))
	}
	if node.Ref != "" {
		take(l.most(l.at(node.Ref), path, depth+1))
	}
	switch {
	case len(path) == 0 && node.MaxItems != nil:
		take(*node.MaxItems)
	case len(path) == 0:
	case node.Properties[naming.Unescape(path[0])] != nil:
		take(l.most(node.Properties[naming.Unescape(path[0])], path[1:], depth+1))
	case isIndex(path[0]) && node.Items != nil:
		take(l.most(node.Items, path[1:], depth+1))
	}
	return least
}

// at returns what a reference within the schema, such as #/$defs/list, means; nil if that is nothing.
func (l listSchema) at(ref string) json.RawMessage {
	rest, ok := strings.CutPrefix(ref, "#")
	part := l.root
	for ok && rest != "" {
		var name string
		name, rest, _ = strings.Cut(strings.TrimPrefix(rest, "/"), "/")
		var members map[string]json.RawMessage
		if json.Unmarshal(part, &members) != nil {
			return nil
		}
		part = members[naming.Unescape(name)]
	}
	if !ok {
		return nil
	}
	return part
}

// isIndex reports whether a segment of a path is the index of an item.
func isIndex(segment string) bool {
	n, err := strconv.Atoi(segment)
	return err == nil && n >= 0
}
