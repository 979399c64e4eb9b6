package specfile

import (
	"fmt"
	"strconv"
	"time"

	"github.com/runteam/runteam/task"
)

// A taskReader reads the tasks.
type taskReader struct{ *reader }

// readTasks reads the graph of the main file.
func (r taskReader) readTasks() {
	defer func() { r.subject = nil }()
	var defaults *fields
	if n := r.places.main.spec.own("taskDefaults"); n != nil {
		r.subject = func() string { return "taskDefaults: " }
		defaults = r.fields(n, taskDefaultsPlace, nil)
		r.subject = nil // as for a task that takes them
		r.uses(defaults.own("uses"))
		r.requires(defaults.own("requires"))
		r.metadata(defaults.own("metadata"))
	}
	n := r.places.main.spec.own("tasks")
	r.places.taskList = n
	if n == nil {
		return
	}
	r.file.Tasks = make([]task.Spec, 0, n.len())
	r.places.tasks = make([]*fields, 0, n.len())
	for i := range n.kids.nodes {
		if len(r.found) >= tooMany {
			return
		}
		item := &n.kids.nodes[i]
		r.mine = func() string { return taskName(i, text(item.get("title"))) + ": " }
		r.subject = r.mine
		f := r.fields(item, taskPlace, defaults)
		r.places.tasks = append(r.places.tasks, f)
		if f == nil {
			r.file.Tasks = append(r.file.Tasks, task.Spec{}) // keeps the numbers in step
			continue
		}
		r.needs(item, taskPlace, "")
		r.file.Tasks = append(r.file.Tasks, r.task(f))
	}
}

// task reads one task.
func (r taskReader) task(f *fields) task.Spec {
	s := task.Spec{
		Key:            text(f.own("key")),
		Title:          text(f.own("title")),
		Assignee:       text(f.get("assignee")),
		Requires:       r.requires(r.pick(f, "requires")),
		DependsOn:      r.dependencies(f),
		Uses:           r.uses(r.pick(f, "uses")),
		NeedToKnow:     pathList(f.get("needToKnow")),
		MemoryScope:    task.MemoryScope(text(f.get("memoryScope"))),
		Classification: level(f.get("classification")),
		RequiredTags:   textList(f.get("requiredTags")),
		OutputSchema:   r.schema(r.pick(f, "outputSchema")),
		TTL:            duration(f.get("ttlMs")),
		MaxRetries:     max(integer(f.get("maxRetries")), 0),
		Timeout:        duration(f.get("timeoutMs")),
		Reuse:          task.Reuse(text(f.get("reuse"))),
		Role:           text(f.get("role")),
		Priority:       task.Priority(text(f.get("priority"))),
		Metadata:       r.metadata(r.pick(f, "metadata")),
		Provenance:     r.provenance(f.own("provenance")),
		Origin:         origin(f.node.src, f.node.at),
	}
	s.AcceptTruncated = text(f.get("acceptTruncated")) == "true"
	s.Description, s.Params = r.fill("description", r.pick(f, "description"))
	r.holds(f.node, s.Classification)
	r.holds(f.get("description"), s.Classification)
	if n := f.get("retryDelayMs"); n != nil {
		if s.RetryDelay = duration(n); s.RetryDelay == 0 {
			s.RetryDelay = task.NoDelay
		}
	}
	if n := f.get("retryBackoff"); n != nil {
		s.RetryBackoff, _ = n.float()
	}
	return s
}

// dependencies reads dependsOn: names, or mappings with a name.
func (r taskReader) dependencies(f *fields) []task.Ref {
	r.subject = r.mine
	n := f.own("dependsOn")
	if n == nil {
		return nil
	}
	all := task.Payload(text(f.get("dependencyPayload")))
	refs := make([]task.Ref, 0, n.len())
	for i := range n.kids.nodes {
		item := &n.kids.nodes[i]
		if item.is == isText {
			refs = append(refs, task.Ref{Task: item.text, As: all})
			continue
		}
		if item.is != isObject {
			r.bad(item, ErrInvalid, "write a title in quotes, or {task: …}", "dependsOn[%d]: %s where the title of a task belongs", i, item.describe())
			continue
		}
		d := r.fields(item, dependencyPlace, nil)
		ref := task.Ref{Task: text(d.own("task")), As: all}
		r.needs(item, dependencyPlace, fmt.Sprintf("dependsOn[%d]: ", i))
		if as := d.own("as"); as != nil {
			ref.As = task.Payload(as.text)
		}
		ref.Need, ref.MaxContextBytes = pathList(d.own("need")), integer(d.own("maxContextBytes"))
		if o := d.own("optional"); o != nil {
			ref.Optional = o.text == "true"
		}
		refs = append(refs, ref)
	}
	return refs
}

// uses reads the named inputs of a task: names, or mappings with a name.
func (r taskReader) uses(n *node) []task.Use {
	if n == nil {
		return nil
	}
	uses := make([]task.Use, 0, n.len())
	for i := range n.kids.nodes {
		item := &n.kids.nodes[i]
		if item.is == isText {
			uses = append(uses, task.Use{Name: item.text})
			continue
		}
		if item.is != isObject {
			r.bad(item, ErrInvalid, "write a name in quotes, or {name: …}", "uses[%d]: %s where the name of an input belongs", i, item.describe())
			continue
		}
		u := r.fields(item, usePlace, nil)
		r.needs(item, usePlace, fmt.Sprintf("uses[%d]: ", i))
		uses = append(uses, task.Use{
			Name: text(u.own("name")), Need: pathList(u.own("need")), Reveal: revealOf(u.own("reveal"), func(kind string) string { return kind }),
		})
	}
	return uses
}

// provenance reads where a description comes from.
func (r taskReader) provenance(n *node) *task.Provenance {
	if n == nil {
		return nil
	}
	r.subject = r.mine
	f := r.fields(n, provenancePlace, nil)
	r.needs(n, provenancePlace, "provenance: ")
	return &task.Provenance{
		From: text(f.own("from")), Run: text(f.own("run")), Envelope: text(f.own("envelope")),
		CreatedAt: instantOf(f.own("createdAt")), ExpiresAt: instantOf(f.own("expiresAt")),
	}
}

// instantOf returns a time; the zero time without one.
func instantOf(n *node) time.Time {
	at, err := time.Parse(time.RFC3339Nano, text(n))
	if err != nil {
		return time.Time{} // the kind of the key has said so
	}
	return at
}

// requires reads what a task asks of its agent.
func (r taskReader) requires(n *node) *task.Requires {
	if n == nil {
		return nil
	}
	f := r.fields(n, requiresPlace, nil)
	q := &task.Requires{
		Tools: textList(f.own("requiredTools")), Capabilities: textList(f.own("requiredCapabilities")),
		Backend: text(f.own("requiredBackend")), Provider: text(f.own("requiredProvider")),
	}
	if q.Empty() {
		return nil
	}
	return q
}

// metadata reads texts, numbers, booleans and lists of them; the task package checks keys and sizes.
func (r taskReader) metadata(n *node) map[string]any {
	if n == nil || n.len() == 0 {
		return nil
	}
	out := make(map[string]any, n.len())
	for i, name := range n.kids.keys {
		switch v := &n.kids.nodes[i]; v.is {
		case isText:
			out[name] = v.text
		case isBool:
			out[name] = v.text == "true"
		case isNumber:
			out[name] = numberOf(v)
		case isList:
			if list, ok := r.metadataList(name, v); ok {
				out[name] = list
			}
		default:
			r.bad(v, ErrInvalid, "write a text, a number, true, false, or a list of them", "metadata: %s: %s where a value belongs", quote(name), v.describe())
		}
	}
	return out
}

// metadataList reads a list; the task package checks that its values are of one
// type.
func (r taskReader) metadataList(name string, n *node) ([]any, bool) {
	out, ok := make([]any, n.len()), true
	for i := range n.kids.nodes {
		switch v := &n.kids.nodes[i]; v.is {
		case isText:
			out[i] = v.text
		case isBool:
			out[i] = v.text == "true"
		case isNumber:
			out[i] = numberOf(v)
		default:
			r.bad(v, ErrInvalid, "write texts, numbers, or true and false", "metadata: %s[%d]: %s where a value belongs", quote(name), i, v.describe())
			ok = false
		}
	}
	return out, ok
}

// numberOf returns a whole number as int64 and any other as float64.
func numberOf(n *node) any {
	if i, err := strconv.ParseInt(yamlDigits(n.text), 0, 64); err == nil {
		return i
	}
	f, _ := n.float()
	return f
}
