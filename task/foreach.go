package task

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/runteam/runteam/internal/naming"
)

// A ForEach runs a task, or several, once for each item of a list: an instance is granted its own
// item, and no other. The task Search of the third item has the title Search[3]; prompts have the
// title as written. Other tasks get the results of all instances with Each of a [Ref].
type ForEach struct {
	Task  string // whose structured result has the list, named as in a [Ref]
	Input string // in place of Task: a named input that is a list, or a folder, whose items are its files
	Path  Path   // of the list, such as /searches; an input may be the list itself

	// Files are globs of the files of a folder that are items, such as *.md; nil means all. A glob
	// without a slash matches a name in any folder.
	Files []string

	// Key is the path of a text or a number in each item, such as /email, by which the user knows
	// the instances: Mail[ann@x.org] beside Mail[3], in events and results. It is delivered to the
	// user through the gate. Items whose key the user may not see, or is not the only one with,
	// are known by position. Prompts do not have it.
	Key Path

	As string // the name and the heading of the item; "item" unless set

	// MaxItems is how many items there may be, from 1 to 10,000. It is required for a list in an input.
	// For one in a result, zero means maxItems of the list in the OutputSchema of Task, or, of a task that
	// has none and names its agent, in that of the agent. The agent of a task without an Assignee does
	// not count: the items are written out before it gets one.
	MaxItems int

	// OnOverflow says what happens if the list is longer: "fail", the default, fails the instances
	// with LIST_TOO_LONG, or the check of the run if the list is an input, and "first" takes the
	// first MaxItems items.
	OnOverflow string

	MaxParallel int // how many tasks of its instances run at the same time; zero means as many as the run allows

	// Tasks run for each item, in place of the task itself, which then has only a title, a key, When
	// and OnFailure. Among them, names mean tasks of the same item. They are granted the item if they name
	// it in Uses. Output names the one whose results Each of a [Ref] gets.
	Tasks  []Spec
	Output string
}

// maxItems bounds MaxItems.
const maxItems = 10_000

// A List is a list whose items are given to the instances of a task.
type List struct {
	Pointer string // where it is written, such as /tasks/2/forEach
	Task    string // whose result has it; in a Task the ID. Empty for that of an input
	Input   string
	Path    Path
	Files   []string
	Key     Path // of the value in each item that it is named by; empty if items have no names
	Index   int  // of the item, from 0
	Most    int  // how many items are taken
	Fails   bool // a list with more items is an error

	Parallel int // how many tasks for its items run at the same time; zero means no bound
}

// item returns the path of the item.
func (l *List) item() Path { return l.Path + Path("/"+strconv.Itoa(l.Index)) }

// paths returns the paths of any item and of its parts.
func (l *List) paths() []Path { return l.parts([]Path{Whole, "/**"}) }

// parts returns paths of an item as paths of any item.
func (l *List) parts(of []Path) []Path {
	all := make([]Path, len(of))
	for k, p := range of {
		all[k] = l.Path + "/*" + p
	}
	return all
}

// An itemScope is the item that the tasks of a scope may be granted.
type itemScope struct {
	name string
	list *List
	all  bool // the task has it without naming it
}

// forEach writes out the instances of the task, or the tasks, of spec i.
func (u *unroller) forEach(specs []Spec, i int, in *scope) {
	s, f := specs[i], specs[i].ForEach
	if !u.checkList(f, in, i) || len(f.Tasks) > 0 && !u.checkGroup(&s, in, i) {
		return
	}
	list := List{Pointer: in.at(i) + "/forEach", Input: f.Input, Path: f.Path, Files: f.Files, Key: f.Key, Most: f.MaxItems, Fails: f.OnOverflow != "first", Parallel: f.MaxParallel}
	if f.Input == "" {
		list.Task = in.find(f.Task)
	}
	guard, guardAt, when := in.guard, in.guardAt, in.when
	if len(f.Tasks) > 0 {
		if when = u.condition(specs, i, in); when != nil {
			guard, guardAt = both(in.guard, when), in.at(i)+"/when"
		}
	}
	before := len(u.found.list)
	for n := range f.MaxItems {
		if len(u.out) > maxUnrolled || len(u.found.list) > before { // what is wrong for one item is wrong for each
			return
		}
		one := list
		one.Index = n
		inside := &scope{
			outer: in, pointer: in.at(i) + "/forEach/tasks", suffix: fmt.Sprintf("%s[%d]", in.suffix, n+1), loop: in.loop,
			key: in.key, depth: in.depth + 1, round: in.round, rounds: in.rounds, guard: guard, guardAt: guardAt, when: when, again: in.again,
			lists: append(slices.Clip(in.lists), &one),
			item:  itemScope{f.name(), &one, len(f.Tasks) == 0}, onFailure: s.OnFailure,
		}
		if len(f.Tasks) > 0 {
			u.list(f.Tasks, inside)
			continue
		}
		inside.pointer, inside.specs = in.pointer, specs
		instance, place := u.task(specs, i, inside)
		instance.ForEach = nil
		u.addJudged(instance, place, specs, i, inside)
	}
}

// name returns the name of the item.
func (f *ForEach) name() string {
	if f.As == "" {
		return "item"
	}
	return f.As
}

// checkList reports what is wrong with a list.
func (u *unroller) checkList(f *ForEach, in *scope, i int) bool {
	before := len(u.found.list)
	bad := func(path, message, hint string) { u.bad(in, i, "/forEach"+path, message, hint) }
	title, isList := in.listNamed(f.Task)
	switch {
	case in.depth >= maxNesting:
		bad("", fmt.Sprintf("loops and lists are nested deeper than %d", maxNesting), "move the inner one out")
	case f.Task == "" && f.Input == "":
		bad("/task", "it has neither task nor input", "name the task whose result has the list, or the input that has it")
	case f.Task != "" && f.Input != "":
		bad("/input", "it has both task and input", "write one of them")
	case f.Input == "" && !in.knows(f.Task):
		u.unknown(in, i, "/forEach/task", "", f.Task)
	case f.Input == "" && isList:
		bad("/task", runsForEach(f.Task), "name a task that runs once, such as one that depends on {each: "+title+"}")
	case f.Path == "" && f.Input == "":
		bad("/path", "the list has no path", "write where it is in the result, such as /searches")
	case f.Path != "" && f.Path[0] != '/':
		bad("/path", fmt.Sprintf("path %s does not begin with a slash", naming.Quote(string(f.Path))), fmt.Sprintf("did you mean %s?", naming.Quote("/"+string(f.Path))))
	case hasWildcard(f.Path):
		bad("/path", fmt.Sprintf("%s may be several lists", naming.Quote(string(f.Path))), "write the path of one list, such as /searches")
	case f.Input == "" && f.Files != nil:
		bad("/files", "files are those of a folder", "write input, with the name of a folder")
	case f.Key != "" && f.Key[0] != '/':
		bad("/key", fmt.Sprintf("key %s does not begin with a slash", naming.Quote(string(f.Key))), fmt.Sprintf("write a path in an item; did you mean %s?", naming.Quote("/"+string(f.Key))))
	case hasWildcard(f.Key):
		bad("/key", fmt.Sprintf("%s may be several values", naming.Quote(string(f.Key))), "write the path of one value in an item, such as /email")
	case f.MaxItems == 0 && f.Input == "":
		bad("/maxItems", fmt.Sprintf("neither maxItems nor the outputSchema of %s says how many items there may be", naming.Quote(f.Task)), fmt.Sprintf("write maxItems here or for the list in the outputSchema of that task, from 1 to %d; that of its agent counts if the task names the agent", maxItems))
	case f.MaxItems < 1 || f.MaxItems > maxItems:
		bad("/maxItems", fmt.Sprintf("maxItems is %d", f.MaxItems), fmt.Sprintf("write how many items there may be, from 1 to %d", maxItems))
	case f.MaxParallel < 0:
		bad("/maxParallel", fmt.Sprintf("maxParallel is %d", f.MaxParallel), "write how many tasks may run at the same time, or leave it out")
	case f.MaxParallel > 0 && slices.ContainsFunc(in.lists, func(l *List) bool { return l.Parallel > 0 }):
		bad("/maxParallel", "a list around it has maxParallel too", "write it at one of them")
	case f.As != "" && naming.CheckName(f.As) != nil:
		bad("/as", fmt.Sprintf("as: %s is not a name", naming.Quote(f.As)), "write a name such as item")
	case in.itemOf(f.name()) != nil:
		bad("/as", fmt.Sprintf("the items of the list around it are named %s too", naming.Quote(f.name())), "write another name")
	case f.Output != "" && len(f.Tasks) == 0:
		bad("/output", "output names one of tasks, and there are none", "remove output, or write tasks")
	}
	u.checkWord(in, i, "/forEach/onOverflow", "onOverflow", f.OnOverflow, "fail", "first")
	return len(u.found.list) == before
}

// hasWildcard reports whether a path may be several.
func hasWildcard(path Path) bool {
	return slices.ContainsFunc(strings.Split(string(path), "/"), func(segment string) bool { return segment == "*" || segment == "**" })
}

// checkGroup reports what is wrong with the tasks for each item.
func (u *unroller) checkGroup(s *Spec, in *scope, i int) bool {
	before := len(u.found.list)
	f, bad := s.ForEach, func(path, message, hint string) { u.bad(in, i, path, message, hint) }
	switch k := f.output(); {
	case f.Output == "":
		bad("/forEach/output", "output is missing", "name the task whose results {each: …} gets")
	case k < 0:
		bad("/forEach/output", fmt.Sprintf("the list has no task %s", naming.Quote(f.Output)), "name the task whose results {each: …} gets")
	case f.Tasks[k].ForEach != nil:
		bad("/forEach/output", fmt.Sprintf("%s runs for each item of another list", naming.Quote(f.Output)), "name a task that runs once, such as one that depends on {each: "+f.Tasks[k].Title+"}")
	case s.Description != "" || s.Assignee != "" || len(s.DependsOn) > 0 || len(s.Uses) > 0 || s.OutputSchema != nil || s.IsComputed():
		bad("/forEach", "a list of tasks has a title, a key, a condition, onFailure and tasks, and nothing else", "move description, assignee, dependsOn, uses and outputSchema to the tasks")
	}
	u.checkCondition(in, i, "/when", "when", s.When)
	return len(u.found.list) == before
}

// output returns which of the tasks has the results; -1 if none has.
func (f *ForEach) output() int {
	return slices.IndexFunc(f.Tasks, func(t Spec) bool { return isNamed(&t, f.Output) })
}

// itemOf returns the item of this name that the tasks of a scope may be granted; nil if there is
// none.
func (in *scope) itemOf(name string) *itemScope {
	for s := in; s != nil; s = s.outer {
		if s.item.list != nil && s.item.name == name {
			return &s.item
		}
	}
	return nil
}

// grantItems grants a task of a scope the items that it uses, and one that it has without naming it.
func (u *unroller) grantItems(s *Spec, place *Place, in *scope, i int) {
	uses := s.Uses
	s.Uses = nil
	if in.item.all && !slices.ContainsFunc(uses, func(use Use) bool { return use.Name == in.item.name }) {
		u.grantItem(s, place, in, i, Use{Name: in.item.name}, -1)
	}
	for k, use := range uses {
		u.grantItem(s, place, in, i, use, k)
	}
}

// grantItem grants a task what use k names: the item of a list, or an input.
func (u *unroller) grantItem(s *Spec, place *Place, in *scope, i int, use Use, k int) {
	item := in.itemOf(use.Name)
	bad := func(message, hint string) { u.bad(in, i, "/uses/"+strconv.Itoa(k), message, hint) }
	if item == nil {
		if u.grantedOnce(s, &use, in, i, k) {
			s.Uses, place.Uses = append(s.Uses, use), append(place.Uses, k)
		}
		return
	}
	list := item.list
	need := list.paths()
	if use.Need != nil {
		need = list.parts(use.Need)
	}
	switch {
	case slices.ContainsFunc(in.specs[i].Uses[:max(k, 0)], func(other Use) bool { return other.Name == use.Name }):
		bad(naming.Quote(use.Name)+" is named before", "remove it")
	case use.At != "":
		bad("at is for folders, and "+naming.Quote(use.Name)+" is an item of a list", "remove at")
	case list.Input == "" && len(use.Reveal) > 0:
		bad("reveal is for inputs, and "+naming.Quote(use.Name)+" is an item of a result", "write a rule of the policy for the two agents")
	case list.Input == "" && len(s.DependsOn) > 0 && s.DependsOn[0].Item != "" && s.DependsOn[0].Task == list.Task: // items come first
		bad(fmt.Sprintf("%s and %s are items of the same result, of %s", naming.Quote(s.DependsOn[0].Title), naming.Quote(use.Name), naming.Quote(list.Task)), "let a task between pass one of them on, such as one with a template")
	case list.Input == "":
		s.DependsOn = append([]Ref{{Task: list.Task, As: Structured, Need: need, Item: list.item(), Title: use.Name}}, s.DependsOn...)
		at := -1
		if k >= 0 {
			at = -2 - k
		}
		place.DependsOn = append([]int{at}, place.DependsOn...)
	default:
		own := Use{Name: list.Input, Need: need, Item: list.item(), Title: use.Name}
		for kind, paths := range use.Reveal {
			if own.Reveal == nil {
				own.Reveal = map[string][]Path{}
			}
			own.Reveal[kind] = list.parts(paths)
		}
		if u.grantedOnce(s, &own, in, i, k) {
			s.Uses, place.Uses = append(s.Uses, own), append(place.Uses, k)
		}
	}
}

// grantedOnce reports whether a task is granted nothing else of an input of which it gets an item.
func (u *unroller) grantedOnce(s *Spec, use *Use, in *scope, i, k int) bool {
	n := slices.IndexFunc(s.Uses, func(other Use) bool { return other.Name == use.Name && (other.Item != "" || use.Item != "") })
	if n < 0 {
		return true
	}
	other, message := &s.Uses[n], ""
	switch input := naming.Quote(use.Name); {
	case other.Item == "":
		message = fmt.Sprintf("%s is an item of input %s, which the task uses as a whole too", naming.Quote(use.Title), input)
	case use.Item == "":
		message = fmt.Sprintf("the task uses input %s as a whole, and its item %s", input, naming.Quote(other.Title))
	default:
		message = fmt.Sprintf("%s and %s are items of the same input, %s", naming.Quote(other.Title), naming.Quote(use.Title), input)
	}
	u.bad(in, i, "/uses/"+strconv.Itoa(k), message, "remove one of them, or give that input a second name and write it here or in a list")
	return false
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
		f := s.specs[n].ForEach
		if f == nil {
			u.bad(in, i, at, fmt.Sprintf("%s runs once", naming.Quote(ref.Each)), "write task instead of each")
			return nil
		}
		title := s.specs[n].Title
		if len(f.Tasks) > 0 {
			k := f.output()
			if k < 0 {
				return nil // reported
			}
			title = strings.TrimSpace(f.Tasks[k].Title)
		}
		items := min(f.MaxItems, maxItems) // more are reported
		if u.reads += items; u.reads > maxReads {
			if u.reads-items <= maxReads { // it is reported once
				u.bad(in, i, at, fmt.Sprintf("the tasks that read each instance of others read more than %d instances together", maxReads), "lower maxItems, or depend on one task that reads all")
			}
			return nil
		}
		for item := range items {
			one := *ref
			one.Task = fmt.Sprintf("%s%s[%d]", title, s.suffix, item+1)
			all = append(all, one)
		}
		return all
	}
	u.found.add(in.key, Problem{
		Pointer: in.at(i) + at, Subject: subject(i, in.specs[i].Title), Message: "no task " + naming.Quote(ref.Each), Hint: eachHint(ref.Each, in), Err: ErrUnknown,
	})
	return nil
}

// eachHint says what to write instead of the name of no task: a task that runs for each item.
func eachHint(name string, in *scope) string {
	var lists []string
	for s := in; s != nil; s = s.outer {
		for i := range s.specs {
			if s.specs[i].ForEach != nil {
				lists = append(lists, s.specs[i].Title)
			}
		}
	}
	if len(lists) == 0 {
		return "name a task with forEach; there is none"
	}
	return naming.Suggest(name, lists)
}
