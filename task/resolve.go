package task

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/runteam/runteam/internal/naming"
)

// Resolve turns specs into tasks. Every task gets its ID, defaults for the fields that its
// spec does not set, the status pending, and the given time as CreatedAt and UpdatedAt. The
// error is [Problems], with everything that is wrong in all specs, cycles included.
//
// A reference is the title of a task, its key or its ID. Letter case and surrounding spaces
// are ignored. The tasks share no slices and maps with the specs.
func Resolve(specs []Spec, at time.Time) ([]Task, error) {
	links := 0
	for i := range specs {
		links += linksOf(&specs[i])
	}
	r := &resolver{
		specs:  specs,
		tasks:  make([]Task, len(specs)),
		found:  &findings{},
		titles: make(map[string]int32, len(specs)),
		budget: nearestBudget,
	}
	l, err := newLinker(r.tasks, links, r.found)
	if err != nil {
		return nil, err
	}
	r.name()
	for i := range specs {
		fill(&r.tasks[i], &specs[i], at, i, r.found)
	}
	r.link(l, links)
	if _, err := l.finish(); err != nil {
		return nil, err
	}
	return r.tasks, nil
}

// A resolver carries the tables by which a reference is found.
type resolver struct {
	specs  []Spec
	tasks  []Task
	found  *findings
	titles map[string]int32     // by normal form
	keys   map[string]int32     // nil as long as no task has one
	ids    map[ID]int32         // nil until a reference looks like an ID
	normal []byte               // scratch: the normal form of one title
	budget int                  // how many words may still be compared for hints
	inside map[string]*Instance // those of loops and lists by normal titles and keys; nil until a hint needs it
}

// name gives every task its ID and enters its title and key in the tables.
func (r *resolver) name() {
	size := 0
	for i := range r.specs {
		size += len(r.specs[i].Title)
	}
	// One piece of memory for all normal forms and one for all IDs; a builder
	// hands out parts of what it has written, as long as it need not grow.
	var normals, ids strings.Builder
	normals.Grow(size)
	ids.Grow(idLen * len(r.specs))
	for i := range r.specs {
		r.normal = naming.AppendNormal(r.normal[:0], r.specs[i].Title)
		normal := appendString(&normals, r.normal)
		r.normal = appendID(r.normal[:0], r.normal)
		r.tasks[i].ID = ID(appendString(&ids, r.normal))
		r.enter(i, normal)
	}
}

// appendString appends a part to b and returns it as a string that b owns.
func appendString(b *strings.Builder, part []byte) string {
	start := b.Len()
	b.Write(part)
	return b.String()[start:]
}

// enter adds task i to the tables, and says what its names clash with.
func (r *resolver) enter(i int, normal string) {
	s := &r.specs[i]
	title := strings.TrimSpace(s.Title)
	r.tasks[i].Title = title
	if fine := titled(i, title, r.found); normal != "" {
		if first, taken := r.titles[normal]; !taken {
			r.titles[normal] = int32(i)
		} else if fine {
			message := fmt.Sprintf("title: task %d has the title %s too", r.number(int(first)), naming.Quote(r.tasks[first].Title))
			if s.Instance == nil && r.specs[first].Instance != nil {
				message = fmt.Sprintf("title: it is that of one of the rounds or items of task %d", r.number(int(first)))
			}
			r.found.add(i, Problem{
				Pointer: pointer(i, "title"), Subject: subject(i, title), Err: ErrDuplicate, Message: message,
				Hint: "give each task its own title; titles are not case-sensitive",
			})
		}
	}
	if s.Key != "" {
		r.enterKey(i, s.Key)
	}
}

// number returns the number, from 1, of the task that spec i is, or is written out from.
func (r *resolver) number(i int) int {
	n := 0
	for k := range r.specs[:i+1] {
		if n++; r.specs[k].Instance != nil {
			n = naming.TaskIndex(r.specs[k].Instance.Pointer) + 1
		}
	}
	return n
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
			Pointer: pointer(i, "key"), Subject: subject(i, r.tasks[i].Title), Err: ErrDuplicate,
			Message: fmt.Sprintf("key: task %s has the key %s too", naming.Quote(r.tasks[first].Title), naming.Quote(key)),
			Hint:    "give each task a key of its own, or none",
		})
		return
	}
	r.keys[key] = int32(i)
}

// link resolves all references.
func (r *resolver) link(l *linker, links int) {
	slab := make([]Ref, 0, links)
	for i := range r.specs {
		start := len(slab)
		for k := range r.specs[i].DependsOn {
			ref := &r.specs[i].DependsOn[k]
			if len(ref.OneOf) > 0 {
				slab = r.alternatives(l, slab, i, k)
				continue
			}
			j, p := r.find(ref.Task)
			if p.Err != nil {
				p.Pointer, p.Subject = pointer(i, "dependsOn", k), subject(i, r.tasks[i].Title)
				p.Message = fmt.Sprintf("dependsOn[%d]: %s", k, p.Message)
				r.found.add(i, p)
				continue
			}
			if !l.link(i, int(j), k, ref.MayBeMissing()) {
				continue
			}
			if !ref.As.valid() {
				r.found.add(i, badPayload(&r.tasks[i], i, k, ref.As))
			}
			slab = append(slab, resolved(ref, r.tasks[j].ID, r.specs[i].NeedToKnow))
		}
		if r.specs[i].When != nil || r.specs[i].Instance != nil {
			slab = r.condition(l, slab, i)
		}
		if len(slab) > start {
			r.tasks[i].DependsOn = slab[start:len(slab):len(slab)]
		}
		l.dag.Next()
	}
}

// find returns the task that a reference names, or a problem with its Err.
func (r *resolver) find(ref string) (i int32, p Problem) {
	r.normal = naming.AppendNormal(r.normal[:0], ref)
	byTitle, isTitle := r.titles[string(r.normal)]
	if isTitle && r.keys == nil && len(r.normal) != idLen {
		return byTitle, p
	}
	byKey, isKey := r.keys[string(r.normal)]
	byID, isID := r.byID()
	switch {
	case isTitle && isKey && byTitle != byKey, isTitle && isID && byTitle != byID, isKey && isID && byKey != byID:
		return 0, Problem{
			Message: fmt.Sprintf("%s names several tasks: %s", naming.Quote(ref), r.several()),
			Hint:    "write a title that is no other task's key or id", Err: ErrAmbiguous,
		}
	case isTitle:
		return byTitle, p
	case isKey:
		return byKey, p
	case isID:
		return byID, p
	case len(r.normal) == 0:
		return 0, Problem{Message: "it names no task", Hint: "write the title of a task", Err: ErrUnknown}
	}
	return 0, Problem{Message: "no task " + naming.Quote(ref), Hint: r.hint(ref), Err: ErrUnknown}
}

// byID returns the task whose ID is in normal. Of tasks with one title the first counts.
func (r *resolver) byID() (i int32, ok bool) {
	if len(r.normal) != idLen {
		return 0, false
	}
	if r.ids == nil {
		r.ids = make(map[ID]int32, len(r.titles))
		for _, i := range r.titles {
			r.ids[r.tasks[i].ID] = i
		}
	}
	i, ok = r.ids[ID(r.normal)]
	return i, ok
}

// several lists the tasks that the reference in normal names.
func (r *resolver) several() string {
	var parts []string
	if i, ok := r.titles[string(r.normal)]; ok {
		parts = append(parts, fmt.Sprintf("task %d by its title", i+1))
	}
	if i, ok := r.keys[string(r.normal)]; ok {
		parts = append(parts, fmt.Sprintf("task %s by its key", naming.Quote(r.tasks[i].Title)))
	}
	if i, ok := r.byID(); ok {
		parts = append(parts, fmt.Sprintf("task %s by its id", naming.Quote(r.tasks[i].Title)))
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
	if inside, ok := r.insideHint(ref); ok {
		return inside
	}
	best, ok := naming.NearestIn(ref, func(yield func(string) bool) {
		for i := range r.specs {
			if in := r.specs[i].Instance; in != nil && in.Title != r.tasks[i].Title {
				continue // no other task may name a single round or item
			}
			if r.budget -= len(ref) * len(r.tasks[i].Title); r.budget < 0 {
				return
			}
			if !yield(r.tasks[i].Title) || r.specs[i].Key != "" && !yield(r.specs[i].Key) {
				return
			}
		}
	})
	if !ok || r.budget < 0 {
		return otherwise
	}
	return fmt.Sprintf("did you mean %s?", naming.Quote(best))
}

// insideHint says what to write in place of the title or the key of a task of a loop or a list.
func (r *resolver) insideHint(ref string) (hint string, ok bool) {
	if r.inside == nil {
		r.inside = map[string]*Instance{}
		for _, s := range slices.Backward(r.specs) {
			if s.Instance != nil {
				r.inside[s.Instance.Key], r.inside[naming.Normalize(s.Instance.Title)] = s.Instance, s.Instance
			}
		}
	}
	in := r.inside[naming.Normalize(ref)]
	if in == nil {
		return "", false
	}
	if len(in.Lists) > 0 {
		return "it is one of the tasks for each item of a list; depend on {each: …} with the title of that list", true
	}
	return fmt.Sprintf("it is a task of the loop %s, and only the loop has a result outside; name the loop", naming.Quote(in.Loop)), true
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
	case !ref.As.valid():
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
