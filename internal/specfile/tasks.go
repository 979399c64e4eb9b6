package specfile

import (
	"fmt"
	"strconv"
	"time"

	"github.com/runteam/runteam/internal/provenance"
	"github.com/runteam/runteam/task"
)

// readTasks reads the graph of the main file.
func (r *reader) readTasks() {
	defer func() { r.subject = nil }()
	var defaults *fields
	if n := r.places.main.spec.own("taskDefaults"); n != nil {
		r.subject = func() string { return "taskDefaults: " }
		defaults = r.fields(n, "taskDefaults", nil)
		r.subject = nil // as for a task that inherits them
		r.readUses(defaults.own("uses"))
		w := defaults.own("workspace")
		r.readWorkspace(w)
		if continues(w) {
			r.bad(w, "write task and round in the tasks themselves", "workspace: which folder a task continues is no default")
		}
		r.readRequires(defaults.own("requires"))
		r.metadata(defaults.own("metadata"))
	}
	n := r.places.main.spec.own("tasks")
	r.places.taskList = n
	if n == nil {
		return
	}
	r.file.Tasks, r.places.tasks = r.readTaskList(n, defaults)
}

// readTaskList reads a list of tasks, and where they are written. An invalid one is empty, so that indexes
// match the file.
func (r *reader) readTaskList(n *node, defaults *fields) ([]task.Spec, []*fields) {
	tasks, places := make([]task.Spec, n.len()), make([]*fields, n.len())
	for i, item := range n.parts() {
		r.mine = func() string { return taskName(i, text(item.get("title"))) + ": " }
		r.subject = r.mine
		if places[i] = r.fields(item, "task", defaults); places[i] != nil {
			r.readTask(places[i], &tasks[i])
		}
	}
	return tasks, places
}

// taskMembers are the simple values of a task, in the order in which a plan is written: who
// does it, what it may see, and its limits.
func taskMembers(s *task.Spec) (who, what, bounds members) {
	who = members{{"title", &s.Title}, {"key", &s.Key}, {"assignee", &s.Assignee}, {"role", &s.Role}, {"priority", &s.Priority}}
	what = members{
		{"needToKnow", &s.NeedToKnow}, {"memoryScope", &s.MemoryScope}, {"outputFiles", &s.OutputFiles}, {"acceptTruncated", &s.AcceptTruncated},
		{"reuse", &s.Reuse}, {"classification", &s.Classification}, {"requiredTags", &s.RequiredTags},
	}
	bounds = members{
		{"ttlMs", &s.TTL}, {"timeoutMs", &s.Timeout}, {"onTimeout", &s.OnTimeout}, {"maxRetries", &s.MaxRetries},
		{"retryDelayMs", (*delay)(&s.RetryDelay)}, {"retryBackoff", &s.RetryBackoff}, {"onFailure", &s.OnFailure},
	}
	return who, what, bounds
}

// readTask reads one task.
func (r *reader) readTask(f *fields, s *task.Spec) {
	if f.node.get("repeat") != nil {
		r.readLoop(f, s)
		return
	}
	if hasTasks(f) {
		r.readListTask(f, s)
		return
	}
	computed := r.checkComputed(f)
	folder, limits := r.readWorkspace(r.pick(f, "workspace"))
	*s = task.Spec{
		Requires:     r.readRequires(r.pick(f, "requires")),
		DependsOn:    r.dependencies(f),
		When:         r.readWhen(f),
		ForEach:      r.readForEach(f.own("forEach")),
		Verify:       r.readVerify(f.own("verify")),
		Uses:         append(folder, r.readUses(r.pick(f, "uses"))...),
		Workspace:    limits,
		OutputSchema: r.schema(r.pick(f, "outputSchema")),
		Metadata:     r.metadata(r.pick(f, "metadata")),
		Source:       provenance.Source{Record: r.provenance(f.own("provenance")), Origin: f.node.origin()},
	}
	who, what, bounds := taskMembers(s)
	who.read(f.get)
	what.read(f.get)
	bounds.read(f.get)
	s.DependsOn = r.continueFolder(f, s)
	s.Tools = r.toolsOfTask(r.pick(f, "tools"), s.Assignee)
	s.MaxRetries = max(s.MaxRetries, 0)
	s.Description, s.Source.Params = r.fill("description", r.pick(f, "description"))
	if computed {
		r.readComputed(f, s)
	}
	r.raiseLabel(f.node, s.Classification)
	r.raiseLabel(f.get("description"), s.Classification)
}

func dependencyMembers(r *task.Ref) members {
	return members{{"task", &r.Task}, {"oneOf", &r.OneOf}, {"each", &r.Each}, {"round", &r.Round}, {"as", &r.As}, {"need", &r.Need}, {"optional", &r.Optional}, {"files", (*filePaths)(&r.Files)}, {"onConflict", &r.OnConflict}, {"maxContextBytes", &r.MaxContextBytes}}
}

func useMembers(u *task.Use) members {
	return members{{"name", &u.Name}, {"need", &u.Need}, {"reveal", &u.Reveal}, {"at", &u.At}}
}

func provenanceMembers(p *provenance.Record) members {
	return members{{"from", &p.From}, {"run", &p.Run}, {"envelope", &p.Envelope}, {"createdAt", &p.CreatedAt}, {"expiresAt", &p.ExpiresAt}}
}

func requiresMembers(q *task.Requires) members {
	return members{
		{"requiredTools", &q.Tools}, {"requiredCapabilities", &q.Capabilities}, {"requiredBackend", &q.Backend}, {"requiredProvider", &q.Provider},
	}
}

// dependencies reads dependsOn: names, or mappings with a name.
func (r *reader) dependencies(f *fields) []task.Ref {
	r.subject = r.mine
	all := task.Payload(text(f.get("dependencyPayload")))
	for k, item := range f.own("dependsOn").parts() {
		if item.is != isObject {
			continue
		}
		other := item.writes("oneOf", "dependency") || item.writes("each", "dependency")
		switch named := item.writes("task", "dependency"); {
		case !named && !other:
			r.bad(item, "write {task: …}", "dependsOn[%d]: task: it is missing", k)
		case named && other && text(item.get("task")) == "": // a title is reported by the check of the graph
			r.bad(item, "remove task", "dependsOn[%d]: task is empty", k)
		}
	}
	return named(r, f.own("dependsOn"), "dependency", "task", "title of a task", func(name string, d *fields) task.Ref {
		if d == nil { // without a pointer to the value, which would make it escape
			return task.Ref{Task: name, As: all}
		}
		ref := task.Ref{As: all}
		dependencyMembers(&ref).read(d.own)
		if ref.Round == "" && d.node.get("round") != nil { // reported, and no result of the same round
			ref.Round = task.Previous
		}
		return ref
	})
}

// readWhen reads the condition of a task.
func (r *reader) readWhen(f *fields) *task.Condition {
	r.subject = r.mine
	when, place := conditionReader{r.report, "when"}.condition(f.own("when"))
	if when != nil {
		r.places.whens[f] = place
	}
	return when
}

// readUses reads the named inputs of a task: names, or mappings with a name.
func (r *reader) readUses(n *node) []task.Use {
	return named(r, n, "use", "name", "name of an input", func(name string, u *fields) task.Use {
		if u == nil {
			return task.Use{Name: name}
		}
		use := task.Use{}
		useMembers(&use).read(u.own)
		return use
	})
}

// named reads a list of names, which read gets with nil fields, or of mappings with a key for
// the name; what says whose name it is.
func named[T any](r *reader, n *node, place, key, what string, read func(name string, f *fields) T) []T {
	if n == nil {
		return nil
	}
	all := make([]T, 0, n.len())
	for i, item := range n.parts() {
		switch item.is {
		case isText:
			all = append(all, read(item.text, nil))
		case isObject:
			all = append(all, read("", r.part(item, place, fmt.Sprintf("%s[%d]: ", n.key, i))))
		default:
			r.bad(item, "write the "+what+" in quotes, or {"+key+": …}", "%s[%d]: %s where the %s belongs", n.key, i, item.describe(), what)
		}
	}
	return all
}

// provenance reads the origin of a description.
func (r *reader) provenance(n *node) *provenance.Record {
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

// readRequires reads the requirements of a task.
func (r *reader) readRequires(n *node) *task.Requires {
	if n == nil {
		return nil
	}
	f := r.fields(n, "requires", nil)
	q := &task.Requires{}
	all := requiresMembers(q)
	if all.read(f.own); all.node() == nil {
		return nil
	}
	var exact []string
	for _, name := range q.Tools {
		exact = append(exact, r.file.Tools.exact(name)...)
	}
	q.Tools = exact
	return q
}

// metadata reads texts, numbers, booleans and lists of them; the task package checks keys,
// sizes, and that the values of a list have one type.
func (r *reader) metadata(n *node) map[string]any {
	if n.len() == 0 {
		return nil
	}
	out := make(map[string]any, n.len())
	for _, v := range n.parts() {
		if v.is != isList {
			out[v.key] = r.metadataValue(v, "write a text, a number, true, false, or a list of them", func() string { return quote(v.key) })
			continue
		}
		list := make([]any, v.len())
		for i, item := range v.parts() {
			list[i] = r.metadataValue(item, "write texts, numbers, or true and false", func() string { return fmt.Sprintf("%s[%d]", quote(v.key), i) })
		}
		out[v.key] = list
	}
	return out
}

// metadataValue returns a text, a number or a boolean.
func (r *reader) metadataValue(n *node, hint string, where func() string) any {
	v := valueOf(n)
	if v == nil {
		r.bad(n, hint, "metadata: %s: %s where a value belongs", where(), n.describe())
	}
	return v
}

// numberOf returns a whole number as int64 and any other as float64.
func numberOf(n *node) any {
	if i, err := strconv.ParseInt(yamlDigits(n.text), 0, 64); err == nil {
		return i
	}
	f, _ := n.float()
	return f
}
