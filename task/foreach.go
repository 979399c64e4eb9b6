package task

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/runteam/runteam/internal/naming"
)

// A ForEach runs a task once for each item of a list: an instance is granted its own item, and no
// other. In plans and results, the task Search of the third item is Search[3]; prompts have the
// title as written. Other tasks get the results of all instances with Each of a [Ref].
type ForEach struct {
	Task     string // whose structured result has the list, named as in a [Ref]
	Path     Path   // of the list, such as /searches
	As       string // the heading of the item in prompts; "item" unless set
	MaxItems int    // required, from 1 to 10,000

	// OnOverflow says what a longer list means: "fail", the default, fails the instances with
	// LIST_TOO_LONG, and "first" takes the first MaxItems items.
	OnOverflow string
}

// maxItems bounds MaxItems.
const maxItems = 10_000

// A List is a list whose items are given to the instances of a task.
type List struct {
	Task  string // whose result has it; in a Task the ID
	Path  Path
	Index int // of the item, from 0
	Most  int // items
	Fails bool
}

// item returns the path of the item.
func (l *List) item() Path { return l.Path + Path("/"+strconv.Itoa(l.Index)) }

// paths returns what an item may have, as paths of any item.
func (l *List) paths() []Path { return []Path{l.Path + "/*", l.Path + "/*/**"} }

// forEach writes out the instances of the task that is spec i.
func (u *unroller) forEach(specs []Spec, i int, in *scope) {
	f := specs[i].ForEach
	if !u.checkList(f, in, i) {
		return
	}
	as := f.As
	if as == "" {
		as = "item"
	}
	for n := range f.MaxItems {
		s, place := u.task(specs, i, in)
		title := specs[i].Title
		of := Instance{Pointer: in.at(i), Title: title, Key: specs[i].Key}
		if s.Instance != nil {
			of = *s.Instance
		}
		from := in.find(f.Task)
		of.Item, of.List = n+1, &List{Task: from, Path: f.Path, Index: n, Most: f.MaxItems, Fails: f.OnOverflow != "first"}
		s.Instance, s.ForEach, s.Key = &of, nil, ""
		s.Title = fmt.Sprintf("%s[%d]%s", title, n+1, in.suffix)
		item := Ref{Task: from, As: Structured, Need: of.List.paths(), Item: of.List.item(), Title: as}
		s.DependsOn = append([]Ref{item}, s.DependsOn...)
		place.DependsOn = append([]int{-1}, place.DependsOn...)
		u.addJudged(s, place, specs, i, in)
	}
}

// checkList reports what is wrong with a list.
func (u *unroller) checkList(f *ForEach, in *scope, i int) bool {
	before := len(u.found.list)
	bad := func(path, message, hint string) { u.bad(in, i, "/forEach"+path, message, hint) }
	switch {
	case f.Task == "":
		bad("/task", "the list has no task", "name the task whose result has the list")
	case !in.knows(f.Task):
		u.unknown(in, i, "/forEach/task", "", f.Task)
	case f.Path == "" || f.Path[0] != '/':
		bad("/path", "the list has no path", "write where it is in the result, such as /searches")
	case slices.ContainsFunc(strings.Split(string(f.Path), "/"), func(segment string) bool { return segment == "*" || segment == "**" }):
		bad("/path", fmt.Sprintf("%s may be several lists", naming.Quote(string(f.Path))), "write the path of one list, such as /searches")
	case f.MaxItems < 1 || f.MaxItems > maxItems:
		bad("/maxItems", fmt.Sprintf("maxItems is %d", f.MaxItems), fmt.Sprintf("write how many items there may be, from 1 to %d", maxItems))
	case f.OnOverflow != "" && f.OnOverflow != "fail" && f.OnOverflow != "first":
		bad("/onOverflow", "unknown word "+naming.Quote(f.OnOverflow), wordHint(f.OnOverflow, []string{"fail", "first"}))
	case f.As != "" && naming.CheckName(f.As) != nil:
		bad("/as", fmt.Sprintf("%s is no name", naming.Quote(f.As)), "write a name such as item")
	}
	return len(u.found.list) == before
}

// knows reports whether a name means a task of a scope or around it.
func (in *scope) knows(name string) bool {
	for s := in; s != nil; s = s.outer {
		if _, ok := s.names[naming.Normalize(name)]; ok {
			return true
		}
		if s.outer == nil {
			return slices.ContainsFunc(s.specs, func(t Spec) bool { return string(NewID(t.Title)) == name })
		}
	}
	return false
}

// titles returns the titles of the tasks of a scope and around it.
func (in *scope) titles() (all []string) {
	for s := in; s != nil; s = s.outer {
		for i := range s.specs {
			all = append(all, s.specs[i].Title)
		}
	}
	return all
}

// each returns the references to all instances of a task.
func (u *unroller) each(ref *Ref, in *scope, i, k int) (all []Ref) {
	at := "/dependsOn/" + strconv.Itoa(k) + "/each"
	if ref.Task != "" || len(ref.OneOf) > 0 || ref.Round != "" {
		u.bad(in, i, at, "each is beside task, oneOf or round", "write one of them")
		return nil
	}
	for s := in; s != nil; s = s.outer {
		n := slices.IndexFunc(s.specs, func(t Spec) bool { return isNamed(&t, ref.Each) })
		if n < 0 {
			continue
		}
		if s.specs[n].ForEach == nil {
			u.bad(in, i, at, fmt.Sprintf("%s runs once", naming.Quote(ref.Each)), "write task instead of each")
			return nil
		}
		items := min(s.specs[n].ForEach.MaxItems, maxItems) // more are reported
		if u.reads += items; u.reads > maxReads {
			if u.reads-items <= maxReads { // it is reported once
				u.bad(in, i, at, fmt.Sprintf("the tasks that read each instance of others read more than %d instances together", maxReads), "lower maxItems, or depend on one task that reads all")
			}
			return nil
		}
		for item := range items {
			one := *ref
			one.Task = fmt.Sprintf("%s[%d]%s", s.specs[n].Title, item+1, s.suffix)
			all = append(all, one)
		}
		return all
	}
	u.unknown(in, i, at, "", ref.Each)
	return nil
}
