package task

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/runteam/runteam/internal/naming"
)

// Resolve turns specs into a graph: every task gets its id, the defaults of
// what its spec leaves open, the status pending and both times at. The error
// is [Problems], with everything wrong in all specs at once.
//
// A reference is the title of a task, its key or its id; letter case and
// surrounding blanks do not count. The graph keeps the specs' strings, slices
// and maps (all but DependsOn), which must not be written to afterwards.
func Resolve(specs []Spec, at time.Time) (*Graph, error) {
	links := 0
	for i := range specs {
		links += len(specs[i].DependsOn)
	}
	if err := checkCount(max(len(specs), links)); err != nil {
		return nil, err
	}
	r := &resolver{
		specs:  specs,
		g:      &Graph{tasks: make([]Task, len(specs)), index: newTable(len(specs))},
		found:  &findings{},
		titles: newTable(len(specs)),
		names:  make([]string, len(specs)),
		budget: nearestBudget,
	}
	r.name()
	for i := range specs {
		fill(&r.g.tasks[i], &specs[i], at, i, r.found)
	}
	return r.link(links)
}

// A resolver carries the tables by which a reference is found.
type resolver struct {
	specs  []Spec
	g      *Graph
	found  *findings
	titles table            // by normal form
	names  []string         // the normal form of each title
	keys   map[string]int32 // nil as long as no task has one
	normal []byte           // scratch: the normal form of one title
	budget int              // how many words may still be compared for hints
}

// name gives every task its id and enters it in the tables.
func (r *resolver) name() {
	size := 0
	for i := range r.specs {
		size += len(r.specs[i].Title)
	}
	// One piece of memory for all normal forms and one for all ids; a builder
	// hands out parts of what it has written, as long as it need not grow.
	var normals, ids strings.Builder
	normals.Grow(size)
	ids.Grow(idLen * len(r.specs))
	for i := range r.specs {
		r.normal = naming.AppendNormal(r.normal[:0], r.specs[i].Title)
		r.names[i] = put(&normals, r.normal)
		r.normal = appendID(r.normal[:0], r.normal)
		r.g.tasks[i].ID = ID(put(&ids, r.normal))
		r.enter(i)
	}
}

// put appends a part to b and returns it as a string that b owns.
func put(b *strings.Builder, part []byte) string {
	start := b.Len()
	b.Write(part)
	return b.String()[start:]
}

// title returns the normal form of a task's title, for the table.
func (r *resolver) title(i int32) string { return r.names[i] }

// enter adds task i to the tables, and says what its names clash with.
func (r *resolver) enter(i int) {
	s := &r.specs[i]
	title := strings.TrimSpace(s.Title)
	r.g.tasks[i].Title = title
	fine := titled(i, title, r.found)
	if r.names[i] == "" {
		// nothing can name it
	} else if first, ok := r.titles.put(r.names[i], int32(i), r.title); ok {
		r.g.enter(i)
	} else if fine {
		r.found.add(i, Problem{
			Pointer: pointer(i, "title"), Subject: subject(i, title), Err: ErrDuplicate,
			Message: fmt.Sprintf("title: task %d has the title %s too", first+1, naming.Quote(r.g.tasks[first].Title)),
			Hint:    "give each task a title of its own; letter case does not tell two apart",
		})
	}
	if s.Key != "" {
		r.enterKey(i, s.Key)
	}
}

// titled reports whether a title is one, or finds why not.
func titled(i int, title string, found *findings) bool {
	err := naming.CheckTitle(title)
	if err != nil {
		found.add(i, Problem{
			Pointer: pointer(i, "title"), Subject: subject(i, title), Message: "title: " + err.Error(), Err: err,
			Hint: fmt.Sprintf("write one line of 1 to %d characters", naming.MaxTitle),
		})
	}
	return err == nil
}

func (r *resolver) enterKey(i int, key string) {
	if r.keys == nil {
		r.keys = make(map[string]int32)
	}
	if first, ok := r.keys[key]; ok {
		r.found.add(i, Problem{
			Pointer: pointer(i, "key"), Subject: subject(i, r.g.tasks[i].Title), Err: ErrDuplicate,
			Message: fmt.Sprintf("key: task %s has the key %s too", naming.Quote(r.g.tasks[first].Title), naming.Quote(key)),
			Hint:    "give each task a key of its own, or none",
		})
		return
	}
	r.keys[key] = int32(i)
}

// link resolves all references and finishes the graph.
func (r *resolver) link(links int) (*Graph, error) {
	l := newLinker(r.g, links)
	slab := make([]Dependency, 0, links)
	for i := range r.specs {
		t := &r.g.tasks[i]
		start := len(slab)
		for k := range r.specs[i].DependsOn {
			ref := &r.specs[i].DependsOn[k]
			j, p, bad := r.find(ref.Task)
			if !bad {
				p, bad = l.link(i, int(j), k, ref.Optional)
			} else {
				p.Pointer, p.Subject = pointer(i, "dependsOn", k), subject(i, t.Title)
				p.Message = fmt.Sprintf("dependsOn[%d]: %s", k, p.Message)
			}
			if bad {
				r.found.add(i, p)
				continue
			}
			if !ref.As.Valid() {
				r.found.add(i, badPayload(t, i, k, ref.As))
			}
			slab = append(slab, Dependency{Task: r.g.tasks[j].ID, As: payload(ref.As), Need: need(ref, &r.specs[i]), Optional: ref.Optional, MaxContextBytes: ref.MaxContextBytes})
		}
		if len(slab) > start {
			t.DependsOn = slab[start:len(slab):len(slab)]
		}
		l.next()
	}
	return l.finish(r.found)
}

// find returns the task that a reference names.
func (r *resolver) find(ref string) (i int32, p Problem, bad bool) {
	r.normal = naming.AppendNormal(r.normal[:0], ref)
	byTitle, isTitle := r.titles.getBytes(r.normal, r.title)
	if isTitle && r.keys == nil && len(r.normal) != idLen {
		return byTitle, p, false
	}
	byKey, isKey := r.keys[string(r.normal)]
	byID, isID := r.g.index.getBytes(r.normal, r.g.id)
	switch {
	case isTitle && isKey && byTitle != byKey, isTitle && isID && byTitle != byID, isKey && isID && byKey != byID:
		return 0, Problem{
			Message: fmt.Sprintf("%s names several tasks: %s", naming.Quote(ref), r.several()),
			Hint:    "write a title that is no other task's key or id", Err: ErrAmbiguous,
		}, true
	case isTitle:
		return byTitle, p, false
	case isKey:
		return byKey, p, false
	case isID:
		return byID, p, false
	case len(r.normal) == 0:
		return 0, Problem{Message: "it names no task", Hint: "write the title of a task", Err: ErrUnknown}, true
	}
	return 0, Problem{Message: "no task " + naming.Quote(ref), Hint: r.hint(ref), Err: ErrUnknown}, true
}

// several lists the tasks that the reference in normal names.
func (r *resolver) several() string {
	var parts []string
	if i, ok := r.titles.getBytes(r.normal, r.title); ok {
		parts = append(parts, fmt.Sprintf("task %d by its title", i+1))
	}
	if i, ok := r.keys[string(r.normal)]; ok {
		parts = append(parts, fmt.Sprintf("task %s by its key", naming.Quote(r.g.tasks[i].Title)))
	}
	if i, ok := r.g.index.getBytes(r.normal, r.g.id); ok {
		parts = append(parts, fmt.Sprintf("task %s by its id", naming.Quote(r.g.tasks[i].Title)))
	}
	return strings.Join(parts, ", ")
}

// nearestBudget bounds the pairs of letters that are compared for hints, so that
// a hundred thousand wrong references among a hundred thousand titles, or a
// thousand among titles that are as long as titles may be, are refused at once.
const nearestBudget = 100_000_000

// hint names the nearest title or key, as long as the budget lasts.
func (r *resolver) hint(ref string) string {
	const otherwise = "write the title, the key or the id of a task"
	ref = strings.TrimSpace(ref)
	if utf8.RuneCountInString(ref) > naming.MaxTitle {
		return otherwise // no title is that long
	}
	best, ok := naming.NearestIn(ref, func(yield func(string) bool) {
		for i := range r.specs {
			if r.budget -= len(ref) * len(r.g.tasks[i].Title); r.budget < 0 {
				return
			}
			if !yield(r.g.tasks[i].Title) || r.specs[i].Key != "" && !yield(r.specs[i].Key) {
				return
			}
		}
	})
	if !ok || r.budget < 0 {
		return otherwise
	}
	return fmt.Sprintf("did you mean %s?", naming.Quote(best))
}

// directRef resolves a reference without a graph, for [New].
func directRef(t *Task, k int, ref Ref, seen map[ID]bool) (id ID, p Problem, bad bool) {
	normal := naming.Normalize(ref.Task)
	id = ID(normal)
	if !isUUID(normal) {
		id = NewID(ref.Task)
	}
	p = Problem{Pointer: pointer(0, "dependsOn", k), Subject: subject(0, t.Title), Hint: "remove it"}
	switch {
	case normal == "":
		p.Message, p.Hint, p.Err = "it names no task", "write the title or the id of a task", ErrUnknown
	case id == t.ID:
		p.Message, p.Err = "it depends on itself", ErrSelf
	case seen[id]:
		p.Message, p.Err = naming.Quote(ref.Task)+" is named before", ErrDuplicate
	case !ref.As.Valid():
		return id, badPayload(t, 0, k, ref.As), true
	default:
		return id, p, false
	}
	p.Message = fmt.Sprintf("dependsOn[%d]: %s", k, p.Message)
	return id, p, true
}

func isUUID(s string) bool {
	if len(s) != idLen {
		return false
	}
	for i := range len(s) {
		switch c := s[i]; {
		case i == 8 || i == 13 || i == 18 || i == 23:
			if c != '-' {
				return false
			}
		case (c < '0' || c > '9') && (c < 'a' || c > 'f'):
			return false
		}
	}
	return true
}
