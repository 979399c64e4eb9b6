package specfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/runteam/runteam/internal/provenance"
	"github.com/runteam/runteam/task"
)

// tasks writes the tasks of a plan, each without defaults.
func (s *saver) tasks(tasks []task.Spec) *node {
	all := listNode()
	for i := range tasks {
		n := s.task(&tasks[i])
		s.check(taskName(i, tasks[i].Title), n)
		all.add(n)
	}
	return all
}

// task writes the values of one task that are not the default.
func (s *saver) task(t *task.Spec) *node {
	n, spec := objectNode(), *t
	spec.MaxRetries = max(spec.MaxRetries, 0)
	who, what, bounds := taskMembers(&spec)
	who.write(n)
	if t.Requires != nil {
		n.set("requires", requiresMembers(t.Requires).node())
	}
	n.set("dependsOn", namesNode(t.DependsOn, "task", dependencyMembers))
	when, err := conditionNode(t.When)
	if err != nil {
		s.wrong("when: %v", err)
	}
	n.set("when", when)
	if t.Repeat != nil || t.ForEach != nil && len(t.ForEach.Tasks) > 0 {
		members{{"onFailure", &spec.OnFailure}}.write(n)
	}
	if t.Repeat != nil {
		n.set("repeat", loopNode(s, t.Repeat))
		return n
	}
	if t.ForEach != nil {
		n.set("forEach", forEachNode(s, t.ForEach))
		if len(t.ForEach.Tasks) > 0 {
			return n
		}
	}
	n.set("verify", verifyNode(s, t.Verify))
	n.set("uses", namesNode(t.Uses, "name", useMembers))
	n.set("tools", toolsNode(s, t.Tools))
	what.write(n)
	if t.Workspace != nil {
		n.set("workspace", workspaceMembers(t.Workspace).node())
	}
	if t.Source.Record != nil {
		n.set("provenance", provenanceMembers(t.Source.Record).node())
	}
	if t.Description != "" || !t.IsComputed() {
		n.set("description", s.words(t.Description, t.Source.Params))
	}
	if t.Value != nil {
		value, err := parseValue(t.Value)
		if err != nil {
			s.wrong("value: %v", err)
		}
		n.set("value", value)
	}
	if t.Template != "" {
		n.set("template", textNode(t.Template))
	}
	n.set("outputSchema", s.schema(t.OutputSchema))
	bounds.write(n)
	n.set("metadata", s.metadata(t.Metadata))
	return n
}

// check reports values of a task that a spec cannot express.
func (s *saver) check(who string, n *node) {
	l := &report{subject: func() string { return "the plan: " + who + ": " }}
	l.fields(n, "task", nil)
	for _, in := range [...]struct{ key, place string }{{"requires", "requires"}, {"provenance", "provenance"}, {"dependsOn", "dependency"}, {"uses", "use"}, {"verify", "verify"}} {
		for _, part := range objects(n.get(in.key)) {
			l.fields(part, in.place, nil)
		}
	}
	if text(n.get("memoryScope")) == string(task.ScopeAll) && text(s.p.sharedMemory()) == "false" {
		l.bad(n, "", "memoryScope: all needs the shared memory, and sharedMemory is false")
	}
	for _, f := range l.found {
		s.found = append(s.found, finding{Problem: f.Problem})
	}
}

// objects returns an object itself, or the objects in a list.
func objects(n *node) (all []*node) {
	if n != nil && n.is == isObject {
		return []*node{n}
	}
	for _, item := range n.parts() {
		if item.is == isObject {
			all = append(all, item)
		}
	}
	return all
}

// words writes a text with the parameters of the spec, and escapes texts that only look
// like one.
func (s *saver) words(text string, params []provenance.Param) *node {
	if !utf8.ValidString(text) {
		s.wrong("a text is not valid UTF-8")
	}
	var out, plain strings.Builder
	flush := func() {
		out.WriteString(strings.ReplaceAll(plain.String(), paramOpen, opening+"params."+dollar+"}"+paramOpen[len(dollar):]))
		plain.Reset()
	}
	at := 0
	for _, p := range params {
		if p.Start < at || p.End < p.Start || p.End > len(text) {
			break
		}
		plain.WriteString(text[at:p.Start])
		if known := s.p.params[p.Name]; known != nil && known.value == text[p.Start:p.End] {
			flush()
			out.WriteString(paramOpen + p.Name + "}")
		} else {
			plain.WriteString(text[p.Start:p.End])
		}
		at = p.End
	}
	plain.WriteString(text[at:])
	flush()
	return textNode(out.String())
}

// schema writes a JSON Schema.
func (s *saver) schema(raw json.RawMessage) *node {
	if len(raw) == 0 {
		return nil
	}
	n, err := parseValue(raw)
	if err == nil && (n.is == isText || isFileRef(n)) {
		err = errors.New("it would be read as the name of a schema or a file")
	}
	if err != nil {
		s.wrong("outputSchema: %v", err)
		return nil
	}
	return n
}

// parseValue returns a JSON value as a node.
func parseValue(raw json.RawMessage) (*node, error) {
	n, twice, err := parseJSON(newSource("", "", string(raw)))
	if err == nil && len(twice) > 0 {
		err = &twice[0]
	}
	return n, err
}

// namesNode writes a list of names, or of mappings for those that have more than the key of
// the name; nil for a nil list.
func namesNode[T any](all []T, key string, membersOf func(*T) members) *node {
	if all == nil {
		return nil
	}
	list := listNode()
	for i := range all {
		n := membersOf(&all[i]).node()
		if name := n.get(key); n == nil || n.len() == 1 && name != nil {
			n = textNode(text(name))
		}
		list.add(n)
	}
	return list
}

// pathsNode writes paths; nil is none.
func pathsNode(paths []task.Path) *node {
	if paths == nil {
		return nil
	}
	words := make([]string, len(paths))
	for i, p := range paths {
		words[i] = string(p)
	}
	return textsNode(words)
}

// metadata writes values so that the loader reads the same: whole numbers without a decimal
// point, others with one.
func (s *saver) metadata(all map[string]any) *node {
	n := objectNode()
	for _, key := range sortedKeys(all) {
		value := metadataNode(all[key])
		if value == nil {
			s.wrong("metadata: %s: it is a %T", quote(key), all[key])
		}
		n.set(key, value)
	}
	return n.orNil()
}

// metadataNode writes a text, number or boolean, or a list of them; nil for another value.
func metadataNode(v any) *node {
	switch v := v.(type) {
	case string:
		return textNode(v)
	case bool:
		return boolNode(v)
	case []any:
		list := listNode()
		for _, one := range v {
			item := metadataNode(one)
			if item == nil {
				return nil
			}
			list.add(item)
		}
		return list
	case float64:
		return floatNode(v)
	case float32:
		return floatNode(float64(v))
	case int, int8, int16, int32, int64, uint, uint8, uint16, uint32, uint64, json.Number:
		return numberNode(fmt.Sprint(v))
	}
	return nil
}

// floatNode writes a number with a decimal point.
func floatNode(f float64) *node {
	text := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(text, ".") {
		text += ".0"
	}
	return numberNode(text)
}

// millisNode writes a duration in milliseconds.
func millisNode(d time.Duration) *node {
	return numberNode(strconv.FormatFloat(float64(d)/float64(time.Millisecond), 'f', -1, 64))
}
