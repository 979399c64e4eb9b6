package specfile

import (
	"slices"

	"github.com/runteam/runteam/task"
)

// computedKeys are the keys of a task that stand in place of an agent.
var computedKeys = []string{"value", "template", "file"}

// agentKeys are the keys of a task that only an agent can follow. A task without an agent takes
// them from no defaults.
var agentKeys = []string{
	"assignee", "requires", "tools", "memoryScope", "requiredTags", "outputFiles", "workspace", "acceptTruncated", "onTimeout",
	"maxRetries", "retryDelayMs", "retryBackoff",
}

// checkComputed reports whether a task has a value, a template or a file in place of an agent. It
// reports several of them, and a task that has neither these nor a description. Defaults that
// only an agent can follow do not count for it.
func (r *reader) checkComputed(f *fields) bool {
	r.subject = r.mine
	first := ""
	for _, key := range computedKeys {
		n := f.node.get(key)
		switch {
		case n == nil:
		case first == "":
			first = key
		default:
			r.badKey(n, ErrInvalid, "keep one of them", "%s: %s is set too", key, first)
			delete(f.vals, key)
		}
	}
	if first == "" {
		if f.node.get("description") == nil && !misspelled(f.node, "description", f.place) && !slices.ContainsFunc(append([]string{"repeat"}, computedKeys...), func(key string) bool { return misspelled(f.node, key, f.place) }) {
			hint := "write description: …"
			if f.node.get("assignee") == nil {
				hint += ", or value, template or file for a task without an agent"
			}
			r.bad(f.node, hint, "description: it is missing")
		}
		return false
	}
	without := agentKeys
	if first != "template" {
		without = append([]string{"uses", "timeoutMs"}, agentKeys...)
	}
	f.defaults = f.defaults.without(without)
	return true
}

// without returns fields that lack some keys; nil for nil.
func (f *fields) without(keys []string) *fields {
	if f == nil {
		return nil
	}
	less := *f
	less.vals = make(map[string]*node, len(f.vals))
	for key, n := range f.vals {
		if !slices.Contains(keys, key) {
			less.vals[key] = n
		}
	}
	return &less
}

// readComputed reads the value, the template or the file of a task.
func (r *reader) readComputed(f *fields, s *task.Spec) {
	r.subject = r.mine
	if n := f.own("value"); n != nil {
		raw, err := n.appendJSON(nil)
		if err != nil {
			r.bad(n, "", "value: %v", err)
		}
		s.Value = raw
	}
	if n := f.own("template"); n != nil {
		_, s.Template = r.textOf(n)
		if s.Template == "" {
			s.Template = " " // empty as well, and no task without a template
		}
		r.raiseLabel(n, s.Classification)
	}
	if n := f.own("file"); n != nil {
		if src := r.readFile(n, maxText); src != nil {
			s.Value = appendText(nil, src.text)
			src.loaded.label = src.loaded.label.Join(s.Classification)
		}
	}
}
