package specfile

import (
	"fmt"
	"strconv"
	"time"

	"github.com/runteam/runteam/internal/provenance"
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
		defaults = r.fields(n, "taskDefaults", nil)
		r.subject = nil // as for a task that inherits them
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
	for i, item := range n.parts() {
		if len(r.found) >= tooMany {
			return
		}
		r.mine = func() string { return taskName(i, text(item.get("title"))) + ": " }
		r.subject = r.mine
		f := r.fields(item, "task", defaults)
		r.places.tasks = append(r.places.tasks, f)
		r.file.Tasks = append(r.file.Tasks, task.Spec{}) // even for an invalid one, so that indexes match the file
		if f != nil {
			r.task(f, &r.file.Tasks[i])
		}
	}
}

// taskMembers are the simple values of a task, in the order in which a plan is written: who
// does it, what it may see, and its limits.
func taskMembers(s *task.Spec) (who, what, bounds members) {
	who = members{{"title", &s.Title}, {"key", &s.Key}, {"assignee", &s.Assignee}, {"role", &s.Role}, {"priority", &s.Priority}}
	what = members{
		{"needToKnow", &s.NeedToKnow}, {"memoryScope", &s.MemoryScope}, {"acceptTruncated", &s.AcceptTruncated},
		{"reuse", &s.Reuse}, {"classification", &s.Classification}, {"requiredTags", &s.RequiredTags},
	}
	bounds = members{
		{"ttlMs", &s.TTL}, {"timeoutMs", &s.Timeout}, {"maxRetries", &s.MaxRetries},
		{"retryDelayMs", (*delay)(&s.RetryDelay)}, {"retryBackoff", &s.RetryBackoff},
	}
	return who, what, bounds
}

// task reads one task.
func (r taskReader) task(f *fields, s *task.Spec) {
	*s = task.Spec{
		Requires:     r.requires(r.pick(f, "requires")),
		DependsOn:    r.dependencies(f),
		Uses:         r.uses(r.pick(f, "uses")),
		OutputSchema: r.schema(r.pick(f, "outputSchema")),
		Metadata:     r.metadata(r.pick(f, "metadata")),
		Source:       provenance.Source{Record: r.provenance(f.own("provenance")), Origin: origin(f.node.src, f.node.at)},
	}
	who, what, bounds := taskMembers(s)
	who.read(f.get)
	what.read(f.get)
	bounds.read(f.get)
	s.MaxRetries = max(s.MaxRetries, 0)
	s.Description, s.Source.Params = r.fill("description", r.pick(f, "description"))
	r.raiseLabel(f.node, s.Classification)
	r.raiseLabel(f.get("description"), s.Classification)
}

func dependencyMembers(r *task.Ref) members {
	return members{{"task", &r.Task}, {"as", &r.As}, {"need", &r.Need}, {"optional", &r.Optional}, {"maxContextBytes", &r.MaxContextBytes}}
}

func useMembers(u *task.Use) members { return members{{"name", &u.Name}, {"need", &u.Need}} }

func provenanceMembers(p *provenance.Record) members {
	return members{{"from", &p.From}, {"run", &p.Run}, {"envelope", &p.Envelope}, {"createdAt", &p.CreatedAt}, {"expiresAt", &p.ExpiresAt}}
}

func requiresMembers(q *task.Requires) members {
	return members{
		{"requiredTools", &q.Tools}, {"requiredCapabilities", &q.Capabilities}, {"requiredBackend", &q.Backend}, {"requiredProvider", &q.Provider},
	}
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
	for i, item := range n.parts() {
		if item.is == isText {
			refs = append(refs, task.Ref{Task: item.text, As: all})
			continue
		}
		if item.is != isObject {
			r.bad(item, "write a title in quotes, or {task: …}", "dependsOn[%d]: %s where the title of a task belongs", i, item.describe())
			continue
		}
		d := r.part(item, "dependency", fmt.Sprintf("dependsOn[%d]: ", i))
		ref := task.Ref{As: all}
		dependencyMembers(&ref).read(d.own)
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
	for i, item := range n.parts() {
		if item.is == isText {
			uses = append(uses, task.Use{Name: item.text})
			continue
		}
		if item.is != isObject {
			r.bad(item, "write a name in quotes, or {name: …}", "uses[%d]: %s where the name of an input belongs", i, item.describe())
			continue
		}
		u := r.part(item, "use", fmt.Sprintf("uses[%d]: ", i))
		use := task.Use{Reveal: revealOf(u.own("reveal"), func(kind string) string { return kind })}
		useMembers(&use).read(u.own)
		uses = append(uses, use)
	}
	return uses
}

// provenance reads the origin of a description.
func (r taskReader) provenance(n *node) *provenance.Record {
	if n == nil {
		return nil
	}
	r.subject = r.mine
	f := r.part(n, "provenance", "provenance: ")
	p := &provenance.Record{}
	provenanceMembers(p).read(f.own)
	return p
}

// instantOf returns a time; the zero time without one.
func instantOf(n *node) time.Time {
	at, err := time.Parse(time.RFC3339Nano, text(n))
	if err != nil {
		return time.Time{} // reported when the value was checked
	}
	return at
}

// requires reads the requirements of a task.
func (r taskReader) requires(n *node) *task.Requires {
	if n == nil {
		return nil
	}
	f := r.fields(n, "requires", nil)
	q := &task.Requires{}
	requiresMembers(q).read(f.own)
	if asksNothing(q) {
		return nil
	}
	return q
}

// asksNothing reports whether q, which may be nil, requires nothing.
func asksNothing(q *task.Requires) bool {
	return q == nil || len(q.Tools)+len(q.Capabilities)+len(q.Backend)+len(q.Provider) == 0
}

// metadata reads texts, numbers, booleans and lists of them; the task package checks keys and sizes.
func (r taskReader) metadata(n *node) map[string]any {
	if n == nil || n.len() == 0 {
		return nil
	}
	out := make(map[string]any, n.len())
	for _, v := range n.parts() {
		name := v.key
		switch v.is {
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
			r.bad(v, "write a text, a number, true, false, or a list of them", "metadata: %s: %s where a value belongs", quote(name), v.describe())
		}
	}
	return out
}

// metadataList reads a list; the task package checks that its values are of one
// type.
func (r taskReader) metadataList(name string, n *node) ([]any, bool) {
	out, ok := make([]any, n.len()), true
	for i, v := range n.parts() {
		switch v.is {
		case isText:
			out[i] = v.text
		case isBool:
			out[i] = v.text == "true"
		case isNumber:
			out[i] = numberOf(v)
		default:
			r.bad(v, "write texts, numbers, or true and false", "metadata: %s[%d]: %s where a value belongs", quote(name), i, v.describe())
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
